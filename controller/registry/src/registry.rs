//! [`Registry`]: images by name, out of the catalogue where that is sure, from their registry otherwise.

use crate::cache::Cache;
use crate::catalogue::{Catalogue, Place};
use crate::client::{Asked, Client, Count, Found, Head};
use crate::error::{ClientError, RegistryError};
use crate::manifest::Platform;
use crate::notified::{Envelope, Hint};
use crate::reference::{Reference, Version};
use crate::rota::Outcome;
use crate::views::Tally;
use edgeloom_common::confidential::Login;
use edgeloom_common::desired::ImageRef;
use edgeloom_common::digest::Digest;
use edgeloom_common::images::{ImageList, WatchView};
use edgeloom_common::registry::RegistryHost;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::broadcast;

/// Registries whose last login is remembered.
const LOGINS_MAX: usize = 1024;
/// Hints that wait for the watcher.
const HINTS: usize = 1024;

/// What the registries are opened with.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Registries (host:port) spoken to in plain HTTP.
    pub insecure: Vec<String>,
    /// The folder of the cache; none: nothing outlives the process.
    pub cache: Option<PathBuf>,
}

/// An image as its registry has it, or had it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub reference: ImageRef,
    /// At least one; each architecture once.
    pub platforms: Vec<Platform>,
    /// The registry is out of reach for this reason; the image is what it had before.
    pub stale: Option<RegistryError>,
}

/// Resolves names, and knows what the watcher has found.
#[derive(Debug)]
pub struct Registry {
    pub(crate) client: Client,
    catalogue: Mutex<Catalogue>,
    cache: Mutex<Option<Cache>>,
    /// Digests of the logins that registries were asked with last.
    logins: Mutex<BTreeMap<RegistryHost, Option<Digest>>>,
    pub(crate) hints: broadcast::Sender<Hint>,
}

