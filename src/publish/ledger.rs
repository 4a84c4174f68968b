//! A ledger of releases: who was in which of them, as keyed sketches from which nobody can be read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use datafusion::arrow::array::AsArray;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use serde::{Deserialize, Serialize};

use super::folder::blocking;
use super::subject::Subject;
use super::unfinished::Unfinished;

/// How many of the smallest hashes are kept of a release. Two releases that share a hundredth of their people have about
/// 41 of them in common; of a share of a thousandth, about 4.
const SKETCH: usize = 4096;

/// How the file of a release that was made ends.
const COUNTED: &str = "json";

/// How the file of a release that is being made ends.
const BEGUN: &str = "begun";

/// The file that is locked while entries are compared.
const LOCK: &str = "lock";

/// A folder in which releases are entered.
///
/// Of each release it keeps the 4,096 smallest keyed hashes of its ids. Whoever has the folder without the key learns
/// neither who was published nor whether somebody was; whoever has both can test ids, so keep the key elsewhere.
#[derive(Clone)]
pub struct Ledger {
    folder: PathBuf,
    key: [u8; 32],
    on_overlap: OnOverlap,
}

/// What to do if individuals were published before with other arguments or another query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnOverlap {
    /// Publish nothing.
    #[default]
    Refuse,
    /// Publish, and say so.
    Warn,
}

/// What a ledger says of a release that is about to be made.
#[derive(Debug)]
pub(super) struct Entered {
    /// What is to be warned of.
    pub warnings: Vec<String>,
    /// Its entry.
    pub entry: BegunEntry,
}

/// The entry of a release that is being made. It is locked while its run lives, and goes with it; of a run that was killed
/// it is removed by the next one.
#[derive(Debug)]
pub(super) struct BegunEntry {
    begun: Unfinished,
    /// Its name from the moment on in which the release counts as made.
    counted: PathBuf,
    _lock: File,
}

/// What is kept of a release.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    release: String,
    /// Where it went, for people who look after it.
    target: String,
    /// A keyed hash of nothing, by which another key is noticed.
    key: String,
    /// A keyed hash of function and arguments.
    settings: String,
    /// A keyed hash of the query over the input.
    query: String,
    /// How many individuals the sketch stands for.
    individuals_at_least: u64,
    sketch: Vec<u64>,
    /// A keyed hash of all this, by which a change is noticed.
    seal: String,
}

impl Ledger {
    /// A ledger in a folder of this machine, under a secret.
    pub fn new(folder: impl Into<PathBuf>, secret: &str) -> Result<Self> {
        if secret.len() < 16 {
            return Err(exec_datafusion_err!(
                "ledger: the key must have at least 16 characters: whoever guesses it can test ids"
            ));
        }
        let folder: PathBuf = folder.into();
        if folder.to_string_lossy().contains("://") {
            return Err(exec_datafusion_err!(
                "ledger: '{}' is a URL; the ledger must be a folder of this machine, such as ledger/",
                folder.display()
            ));
        }
        let context = "datafusion-anonymize 2026 ledger key";
        Ok(Self {
            folder,
            key: blake3::derive_key(context, secret.as_bytes()),
            on_overlap: OnOverlap::default(),
        })
    }

    /// What to do about an overlap with other arguments or another query.
    pub fn with_on_overlap(mut self, on_overlap: OnOverlap) -> Self {
        self.on_overlap = on_overlap;
        self
    }

    /// Where it is.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Compares the ids of a release with those of all that were made or are being made, and enters it.
    pub(super) async fn enter(
        &self,
        release: &str,
        target: &str,
        subject: &Subject,
        ids: SendableRecordBatchStream,
    ) -> Result<Entered> {
        let sketch = self.sketch(ids).await?;
        let mut entry = Entry {
            release: release.to_owned(),
            target: target.to_owned(),
            key: self.hash(b"key"),
            settings: self.hash(subject.settings.as_bytes()),
            query: self.hash(subject.query.as_bytes()),
            individuals_at_least: sketch.len() as u64,
            sketch,
            seal: String::new(),
        };
        entry.seal = self.seal(&entry)?;
        let ledger = self.clone();
        blocking(move || {
            // Of two runs at once the second sees the first.
            let _alone = ledger.lock()?;
            let warnings = ledger.overlaps(&entry)?;
            let entry = ledger.begin(&entry)?;
            Ok(Entered { warnings, entry })
        })
        .await
    }

