//! Where a release goes: a folder here or a prefix in an object store, with the few steps that publishing needs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, plan_datafusion_err};
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    self, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload,
};
use futures::TryStreamExt;

use super::folder::{self, LockedFolder, blocking};
use super::ledger::BegunEntry;
use super::manifest::{MANIFEST, Manifest};
use super::unfinished;
use super::writer::hex;

/// What the names of staging folders begin with; a release keeps its folder.
const STAGING: &str = "data-";

/// In an object store nobody can tell whether a run is alive, so its staging is left alone for so long.
const ABANDONED: Duration = Duration::from_secs(7 * 24 * 3600);

/// The place of one release.
#[derive(Debug)]
pub(super) struct Place {
    url: ListingTableUrl,
    store: Arc<dyn ObjectStore>,
    /// The folder, if it is one of this machine.
    folder: Option<PathBuf>,
}

/// A staging folder of this run. Here it is locked while the run lives, and goes with it unless it is committed.
#[derive(Debug)]
pub(super) struct Staging {
    /// The name of the release.
    pub release: String,
    _folder: Option<LockedFolder>,
}

/// How a commit ended without success.
#[derive(Debug)]
pub(super) enum NotCommitted {
    /// Nothing is visible.
    Refused(DataFusionError),
    /// The store did not say whether it took the manifest, so nothing may be removed.
    Unknown(DataFusionError),
}

impl Place {
    /// The place that a path or URL names.
    pub fn find(runtime: &RuntimeEnv, target: &str) -> Result<Self> {
        if target.trim().is_empty() {
            return Err(refused("is empty: name a folder or the URL of one"));
        }
        if target.contains(['*', '?', '[']) {
            return Err(refused("must be one folder, without *, ? or ["));
        }
        let url = ListingTableUrl::parse(format!("{}/", target.trim_end_matches('/')))
            .map_err(|e| refused(format!("'{target}': {}", e.strip_backtrace())))?;
        let store = runtime.object_store(&url).map_err(|error| {
            let place = url.object_store();
            // That nobody registered one is an internal error, whose text is for programmers.
            let reason = match &error {
                DataFusionError::Internal(_) => String::new(),
                _ => format!(": {}", error.strip_backtrace()),
            };
            refused(format!(
                "'{target}': the session has no object store for {place}{reason}"
            ))
        })?;
        let local = url.scheme() == "file";
        let folder = local.then(|| url.get_url().to_file_path().ok()).flatten();
        Ok(Self { url, store, folder })
    }

    pub fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    pub fn url(&self) -> &ListingTableUrl {
        &self.url
    }

    /// The URL of something in the place.
    pub fn url_of(&self, name: &str) -> Result<ListingTableUrl> {
        let url = self.url.get_url().join(name);
        let url = url.map_err(|e| exec_datafusion_err!("publish: {e}"))?;
        ListingTableUrl::try_new(url, None)
    }

    pub fn path_of(&self, name: &str) -> Path {
        name.split('/')
            .fold(self.url.prefix().clone(), |path, part| path.join(part))
    }

    /// Refuses a place that holds anything but staging, and sweeps the staging of runs that are known to be dead.
    pub async fn prepare(&self) -> Result<()> {
        let committed = self.manifest().await?;
        let (staging, others) = self.contents().await?;
        let kept = committed.as_ref().map(|manifest| manifest.release.as_str());
        for release in staging.iter().filter(|r| Some(r.as_str()) != kept) {
            if self.is_dead(release).await? {
                self.sweep(release).await?;
            }
        }
        if committed.is_some() {
            return Err(occupied("holds a release already"));
        }
        if others > 0 {
            let things = if others == 1 { "thing" } else { "things" };
            return Err(occupied(format!("holds {others} other {things}")));
        }
        Ok(())
    }

    /// Begins a run of its own.
    pub async fn begin(&self, release: String) -> Result<Staging> {
        let _folder = match self.staging_folder(&release) {
            Some(staging) => Some(blocking(move || folder::begin(&staging)).await?),
            None => None,
        };
        Ok(Staging { release, _folder })
    }

    /// Makes the release visible: one step, and only if there is no other.
    ///
    /// Here the manifest is written in staging, forced to disk together with the data files, and linked to its name; in
    /// an object store it is put under the condition that nothing is there. The entry in a ledger counts from the moment
    /// before, and is gone again if the release is refused.
    pub async fn commit(
        &self,
        manifest: &Manifest,
        entry: Option<Arc<BegunEntry>>,
    ) -> Result<(), NotCommitted> {
        let text = manifest.to_json().map_err(NotCommitted::Refused)?;
        if let Some(folder) = self.folder.clone() {
            let staging = folder.join(staging_name(&manifest.release));
            let committed = blocking(move || {
                let committed = folder::commit(&folder, &staging, &text, entry.as_deref());
                committed.map_err(|e| match e.kind() {
                    std::io::ErrorKind::AlreadyExists => {
                        occupied("got a release of another run meanwhile")
                    }
                    _ => DataFusionError::IoError(e),
                })
            });
            return committed.await.map_err(NotCommitted::Refused);
        }
        if let Some(entry) = entry.clone() {
            let counted =
                blocking(move || Ok(unfinished::finish(&[entry.path()], || entry.count())?));
            counted.await.map_err(NotCommitted::Refused)?;
        }
        let committed = self.put_manifest(text).await;
        if let (Err(NotCommitted::Refused(_)), Some(entry)) = (&committed, entry) {
            let forgotten = blocking(move || Ok(entry.forget()?)).await;
            forgotten.map_err(NotCommitted::Refused)?;
        }
        committed
    }

