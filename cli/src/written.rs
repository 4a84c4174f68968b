//! Files that a command writes: never over what it did not write itself, and all of it or nothing.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use datafusion_anonymize::publish::real_path;
use tempfile::NamedTempFile;

use crate::Failure;
use crate::temporary::file_in;

/// As much of a file as it takes to see whose it is.
const BEGINNING: u64 = 1024;

/// A file that a command is going to write.
#[derive(Debug)]
pub struct Written {
    /// What in the job or on the command line names it.
    option: &'static str,
    /// Where it is, with links followed.
    path: PathBuf,
    /// Whether the beginning of a file is that of an earlier one of the same kind, which may be replaced.
    begins: fn(&[u8]) -> bool,
}

impl Written {
    /// Refuses a place that holds something else, before any work.
    pub fn at(
        option: &'static str,
        path: &Path,
        begins: fn(&[u8]) -> bool,
    ) -> Result<Self, Failure> {
        if path.to_string_lossy().contains("://") {
            return Err(format!("{option} is a URL; name a file of this machine").into());
        }
        if path.to_string_lossy().trim().is_empty() {
            return Err(format!("{option} is empty; name a file").into());
        }
        let path = real_path(path).map_err(|e| format!("{option}: {}", e.strip_backtrace()))?;
        let written = Self {
            option,
            path,
            begins,
        };
        written.check_replaceable()?;
        Ok(written)
    }

    pub fn option(&self) -> &'static str {
        self.option
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses a folder that cannot be written to. No file lies there meanwhile.
    pub fn try_folder(&self) -> Result<(), Failure> {
        self.staged().map(|_| ())
    }

    /// Writes the file, which is there as a whole or not at all.
    pub fn write(&self, text: &str) -> Result<(), Failure> {
        let mut staged = self.staged()?;
        let written = staged.write_all(text.as_bytes());
        written.map_err(|e| self.cannot(&e))?;
        // Somebody may have put something there meanwhile.
        self.check_replaceable()?;
        let named = staged.persist(&self.path);
        named.map(|_| ()).map_err(|e| self.cannot(&e.error))
    }

    /// Nothing is lost with an empty file, or an earlier one of the same kind.
    fn check_replaceable(&self) -> Result<(), Failure> {
        let option = self.option;
        let found = match fs::symlink_metadata(&self.path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            found => found.map_err(|e| self.cannot(&e))?,
        };
        if !found.is_file() {
            return Err(format!("{option} is there and is no file; name another one").into());
        }
        let mut beginning = vec![];
        let file = File::open(&self.path);
        let read = file.and_then(|file| file.take(BEGINNING).read_to_end(&mut beginning));
        read.map_err(|e| self.cannot(&e))?;
        if beginning.is_empty() || (self.begins)(&beginning) {
            return Ok(());
        }
        Err(format!(
            "{option} is there already and holds something else; only what this program wrote there before is replaced, so \
             name another file"
        )
        .into())
    }

    /// A file beside the one that is to be written.
    fn staged(&self) -> Result<NamedTempFile, Failure> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let made = fs::create_dir_all(folder).and_then(|()| file_in(folder));
        made.map_err(|e| self.cannot(&e))
    }

    fn cannot(&self, error: &std::io::Error) -> Failure {
        format!("{} cannot be written: {error}", self.option).into()
    }
}
