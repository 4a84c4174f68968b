//! A ledger of releases: who was in which of them, as keyed sketches from which nobody can be read.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use datafusion::arrow::array::AsArray;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::StreamExt;
use serde::{Deserialize, Serialize};

use super::folder::blocking;
use super::place::Place;
use super::unfinished::Unfinished;

/// How many of the smallest hashes are kept of a release. Two releases that share a hundredth of their people have about
/// 41 of them in common; of a share of a thousandth, about 4.
const SKETCH: usize = 4096;

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

/// What to do if individuals were published before with other parameters.
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
    /// Its entry, which goes if the release is not made.
    pub entry: Unfinished,
}

/// What is kept of a release.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    release: String,
    /// Where it went: an entry of a run that was killed before its commit counts for nothing.
    target: String,
    /// A keyed hash of function, parameters, roles, hierarchies and domains.
    subject: String,
    /// How many individuals the sketch stands for.
    individuals_at_least: u64,
    sketch: Vec<u64>,
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

    /// What to do about an overlap with other parameters.
    pub fn with_on_overlap(mut self, on_overlap: OnOverlap) -> Self {
        self.on_overlap = on_overlap;
        self
    }

    /// Compares the ids of a release with all earlier ones, and enters it.
    pub(super) async fn enter(
        &self,
        runtime: &RuntimeEnv,
        release: &str,
        subject: &str,
        target: &str,
        ids: SendableRecordBatchStream,
    ) -> Result<Entered> {
        let sketch = self.sketch(ids).await?;
        let subject = self.hash(subject.as_bytes());
        let mut warnings = vec![];
        let ledger = self.clone();
        for entry in blocking(move || ledger.entries()).await? {
            let shared = shared(&sketch, &entry.sketch);
            if shared == 0.0 || !entry.was_released(runtime).await {
                continue;
            }
            let share = if shared < 0.01 {
                "fewer than 1".to_owned()
            } else {
                format!("about {:.0}", 100.0 * shared)
            };
            let other = entry.subject != subject;
            let how = if other { "other" } else { "the same" };
            let message = format!(
                "ledger: {share} % of the individuals of this and release {} together are in both, which was made with \
                 {how} parameters; two releases of the same people can be compared",
                entry.release
            );
            if other && self.on_overlap == OnOverlap::Refuse {
                return Err(exec_datafusion_err!(
                    "{message}; nothing is published (on_overlap = \"warn\" publishes nevertheless)"
                ));
            }
            warnings.push(message);
        }
        let entry = Entry {
            release: release.to_owned(),
            target: target.to_owned(),
            subject,
            individuals_at_least: sketch.len() as u64,
            sketch,
        };
        let ledger = self.clone();
        let entry = blocking(move || ledger.write(&entry)).await?;
        Ok(Entered { warnings, entry })
    }

    async fn sketch(&self, mut ids: SendableRecordBatchStream) -> Result<Vec<u64>> {
        let mut smallest = BTreeSet::new();
        while let Some(batch) = ids.next().await.transpose()? {
            let column = batch.column(0).as_string_opt::<i32>();
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

    fn path(&self, release: &str) -> PathBuf {
        self.folder.join(format!("{release}.json"))
    }

    fn entries(&self) -> Result<Vec<Entry>> {
        let mut entries = vec![];
        let files = match fs::read_dir(&self.folder) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(entries),
            files => files.map_err(|e| unreadable(&self.folder, &e))?,
        };
        for file in files {
            let path = file.map_err(|e| unreadable(&self.folder, &e))?.path();
            if path.extension().is_none_or(|e| e != "json") {
                continue;
            }
            let text = fs::read(&path).map_err(|e| unreadable(&path, &e))?;
            let entry: Entry = serde_json::from_slice(&text).map_err(|e| unreadable(&path, &e))?;
            entries.push(entry);
        }
        entries.sort_by(|a, b| a.release.cmp(&b.release));
        Ok(entries)
    }

    /// An entry is there before its release, so that none is missing if the run is killed between the two.
    fn write(&self, entry: &Entry) -> Result<Unfinished> {
        let path = self.path(&entry.release);
        let failed = |e: &dyn fmt::Display| unreadable(&path, e);
        fs::create_dir_all(&self.folder).map_err(|e| failed(&e))?;
        let text = serde_json::to_string(entry).map_err(|e| failed(&e))?;
        let staged = path.with_extension("new");
        let (_staged, mut file) =
            Unfinished::make(staged.clone(), || private(&staged)).map_err(|e| failed(&e))?;
        let written = file.write_all(text.as_bytes());
        written
            .and_then(|()| file.sync_all())
            .map_err(|e| failed(&e))?;
        let named = Unfinished::make(path.clone(), || fs::rename(&staged, &path));
        named.map(|(entry, ())| entry).map_err(|e| failed(&e))
    }
}

impl Entry {
    /// Whether the release came to be. Where that cannot be seen it counts.
    async fn was_released(&self, runtime: &RuntimeEnv) -> bool {
        match Place::find(runtime, &self.target) {
            Ok(place) => place.had(&self.release).await,
            Err(_) => true,
        }
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
fn private(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)
}

#[cfg(not(unix))]
fn private(path: &Path) -> std::io::Result<File> {
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