    /// Puts the manifest into an object store.
    async fn put_manifest(&self, text: String) -> Result<(), NotCommitted> {
        let payload = PutPayload::from_bytes(Bytes::from(text.clone()));
        let path = self.path_of(MANIFEST);
        let Err(error) = self
            .store
            .put_opts(&path, payload, PutMode::Create.into())
            .await
        else {
            return Ok(());
        };
        // A repeated request may find the manifest that its first attempt has put.
        match self.read(&path).await {
            Ok(Some(found)) if found.as_ref() == text.as_bytes() => Ok(()),
            Ok(Some(_)) => Err(NotCommitted::Refused(occupied(
                "got a release of another run meanwhile",
            ))),
            Ok(None) => Err(NotCommitted::Refused(error.into())),
            Err(_) => Err(NotCommitted::Unknown(error.into())),
        }
    }

    /// Removes the staging of all other runs. Only whoever has committed may: none of them can commit any more.
    pub async fn sweep_others(&self, release: &str) -> Result<()> {
        let (staging, _) = self.contents().await?;
        for other in staging.iter().filter(|other| *other != release) {
            self.sweep(other).await?;
        }
        Ok(())
    }

    /// Removes the staging of a run.
    pub async fn sweep(&self, release: &str) -> Result<()> {
        if let Some(staging) = self.staging_folder(release) {
            return blocking(move || folder::sweep(&staging)).await;
        }
        for object in self.objects(release).await? {
            match self.store.delete(&object.location).await {
                Err(object_store::Error::NotFound { .. }) | Ok(()) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// The manifest, if there is one.
    pub async fn manifest(&self) -> Result<Option<Manifest>> {
        match self.read(&self.path_of(MANIFEST)).await? {
            None => Ok(None),
            Some(bytes) => Manifest::from_json(&bytes).map(Some),
        }
    }

    /// All bytes of an object, if there is one.
    pub async fn read(&self, path: &Path) -> Result<Option<Bytes>> {
        read(self.store.as_ref(), path).await
    }

    /// The releases whose staging is here, and the number of other things.
    async fn contents(&self) -> Result<(Vec<String>, usize)> {
        let mut names = vec![];
        if let Some(folder) = self.folder.clone() {
            names = blocking(move || folder::names(&folder)).await?;
        } else {
            let prefix = self.url.prefix();
            let objects = self.store.list(Some(prefix));
            let objects: Vec<ObjectMeta> = objects.try_collect().await?;
            for object in &objects {
                let first = object.location.prefix_match(prefix);
                let first = first.and_then(|mut parts| parts.next());
                names.extend(first.map(|part| part.as_ref().to_owned()));
            }
            names.sort_unstable();
            names.dedup();
        }
        names.retain(|name| name != MANIFEST);
        let (staging, others): (Vec<_>, Vec<_>) = names
            .into_iter()
            .partition(|name| release_of(name).is_some());
        let releases = staging.iter().filter_map(|name| release_of(name));
        Ok((releases.map(str::to_owned).collect(), others.len()))
    }

    /// The staging of a run, if it is a folder of this machine.
    fn staging_folder(&self, release: &str) -> Option<PathBuf> {
        let folder = self.folder.as_ref();
        folder.map(|folder| folder.join(staging_name(release)))
    }

    async fn objects(&self, release: &str) -> Result<Vec<ObjectMeta>> {
        let path = self.path_of(&staging_name(release));
        Ok(self.store.list(Some(&path)).try_collect().await?)
    }

    /// Whether a run is known to be dead: here because nobody holds its lock, elsewhere because it is very old.
    async fn is_dead(&self, release: &str) -> Result<bool> {
        if let Some(staging) = self.staging_folder(release) {
            return blocking(move || Ok(folder::is_dead(&staging))).await;
        }
        let objects = self.objects(release).await?;
        let newest = objects.iter().map(|object| object.last_modified).max();
        let age = newest.map(|time| Utc::now() - time);
        Ok(age.is_some_and(|age| age.to_std().is_ok_and(|age| age > ABANDONED)))
    }
}

/// The folder of a release.
pub(super) fn staging_name(release: &str) -> String {
    format!("{STAGING}{release}")
}

/// The release whose folder has this name.
fn release_of(name: &str) -> Option<&str> {
    let release = name.strip_prefix(STAGING)?;
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    (release.len() == 32 && release.bytes().all(hex)).then_some(release)
}

/// A random name.
pub(super) fn random_name() -> Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|e| exec_datafusion_err!("no randomness from the operating system: {e}"))?;
    Ok(hex(&bytes))
}

/// All bytes of an object, if there is one.
pub(super) async fn read(store: &dyn ObjectStore, path: &Path) -> Result<Option<Bytes>> {
    match store.get(path).await {
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(e) => Err(e.into()),
        Ok(found) => match found.bytes().await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) => Err(e.into()),
        },
    }
}

fn refused(message: impl AsRef<str>) -> DataFusionError {
    plan_datafusion_err!("publish: target {}", message.as_ref())
}

fn occupied(message: impl AsRef<str>) -> DataFusionError {
    exec_datafusion_err!(
        "publish: the target {}; a release is never mixed with anything else, so name another target",
        message.as_ref()
    )
}
