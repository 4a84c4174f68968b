//! A folder of this machine as the place of a release. All of this blocks, and runs on threads for such work.

use std::fs::{self, File, TryLockError};
use std::io;
use std::iter;
use std::path::Path;

use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};

use super::ledger::BegunEntry;
use super::manifest::MANIFEST;
use super::unfinished::{self, Unfinished};

/// A staging folder of this run: it goes with it unless it is committed, and nobody else sweeps it while it is open.
#[derive(Debug)]
pub(super) struct LockedFolder {
    _unfinished: Unfinished,
    _lock: File,
}

/// Runs work that blocks.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = SpawnedTask::spawn_blocking(work).join().await;
    done.map_err(|_| exec_datafusion_err!("publish: the work was interrupted"))?
}

/// What is in a folder; nothing if there is none.
pub(super) fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        entries => entries.map_err(failed)?,
    };
    let name = |entry: io::Result<fs::DirEntry>| {
        let name = entry.map_err(failed)?.file_name();
        Ok(name.to_string_lossy().into_owned())
    };
    entries.map(name).collect()
}

/// Whether a run that has its staging here is known to be dead, because nobody holds its lock. Systems without such locks
/// cannot say so.
pub(super) fn is_dead(staging: &Path) -> bool {
    File::open(staging).is_ok_and(|file| file.try_lock().is_ok())
}

/// Removes the staging of a run.
pub(super) fn sweep(staging: &Path) -> Result<()> {
    match fs::remove_dir_all(staging) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failed(e)),
        _ => Ok(()),
    }
}

/// Begins a run of its own. A file system on which it could not be committed is refused before any work.
pub(super) fn begin(staging: &Path) -> Result<LockedFolder> {
    let make = || {
        let lock = create_locked(staging)?;
        can_link(staging, |from, to| fs::hard_link(from, to))?;
        Ok::<_, DataFusionError>(lock)
    };
    let (_unfinished, _lock) = Unfinished::make(staging.to_owned(), make)?;
    Ok(LockedFolder { _unfinished, _lock })
}

/// Writes the manifest in staging and links it to its name, with everything on disk before. The ledger counts the release
/// from the moment before.
pub(super) fn commit(
    folder: &Path,
    staging: &Path,
    manifest: &str,
    entry: Option<&BegunEntry>,
) -> io::Result<()> {
    let staged = staging.join(MANIFEST);
    fs::write(&staged, manifest)?;
    for entry in fs::read_dir(staging)? {
        File::open(entry?.path())?.sync_all()?;
    }
    File::open(staging)?.sync_all()?;
    File::open(folder)?.sync_all()?;
    let finished: Vec<&Path> = iter::once(staging)
        .chain(entry.map(BegunEntry::path))
        .collect();
    unfinished::finish(&finished, || {
        entry.map_or(Ok(()), BegunEntry::count)?;
        if let Err(error) = fs::hard_link(&staged, folder.join(MANIFEST)) {
            entry.map_or(Ok(()), BegunEntry::forget)?;
            return Err(error);
        }
        // From here on the release is visible, whatever happens.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
        let _ = fs::remove_file(&staged);
        Ok(())
    })
}

/// A new folder that nobody else may sweep while the returned file is open.
fn create_locked(folder: &Path) -> Result<File> {
    fs::create_dir_all(folder).map_err(failed)?;
    let lock = File::open(folder).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(exec_datafusion_err!(
                "publish: another run is removing at this moment what earlier runs left at the target; run again"
            ));
        }
        // Without locks nothing is swept, either.
        Err(TryLockError::Error(_)) => {}
    }
    // Between its creation and the lock the folder may have been taken for one of the dead.
    if !folder.is_dir() {
        return Err(exec_datafusion_err!(
            "publish: another run has just removed what earlier runs left at the target; run again"
        ));
    }
    Ok(lock)
}

/// Refuses a file system without hard links: a commit must fail if there is a manifest already, and take one step.
fn can_link(staging: &Path, link: impl Fn(&Path, &Path) -> io::Result<()>) -> Result<()> {
    let (from, to) = (staging.join("link.from"), staging.join("link.to"));
    fs::write(&from, "").map_err(failed)?;
    let linked = link(&from, &to);
    fs::remove_file(&from).map_err(failed)?;
    match linked {
        Ok(()) => fs::remove_file(&to).map_err(failed),
        Err(error) => Err(exec_datafusion_err!(
            "publish: the file system of the target has no hard links ({error}), by which a release becomes visible in one \
             step; name a target on another file system or in an object store"
        )),
    }
}

fn failed(error: io::Error) -> DataFusionError {
    DataFusionError::IoError(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_without_links_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let without = |_: &Path, _: &Path| Err(io::ErrorKind::Unsupported.into());
        let said = can_link(folder.path(), without).unwrap_err();
        assert!(said.to_string().contains("has no hard links"), "{said}");
        can_link(folder.path(), |from, to| fs::hard_link(from, to)).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// The second of two commits finds the manifest of the first, and changes nothing.
    #[test]
    fn one_commit_wins() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path();
        let (first, second) = (target.join("data-1"), target.join("data-2"));
        let begun = (begin(&first).unwrap(), begin(&second).unwrap());
        assert!(!is_dead(&first));
        commit(target, &first, "first", None).unwrap();
        let said = commit(target, &second, "second", None).unwrap_err();
        assert_eq!(said.kind(), io::ErrorKind::AlreadyExists);
        drop(begun);
        let mut left = names(target).unwrap();
        left.sort();
        assert_eq!(left, ["data-1", MANIFEST]);
        assert_eq!(fs::read_to_string(target.join(MANIFEST)).unwrap(), "first");
        assert!(is_dead(&first));
    }
}
