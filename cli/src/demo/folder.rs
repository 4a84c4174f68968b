//! Where the demo writes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;

/// A folder with nothing in it.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    created: bool,
}

impl Folder {
    /// The folder asked for, or else a new one among the temporary files. One with anything in it is
    /// refused: a release is never mixed with other files.
    pub fn prepare(wanted: Option<&Path>) -> Result<Self, Failure> {
        let Some(wanted) = wanted else {
            let path = tempfile::Builder::new()
                .prefix("anonymize-demo-")
                // Beside the folder of spilled files, which goes with the program.
                .tempdir_in(std::env::temp_dir())?
                .keep();
            return Ok(Self {
                path,
                created: true,
            });
        };
        let created = !wanted.exists();
        let failed = |error| {
            format!(
                "cannot use the output folder '{}': {error}",
                wanted.display()
            )
        };
        if created {
            fs::create_dir_all(wanted).map_err(failed)?;
        }
        if fs::read_dir(wanted).map_err(failed)?.next().is_some() {
            let wanted = wanted.display();
            return Err(
                format!("the output folder '{wanted}' is not empty; name another one").into(),
            );
        }
        let path = wanted.canonicalize().map_err(failed)?;
        Ok(Self { path, created })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder as text in SQL; the slash at the end says that it is one.
    pub fn literal(&self) -> String {
        format!("'{}/'", self.path.to_string_lossy().replace('\'', "''"))
    }

    /// Leaves nothing behind of work that failed, and whatever else came into the folder meanwhile.
    pub fn discard(&self) {
        // The failure itself is what will be reported.
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            if entry
                .path()
                .extension()
                .is_some_and(|extension| extension == "parquet")
            {
                let _ = fs::remove_file(entry.path());
            }
        }
        if self.created {
            let _ = fs::remove_dir(&self.path);
        }
    }
}