    /// What is to be said of releases that have individuals in common with this one; an error if it may not be made.
    fn overlaps(&self, new: &Entry) -> Result<Vec<String>> {
        let mut warnings = vec![];
        for (entry, state) in self.entries()? {
            let shared = shared(&new.sketch, &entry.sketch);
            if shared == 0.0 {
                continue;
            }
            let share = if shared < 0.01 {
                "fewer than 1".to_owned()
            } else {
                format!("about {:.0}", 100.0 * shared)
            };
            let how = match (entry.settings == new.settings, entry.query == new.query) {
                (true, true) => "the same arguments and the same query",
                (false, true) => "other arguments",
                (true, false) => "another query",
                (false, false) => "other arguments and another query",
            };
            let repeated = entry.settings == new.settings && entry.query == new.query;
            let message = format!(
                "ledger: {share} % of the individuals of this and release {} together are in both, which {state} with {how}; \
                 two releases of the same people can be compared",
                entry.release
            );
            if !repeated && self.on_overlap == OnOverlap::Refuse {
                return Err(exec_datafusion_err!(
                    "{message}; nothing is published (on_overlap = \"warn\" publishes nevertheless)"
                ));
            }
            warnings.push(message);
        }
        Ok(warnings)
    }

    async fn sketch(&self, mut ids: SendableRecordBatchStream) -> Result<Vec<u64>> {
        let mut smallest = BTreeSet::new();
        while let Some(batch) = ids.next().await.transpose()? {
            let column = batch.columns().first();
            let column = column.and_then(|ids| ids.as_string_opt::<i32>());
            let column = column.ok_or_else(|| exec_datafusion_err!("ledger: ids are no texts"))?;
            for id in column.iter().flatten() {
                let hash = blake3::keyed_hash(&self.key, id.as_bytes());
                let mut first = [0; 8];
                first.copy_from_slice(&hash.as_bytes()[..8]);
                smallest.insert(u64::from_be_bytes(first));
                if smallest.len() > SKETCH {
                    smallest.pop_last();
                }
            }
        }
        Ok(smallest.into_iter().collect())
    }

    fn hash(&self, bytes: &[u8]) -> String {
        blake3::keyed_hash(&self.key, bytes).to_hex().to_string()
    }

    fn seal(&self, entry: &Entry) -> Result<String> {
        let unsealed = Entry {
            seal: String::new(),
            ..entry.clone()
        };
        let text = serde_json::to_vec(&unsealed).map_err(|e| unreadable(&self.folder, &e))?;
        Ok(self.hash(&text))
    }

    /// The lock that a run holds while it compares and enters.
    fn lock(&self) -> Result<File> {
        fs::create_dir_all(&self.folder).map_err(|e| unreadable(&self.folder, &e))?;
        let path = self.folder.join(LOCK);
        let file = private(&path).map_err(|e| unreadable(&path, &e))?;
        file.lock().map_err(|e| {
            exec_datafusion_err!(
                "ledger: {} cannot be locked ({e}), so two runs at once could publish the same people; name a folder on a \
                 file system with locks",
                path.display()
            )
        })?;
        Ok(file)
    }

    /// All entries of releases that were made, or are being made by runs that live, and what to say of these. Entries of
    /// dead runs are removed.
    fn entries(&self) -> Result<Vec<(Entry, &'static str)>> {
        let mut entries = BTreeMap::new();
        // In this order: what gets its other name meanwhile is found under one of the two.
        for (ending, state) in [
            (BEGUN, "is being made at this moment"),
            (COUNTED, "was made"),
        ] {
            let files = fs::read_dir(&self.folder).map_err(|e| unreadable(&self.folder, &e))?;
            for file in files {
                let path = file.map_err(|e| unreadable(&self.folder, &e))?.path();
                if path.extension().is_none_or(|e| e != ending) {
                    continue;
                }
                let text = match read(&path, ending == BEGUN) {
                    // A run that fails takes its entry away at any time.
                    Err(e) if e.kind() == io::ErrorKind::NotFound => None,
                    text => text.map_err(|e| unreadable(&path, &e))?,
                };
                if let Some(text) = text {
                    let entry = self.opened(&path, &text)?;
                    entries.insert(entry.release.clone(), (entry, state));
                }
            }
        }
        Ok(entries.into_values().collect())
    }