impl Registry {
    /// A client with what the cache holds. A cache that cannot be used is told in the log, and done without.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn open(settings: Settings) -> Result<Self, ClientError> {
        let mut catalogue = Catalogue::default();
        let mut cache = None;
        if let Some(folder) = settings.cache {
            match Cache::open(&folder).and_then(|cache| restore(cache, &mut catalogue)) {
                Ok(opened) => {
                    catalogue = catalogue.with_cache();
                    cache = Some(opened);
                }
                Err(error) => {
                    tracing::warn!(folder = %folder.display(), %error, "images are not kept over a restart");
                }
            }
        }
        let hints = broadcast::Sender::new(HINTS);
        let client = Client::new(settings.insecure)?;
        let (catalogue, cache) = (Mutex::new(catalogue), Mutex::new(cache));
        Ok(Self { client, catalogue, cache, logins: Mutex::default(), hints })
    }

    /// Whether a registry honours a login.
    ///
    /// # Errors
    /// When it does not, or does not answer.
    pub async fn check(&self, host: &RegistryHost, login: &Login) -> Result<(), RegistryError> {
        self.client.check(host, login).await
    }

    /// Manifest digest and layers of an image, now. A name with a digest that the repository is known to have
    /// takes no request, one with a tag that names what it named before takes one without a body. While the registry is away it is what it was.
    ///
    /// # Errors
    /// When the registry has no such image, or none that is sound, or is away and it is not known from before.
    pub async fn resolve(&self, image: &str, login: Option<&Login>) -> Result<Image, RegistryError> {
        let name = Reference::parse(image).ok_or_else(|| RegistryError::Name { image: image.to_owned() })?;
        let Reference { registry: host, repository, .. } = &name;
        let asked = Asked { client: &self.client, subject: image, host, login, part: repository };
        let familiar = self.is_familiar(host, login);
        let (digest, stale) = match &name.version {
            Version::Digest(digest) if familiar && self.lock().has(host, repository, *digest) => {
                (*digest, None)
            }
            Version::Digest(digest) => (*digest, self.permitted(asked, *digest).await?),
            Version::Tag(tag) => self.tagged(asked, tag).await?,
        };
        let known = self.lock().table.platforms(&digest);
        let platforms = match known {
            Some(platforms) => platforms,
            None => {
                let found = self.learn(asked, digest).await?;
                self.lock().keep(&found);
                found.platforms
            }
        };
        let reference =
            ImageRef { repository: name.name.clone(), digest: digest.to_string(), name: image.to_owned() };
        Ok(Image { reference, platforms, stale })
    }

    /// Whether the registry was asked with this login before: what is known is for those who may know it.
    fn is_familiar(&self, host: &RegistryHost, login: Option<&Login>) -> bool {
        let text = |login: &Login| format!("{}:{}", login.username, login.password.expose());
        let login = login.map(|login| Digest::of(text(login).as_bytes()));
        let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        if logins.len() >= LOGINS_MAX {
            logins.clear();
        }
        logins.insert(host.clone(), login) == Some(login)
    }

    /// Asks whether an image may be had, without fetching it; says why that is not known now.
    async fn permitted(
        &self,
        asked: Asked<'_>,
        digest: Digest,
    ) -> Result<Option<RegistryError>, RegistryError> {
        match asked.head(&digest.to_string(), None).await {
            Err(error @ RegistryError::Unreachable { .. }) if self.lock().table.contains(&digest) => {
                Ok(Some(error))
            }
            result => result.map(|_| None),
        }
    }

    /// What a tag names; and why that is not from now. It is asked for however lately it was seen: whoever pushes
    /// and runs wants what was pushed.
    async fn tagged(
        &self,
        asked: Asked<'_>,
        tag: &str,
    ) -> Result<(Digest, Option<RegistryError>), RegistryError> {
        let place = Place { host: asked.host.clone(), repository: asked.part.into(), tag: tag.into() };
        let known = self.lock().tag(&place).cloned().unwrap_or_default();
        match self.refresh(asked, &place).await {
            Ok((digest, _)) => Ok((digest, None)),
            Err(error @ RegistryError::Unreachable { .. }) => {
                known.digest.map(|digest| (digest, Some(error.clone()))).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Asks what a tag names, and learns it if it is new.
    pub(crate) async fn refresh(
        &self,
        asked: Asked<'_>,
        place: &Place,
    ) -> Result<(Digest, Outcome), RegistryError> {
        let known = self.lock().tag(place).cloned().unwrap_or_default();
        let entity = known.entity();
        let head = asked.head(&place.tag, entity.as_deref()).await?;
        let body = match (head, known.digest) {
            (Head::Same, Some(digest)) if entity.is_some() => return Ok(self.confirm(place, digest)),
            (Head::Digest { digest, .. }, _) if self.is_sound(&known.problem, digest) => {
                return Ok(self.confirm(place, digest));
            }
            (Head::Digest { digest, etag }, _) => asked.by_digest(digest).await?.with_etag(etag),
            (Head::Same | Head::Untold, _) => asked.by_tag(&place.tag).await?,
        };
        if self.is_sound(&known.problem, body.digest()) {
            return Ok(self.confirm(place, body.digest()));
        }
        let found = asked.found(body, &|layer| self.lock().table.has_layer(layer)).await?;
        let digest = found.digest;
        Ok((digest, self.lock().found(place, found, now_ms())))
    }

    fn is_sound(&self, problem: &Option<Box<str>>, digest: Digest) -> bool {
        problem.is_none() && self.lock().table.is_whole(&digest)
    }

    fn confirm(&self, place: &Place, digest: Digest) -> (Digest, Outcome) {
        (digest, self.lock().confirm(place, digest, now_ms()))
    }

    async fn learn(&self, asked: Asked<'_>, digest: Digest) -> Result<Found, RegistryError> {
        let body = asked.by_digest(digest).await?;
        asked.found(body, &|layer| self.lock().table.has_layer(layer)).await
    }

    /// Images whose name has this in it, and how each registry is.
    #[must_use]
    pub fn images(&self, part: &str) -> ImageList {
        let catalogue = self.lock();
        ImageList { images: catalogue.views(part), registries: catalogue.watch_views() }
    }

    /// How each registry is.
    #[must_use]
    pub fn standings(&self) -> Vec<WatchView> {
        self.lock().watch_views()
    }

    /// What registries were asked since the start, by address; those beyond a bound together.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, Count> {
        self.client.counts.all()
    }

    /// How many images of each watched registry are how.
    #[must_use]
    pub fn tallies(&self) -> Vec<Tally> {
        self.lock().tallies()
    }

    /// Takes in what a registry tells of itself; how many of its events are of interest. Without `registry` it is
    /// the one that the events name.
    pub fn notified(&self, envelope: &Envelope, registry: Option<&RegistryHost>) -> usize {
        let hints = envelope.hints(registry);
        let count = hints.len();
        for hint in hints {
            // Without a watcher nobody listens, and nothing is lost.
            let _ = self.hints.send(hint);
        }
        count
    }

    /// Lets go of what nothing names, and brings the cache up to date. Waits for the disk.
    pub fn save(&self) {
        self.lock().table.sweep();
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = cache.as_mut() else { return };
        let (lines, outdated) = {
            let mut catalogue = self.lock();
            let outdated = open.is_outdated();
            let lines = catalogue.take_lines();
            (if outdated { catalogue.all_lines() } else { lines }, outdated)
        };
        let written = match (outdated, lines.is_empty()) {
            (true, _) => open.replace(&lines),
            (false, true) => Ok(()),
            (false, false) => open.append(&lines),
        };
        if let Err(error) = written {
            tracing::warn!(%error, "images are not kept over a restart");
            *cache = None;
            self.lock().without_cache();
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Catalogue> {
        self.catalogue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes in what the cache holds, and writes it anew: numbers of layers are given out afresh.
fn restore(mut cache: Cache, catalogue: &mut Catalogue) -> std::io::Result<Cache> {
    catalogue.restore(cache.records()?);
    cache.replace(&catalogue.all_lines())?;
    Ok(cache)
}

/// Wall-clock time, for people.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
