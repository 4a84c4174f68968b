//! What a run has made on this machine and must not leave behind unless it commits: its staging, its entry in a ledger.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

/// All of it, of this process.
static PATHS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A file or folder that goes when this does, unless its run has finished.
#[derive(Debug)]
pub(super) struct Unfinished {
    path: PathBuf,
}

impl Unfinished {
    /// Makes something at a path, and sees to it that it goes, also if making it fails half-way.
    pub fn make<T, E>(path: PathBuf, make: impl FnOnce() -> Result<T, E>) -> Result<(Self, T), E> {
        let mut paths = PATHS.lock();
        let made = make();
        match made {
            Ok(made) => {
                paths.insert(path.clone());
                Ok((Self { path }, made))
            }
            Err(error) => {
                remove(&path);
                Err(error)
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut paths = PATHS.lock();
        if paths.remove(&self.path) {
            remove(&self.path);
        }
    }
}

/// Takes the step that finishes things, after which they stay. Nobody removes them meanwhile.
pub(super) fn finish(finished: &[&Path], step: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let mut paths = PATHS.lock();
    if !finished.iter().all(|path| paths.contains(*path)) {
        return Err(io::Error::other("the program is about to end"));
    }
    step()?;
    for path in finished {
        paths.remove(*path);
    }
    Ok(())
}

/// Removes what runs of this process have not committed: staging in folders, and entries in ledgers.
///
/// A run that fails or whose future is dropped does so by itself. This is for a program that ends at once, without
/// dropping anything; runs that go on after it fail. What is in an object store is left for a later run to sweep.
pub fn remove_unfinished() {
    let mut paths = PATHS.lock();
    for path in std::mem::take(&mut *paths) {
        remove(&path);
    }
}

/// Removes a file, or a folder that others may still be writing to.
fn remove(path: &Path) {
    if !path.is_dir() {
        let _ = fs::remove_file(path);
        return;
    }
    // Removing fails if a file comes while the rest goes.
    for _ in 0..1_000 {
        if fs::remove_dir_all(path).is_ok() || !path.exists() {
            return;
        }
    }
    log::warn!("publish: temporary files are left at the target; the next run removes them");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finished_goes() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = folder.path().join(name);
            let made = Unfinished::make(path.clone(), || {
                fs::create_dir(&path)?;
                fs::write(path.join("part"), "x")
            });
            (path, made.unwrap().0)
        };
        let (path, dropped) = make("dropped");
        drop(dropped);
        assert!(!path.exists());
        let (path, failed) = make("failed");
        let refused = || Err(io::Error::other("refused"));
        assert!(finish(&[&path], refused).is_err() && path.exists());
        drop(failed);
        assert!(!path.exists());
        let (path, finished) = make("finished");
        finish(&[&path], || Ok(())).unwrap();
        drop(finished);
        assert!(path.exists());
        // Of a run that is interrupted nothing can be finished any more.
        let (path, interrupted) = make("interrupted");
        PATHS.lock().remove(&path);
        let (other, alive) = make("alive");
        assert!(finish(&[&other, &path], || Ok(())).is_err() && other.exists());
        drop((interrupted, alive));
        let path = folder.path().join("half");
        let half = || fs::create_dir(&path).and_then(|()| fs::create_dir(&path));
        assert!(Unfinished::make(path.clone(), half).is_err() && !path.exists());
    }
}
