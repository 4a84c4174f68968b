//! Where the engine spills. What it spills is as secret as the input, so the folder goes when the program ends, however
//! it ends.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

static FOLDER: Mutex<Option<TempDir>> = Mutex::new(None);

/// The folder of this process, made when it is first asked for; its owner alone may look into it.
pub fn folder() -> io::Result<PathBuf> {
    let mut folder = lock();
    if folder.is_none() {
        *folder = Some(tempfile::Builder::new().prefix("anonymize-").tempdir()?);
    }
    Ok(folder.as_ref().map(|f| f.path().into()).unwrap_or_default())
}

/// Removes it. Other threads may still be writing there: what they make in the meantime goes too.
pub fn remove() {
    let Some(folder) = lock().take() else { return };
    let path = folder.keep();
    // Removing fails if a file comes while the rest goes; once the folder itself is gone, none can come.
    for _ in 0..1_000 {
        if fs::remove_dir_all(&path).is_ok() || !path.exists() {
            return;
        }
    }
}

fn lock() -> MutexGuard<'static, Option<TempDir>> {
    FOLDER.lock().unwrap_or_else(PoisonError::into_inner)
}