    /// An entry, if it is whole and of this key.
    fn opened(&self, path: &Path, text: &[u8]) -> Result<Entry> {
        let entry: Entry = serde_json::from_slice(text).map_err(|e| unreadable(path, &e))?;
        if entry.key != self.hash(b"key") {
            return Err(exec_datafusion_err!(
                "ledger: {} was written with another key, so nobody can tell who is in both releases; use that key, or \
                 another folder for a ledger of its own",
                path.display()
            ));
        }
        if entry.seal != self.seal(&entry)? {
            return Err(exec_datafusion_err!(
                "ledger: {} was changed after it was written; restore it from a copy",
                path.display()
            ));
        }
        Ok(entry)
    }

    /// An entry is there before its release, so that none is missing if the run is killed between the two.
    fn begin(&self, entry: &Entry) -> Result<BegunEntry> {
        let counted = self.folder.join(format!("{}.{COUNTED}", entry.release));
        let path = counted.with_extension(BEGUN);
        let write = || {
            let mut file = private(&path)?;
            file.lock()?;
            file.write_all(&serde_json::to_vec(entry)?)?;
            file.sync_all()?;
            Ok::<_, io::Error>(file)
        };
        let begun = Unfinished::make(path.clone(), write);
        let (begun, _lock) = begun.map_err(|e| unreadable(&path, &e))?;
        Ok(BegunEntry {
            begun,
            counted,
            _lock,
        })
    }
}

impl BegunEntry {
    /// Where it is while the release is being made.
    pub fn path(&self) -> &Path {
        self.begun.path()
    }

    /// From now on the release counts as made, whatever becomes of it.
    pub fn count(&self) -> io::Result<()> {
        fs::rename(self.begun.path(), &self.counted)?;
        match self.counted.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }

    /// The release was refused after it was counted.
    pub fn forget(&self) -> io::Result<()> {
        fs::remove_file(&self.counted)
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("folder", &self.folder)
            .field("on_overlap", &self.on_overlap)
            .finish_non_exhaustive()
    }
}

/// What is in a file. One that its run must hold locked is removed if nobody does: the run is dead.
fn read(path: &Path, held: bool) -> io::Result<Option<Vec<u8>>> {
    let mut file = File::open(path)?;
    if held && file.try_lock().is_ok() {
        return fs::remove_file(path).map(|()| None);
    }
    let mut text = vec![];
    file.read_to_end(&mut text)?;
    Ok(Some(text))
}

/// The estimated share of individuals of either release that are in both.
fn shared(a: &[u64], b: &[u64]) -> f64 {
    let mut union: BTreeSet<u64> = a.iter().chain(b).copied().collect();
    while union.len() > SKETCH {
        union.pop_last();
    }
    let both = union
        .iter()
        .filter(|hash| a.binary_search(hash).is_ok() && b.binary_search(hash).is_ok())
        .count();
    let any = a.iter().any(|hash| b.binary_search(hash).is_ok());
    match (both, any) {
        (0, false) => 0.0,
        // Shared, but beyond what the sketches can measure.
        (0, true) => 0.001,
        (both, _) => both as f64 / union.len() as f64,
    }
}

#[cfg(unix)]
fn private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)
}

#[cfg(not(unix))]
fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    options.open(path)
}

fn unreadable(path: &Path, error: &dyn fmt::Display) -> DataFusionError {
    exec_datafusion_err!("ledger: {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sketches_estimate_what_is_shared() {
        let people = |range: std::ops::Range<u64>| {
            let hash = |i: u64| {
                let hash = blake3::hash(&i.to_be_bytes());
                u64::from_be_bytes(hash.as_bytes()[..8].try_into().unwrap())
            };
            let mut hashes: Vec<u64> = range.map(hash).collect();
            hashes.sort_unstable();
            hashes.truncate(SKETCH);
            hashes
        };
        let all = people(0..20_000);
        assert_eq!(shared(&all, &all), 1.0);
        assert_eq!(shared(&all, &people(20_000..40_000)), 0.0);
        let half = shared(&all, &people(10_000..30_000));
        assert!((half - 1.0 / 3.0).abs() < 0.03, "{half}");
        let few = shared(&all, &people(19_800..39_800));
        assert!(few > 0.0 && few < 0.02, "{few}");
        assert_eq!(shared(&people(0..3), &people(2..5)), 0.2);
    }
}
