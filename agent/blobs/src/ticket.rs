//! Pulls that the agent admitted: nobody else gets anything from the proxy.

use crate::failure::{Blame, Failure};
use crate::manifest::Manifest;
use crate::sources::Place;
use crate::upstream::Upstream;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use edgeloom_common::digest::{Digest, hex};
use edgeloom_common::ids::NodeId;
use edgeloom_common::secret::Secret;
use edgeloom_common::units::Bytes;
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The name that Docker logs in with; the token is the password.
const USER: &str = "edgeloom";
/// Repositories on the proxy are `pull/<id>`.
pub(crate) const SPACE: &str = "pull";
/// An image and the indexes above it.
const MANIFESTS_MAX: usize = 4;
/// More than layers of an image.
const FAILURES_MAX: usize = 256;
/// The same for the manifests of a pull together.
const SIZES_MAX: usize = 2048;

/// Where the bytes of a pull came from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub registry: Bytes,
    pub neighbours: Bytes,
    /// Here already, from an earlier pull or another one at the same time.
    pub kept: Bytes,
}

/// One admitted pull.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) upstream: Upstream,
    authorization: String,
    registry: AtomicU64,
    neighbours: AtomicU64,
    kept: AtomicU64,
    named: Mutex<Named>,
    failures: Mutex<Failures>,
}

/// What did not come, of this pull alone: the next one asks again.
#[derive(Debug, Default)]
struct Failures {
    lasting: BTreeMap<Digest, Failure>,
    last: Option<Failure>,
    /// Docker asked for anything at all.
    asked: bool,
}

/// What manifests of a pull say, which neighbours have to know before they give any of it.
#[derive(Debug, Default)]
struct Named {
    /// Its manifests, index first: those that Docker asked for.
    manifests: Vec<Digest>,
    told: BTreeSet<NodeId>,
    /// Bytes of what they name.
    sizes: BTreeMap<Digest, u64>,
}

impl Admitted {
    /// Docker asks for this manifest. Of one image these are its own and that of its index.
    pub(crate) fn asks_for(&self, manifest: Digest) {
        self.failures(|failures| failures.asked = true);
        let manifests = &mut self.named.lock().unwrap_or_else(PoisonError::into_inner).manifests;
        if manifests.len() < MANIFESTS_MAX && !manifests.contains(&manifest) {
            manifests.push(manifest);
        }
    }

    /// This is one of them.
    pub(crate) fn learn(&self, manifest: &[u8]) {
        let Ok(manifest) = Manifest::read(manifest) else { return };
        let sizes = &mut self.named.lock().unwrap_or_else(PoisonError::into_inner).sizes;
        let room = SIZES_MAX.saturating_sub(sizes.len());
        sizes.extend(manifest.sizes().take(room));
    }

    /// How many bytes a blob has by its manifest, if that is known.
    pub(crate) fn size(&self, blob: &Digest) -> Option<u64> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).sizes.get(blob).copied()
    }

    /// The manifests that this neighbour is to be handed: all at the first question, none from then on.
    pub(crate) fn untold(&self, node: &NodeId) -> Vec<Digest> {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.told.insert(node.clone()) { named.manifests.clone() } else { Vec::new() }
    }

    /// This did not come.
    pub(crate) fn failed(&self, digest: Digest, failure: &Failure) {
        self.failures(|failures| {
            failures.last = Some(failure.clone());
            if failure.lasting && failures.lasting.len() < FAILURES_MAX {
                failures.lasting.insert(digest, failure.clone());
            }
        });
    }

    /// Why it does not come, if that is known already: Docker asks five times, with growing pauses.
    pub(crate) fn failure(&self, digest: &Digest) -> Option<Failure> {
        self.failures(|failures| failures.lasting.get(digest).cloned())
    }

    fn failures<T>(&self, work: impl FnOnce(&mut Failures) -> T) -> T {
        work(&mut self.failures.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn count(&self, place: &Place, bytes: u64) {
        let count = match place {
            Place::Registry(_) => &self.registry,
            Place::Neighbour(_) => &self.neighbours,
        };
        count.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn count_kept(&self, bytes: u64) {
        self.kept.fetch_add(bytes, Ordering::Relaxed);
    }
}

type Open = Arc<Mutex<HashMap<String, Arc<Admitted>>>>;

/// All admitted pulls.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tickets(Open);

/// A pull is admitted as long as this lives.
#[derive(Debug)]
pub struct Ticket {
    id: String,
    address: SocketAddr,
    token: Secret,
    admitted: Arc<Admitted>,
    open: Open,
}

impl Ticket {
    /// What Docker has to pull.
    #[must_use]
    pub fn reference(&self, digest: &Digest) -> String {
        format!("{}@{digest}", self.repository())
    }

    /// The name under which Docker knows the image afterwards, until somebody gives it another one.
    #[must_use]
    pub fn repository(&self) -> String {
        format!("{}/{SPACE}/{}", self.address, self.id)
    }

    /// User name and password for it.
    #[must_use]
    pub fn login(&self) -> (&'static str, &Secret) {
        (USER, &self.token)
    }

    /// Why the pull failed, as far as that is known here.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        self.admitted.failures(|failures| match failures.lasting.values().next() {
            Some(lasting) => Some(lasting.clone()),
            None if failures.asked => failures.last.clone(),
            None => Some(Failure {
                text: "docker did not come here for the image".to_owned(),
                blame: Blame::Store,
                lasting: true,
            }),
        })
    }

    /// Where the bytes came from so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let read = |count: &AtomicU64| Bytes(count.load(Ordering::Relaxed));
        Counts {
            registry: read(&self.admitted.registry),
            neighbours: read(&self.admitted.neighbours),
            kept: read(&self.admitted.kept),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        lock(&self.open).remove(&self.id);
    }
}

impl Tickets {
    pub(crate) fn admit(&self, upstream: Upstream, address: SocketAddr) -> Ticket {
        let (id, token) = (hex(&bytes::<8>()), URL_SAFE_NO_PAD.encode(bytes::<32>()));
        let authorization = format!("Basic {}", STANDARD.encode(format!("{USER}:{token}")));
        let [registry, neighbours, kept] = [0; 3].map(AtomicU64::new);
        let (named, failures) = <(Mutex<_>, Mutex<_>)>::default();
        let admitted =
            Arc::new(Admitted { upstream, authorization, registry, neighbours, kept, named, failures });
        lock(&self.0).insert(id.clone(), Arc::clone(&admitted));
        Ticket { id, address, token: Secret::from(token), admitted, open: Arc::clone(&self.0) }
    }

    /// The pull of this id, if that is its token.
    pub(crate) fn of(&self, id: &str, authorization: &str) -> Option<Arc<Admitted>> {
        let admitted = lock(&self.0).get(id).cloned()?;
        same(&admitted.authorization, authorization).then_some(admitted)
    }

    /// Somebody who holds any token.
    pub(crate) fn knows(&self, authorization: &str) -> bool {
        lock(&self.0).values().any(|admitted| same(&admitted.authorization, authorization))
    }
}

fn lock(open: &Open) -> MutexGuard<'_, HashMap<String, Arc<Admitted>>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// By digest, so that time tells nothing of how much of a guess was right.
fn same(one: &str, other: &str) -> bool {
    Digest::of(one.as_bytes()) == Digest::of(other.as_bytes())
}

fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the kernel has random numbers");
    bytes
}
