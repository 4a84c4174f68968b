//! Paths of this machine as the file system means them.

use std::fs;
use std::path::{Component, Path, PathBuf, absolute};

use datafusion::common::Result;
use datafusion::datasource::listing::ListingTableUrl;

/// The path with links followed and `..` resolved, also where its end does not exist yet.
///
/// # Errors
///
/// If the path is empty, or the current folder is not known.
pub fn real_path(path: &Path) -> Result<PathBuf> {
    let mut real = PathBuf::new();
    for part in absolute(path)?.components() {
        match part {
            Component::CurDir => {}
            // What was followed so far has no links, so its parent is the folder that it lies in.
            Component::ParentDir => {
                real.pop();
            }
            part => {
                real.push(part);
                if let Ok(followed) = real.canonicalize() {
                    real = followed;
                }
            }
        }
    }
    Ok(real)
}

/// Whether one lies in the other, or both are the same.
pub(super) fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Whether a file would be part of the table at a URL.
pub(super) fn holds(url: &ListingTableUrl, file: &Path) -> Result<bool> {
    let Some(table) = real(url)? else {
        return Ok(false);
    };
    let below = real_path(file)?;
    let below = below.strip_prefix(table);
    // A pattern takes only some of what lies below it.
    Ok(below.is_ok_and(|below| {
        let pattern = url.get_glob().as_ref();
        pattern.is_none_or(|pattern| pattern.matches(&below.to_string_lossy()))
    }))
}

/// Whether a link somewhere below a folder leads to a place, into it, or to a folder around it.
pub(super) fn links_to(folder: &Path, place: &Path) -> Result<bool> {
    let (mut folders, mut seen) = (vec![folder.to_owned()], vec![]);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            // Whoever reads the table will say what is wrong with it.
            continue;
        };
        seen.push(folder.clone());
        for entry in entries.flatten() {
            let path = entry.path();
            let inner = match fs::read_link(&path) {
                // What it leads to may not be there yet.
                Ok(leads_to) => {
                    let leads_to = real_path(&folder.join(leads_to))?;
                    if overlap(&leads_to, place) {
                        return Ok(true);
                    }
                    leads_to
                }
                Err(_) => path,
            };
            if inner.is_dir() && !seen.contains(&inner) {
                folders.push(inner);
            }
        }
    }
    Ok(false)
}

/// Where a URL leads to, without its pattern; nowhere if it is not of this machine.
pub(super) fn real(url: &ListingTableUrl) -> Result<Option<PathBuf>> {
    let path = match url.scheme() {
        "file" => url.get_url().to_file_path().ok(),
        _ => None,
    };
    path.map(|path| real_path(&path)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_before_parents_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        let root = real_path(folder.path()).unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.join("a/b"), root.join("link")).unwrap();
        for (path, expected) in [
            ("new/x", "new/x"),
            ("new/../x", "x"),
            ("a/./b/../x", "a/x"),
            #[cfg(unix)]
            ("link/../x", "a/x"),
        ] {
            assert_eq!(real_path(&root.join(path)).unwrap(), root.join(expected));
        }
        assert!(real_path(Path::new("")).is_err());
    }
}
