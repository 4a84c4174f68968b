//! Where the engine spills. What it spills is as secret as the input, so the folder goes when the program ends, however
//! it ends; what a killed program leaves goes when the next one begins to work. And files that are about to get the name
//! of another one.
//!
//! ```text
//! $TMPDIR/anonymize-<random>/      its owner alone may look into it
//!   spill.lock                     locked as long as the program lives
//!   …                              what the engine spills
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::{NamedTempFile, TempDir};

/// What the names of folders begin with.
const PREFIX: &str = "anonymize-";

/// What makes a folder one of ours, and says whether its program lives: the operating system releases the lock of a
/// program that dies.
const LOCK: &str = "spill.lock";

static FOLDER: Mutex<Option<Folder>> = Mutex::new(None);

/// Files that may not have got their names yet.
static FILES: Mutex<Vec<PathBuf>> = Mutex::new(vec![]);

struct Folder {
    folder: TempDir,
    _lock: File,
}

/// The folder of this process, made when it is first asked for; then the folders of dead processes are removed.
pub fn folder() -> io::Result<PathBuf> {
    let mut folder = lock();
    if folder.is_none() {
        let made = Folder::make()?;
        sweep(made.folder.path());
        // An option of the runtime makes the engine forget its folders and take new ones among the temporary files: here.
        let _ = tempfile::env::override_temp_dir(made.folder.path());
        *folder = Some(made);
    }
    let path = folder.as_ref().map(|f| f.folder.path().into());
    Ok(path.unwrap_or_default())
}

/// A new file in a folder, to be written and then named. It goes with the program unless it gets its name.
pub fn file_in(folder: &Path) -> io::Result<NamedTempFile> {
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let file = NamedTempFile::new_in(folder)?;
    files.push(file.path().into());
    Ok(file)
}

/// Removes all of it. Other threads may still be writing to the folder: what they make in the meantime goes too.
pub fn remove() {
    for file in FILES.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let _ = fs::remove_file(file);
    }
    let Some(folder) = lock().take() else { return };
    let path = folder.folder.keep();
    // Removing fails if a file comes while the rest goes; once the folder itself is gone, none can come.
    for _ in 0..1_000 {
        if fs::remove_dir_all(&path).is_ok() || !path.exists() {
            return;
        }
    }
}

impl Folder {
    fn make() -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.tempdir()?;
        // It gets its name when it is locked, so that nobody finds it unlocked.
        let unnamed = folder.path().join("lock");
        let lock = File::create(&unnamed)?;
        lock.lock()?;
        fs::rename(unnamed, folder.path().join(LOCK))?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }
}

/// Removes the folders beside ours whose programs are dead. What cannot be removed is said, and left.
fn sweep(own: &Path) {
    let beside = own.parent().map(fs::read_dir);
    let Some(Ok(entries)) = beside else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if !ours || path == own || !same_owner(own, &path) {
            continue;
        }
        // Without its lock a folder is not ours, or is being made or removed.
        let Ok(lock) = File::open(path.join(LOCK)) else {
            continue;
        };
        if lock.try_lock().is_ok()
            && let Err(error) = fs::remove_dir_all(&path)
        {
            log::warn!(
                "spilled files of a dead run are left in '{}': {error}",
                path.display()
            );
        }
    }
}

/// Whether both are folders, no links to such, of the same user.
#[cfg(unix)]
fn same_owner(own: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let owner = |path: &Path| {
        let found = fs::symlink_metadata(path).ok()?;
        found.is_dir().then(|| found.uid())
    };
    owner(own).is_some() && owner(own) == owner(other)
}

/// Elsewhere temporary folders are those of one user.
#[cfg(not(unix))]
fn same_owner(_: &Path, other: &Path) -> bool {
    fs::symlink_metadata(other).is_ok_and(|found| found.is_dir())
}

fn lock() -> MutexGuard<'static, Option<Folder>> {
    FOLDER.lock().unwrap_or_else(PoisonError::into_inner)
}
