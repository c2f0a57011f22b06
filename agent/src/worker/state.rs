//! What the worker knows, and what to do about it: pure, apart from the history it keeps.

use super::act::{Done, Todo};
use super::contact::Contact;
use super::containers::{Containers, Context};
use super::images::Images;
use super::kernel::KernelState;
use crate::collect::Collection;
use crate::counts::Counts;
use crate::engine::{EngineError, FoundContainer, TaskKey};
use crate::store::History;
use crate::wire::Received;
use edgeloom_common::confidential::Confidential;
use edgeloom_common::desired::{DesiredState, Version};
use edgeloom_common::report::CollectedImage;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::time::Instant;

/// Removed images that are told.
const REMOVED_MAX: usize = 16;

/// Last counts of containers, and since when somebody hears them.
#[derive(Debug, Default)]
pub(super) struct Ends {
    pub(super) counts: Counts,
    pub(super) connected: Option<Instant>,
}

/// Everything known of this node's desired and found state.
#[derive(Debug)]
pub(crate) struct NodeState {
    pub(super) desired: Option<Arc<DesiredState>>,
    /// What the document names.
    pub(super) confidential: Arc<Confidential>,
    pub(super) kernel: KernelState,
    pub(super) images: Images,
    pub(super) containers: Containers,
    pub(super) contact: Contact,
    pub(super) ends: Ends,
    /// Why the last document was refused, until one is taken.
    pub(super) refusal: String,
    pub(super) save_error: String,
    /// Images that were removed to make room, newest last.
    pub(super) removed: VecDeque<CollectedImage>,
    /// Why there is too little room.
    pub(super) room_error: String,
    /// The version on disk.
    saved: Version,
    /// The values of the document in force are others than when it was written, or being written, last.
    values_changed: bool,
    saving: bool,
    /// The version that could not be saved, until the next look.
    unsaved: Option<Version>,
    /// The version whose saving ended last, well or not.
    offered: Version,
}

impl NodeState {
    /// Knows nothing yet.
    #[must_use]
    pub(super) fn new(history: History, contact: Contact) -> Self {
        Self {
            desired: None,
            confidential: Arc::default(),
            kernel: KernelState::default(),
            images: Images::default(),
            containers: Containers::new(history),
            contact,
            ends: Ends::default(),
            refusal: String::new(),
            save_error: String::new(),
            removed: VecDeque::new(),
            room_error: String::new(),
            saved: Version::default(),
            values_changed: false,
            saving: false,
            unsaved: None,
            offered: Version::default(),
        }
    }

    /// The document in force.
    #[must_use]
    pub(crate) fn desired(&self) -> Option<&DesiredState> {
        self.desired.as_deref()
    }

    /// The version in force; zero without a document.
    #[must_use]
    pub(crate) fn version(&self) -> Version {
        self.desired().map(DesiredState::version).unwrap_or_default()
    }

    pub(super) fn history(&self) -> &History {
        self.containers.history()
    }

    /// Puts a document in force.
    pub(super) fn take(&mut self, received: Received) {
        let Received { document, confidential } = received;
        self.refusal.clear();
        self.images.retain(&document);
        self.containers.turn(self.desired.as_deref(), &document);
        self.learn(&document, &confidential);
        self.desired = Some(Arc::new(document));
    }

    /// Takes in the values that came with the document in force, once more.
    pub(super) fn take_again(&mut self, received: &Received) {
        let before = Arc::clone(&self.confidential);
        self.learn(&received.document, &received.confidential);
        if self.confidential != before {
            self.values_changed = true;
            self.unsaved = None;
            self.refusal.clear();
        }
    }

    /// Keeps the values that the document names: as they came, or as they were where none came.
    fn learn(&mut self, document: &DesiredState, came: &Confidential) {
        let held = &self.confidential;
        let names = document.containers.iter().flat_map(|spec| spec.secrets.keys());
        let secrets = newest(names, [&came.secrets, &held.secrets]);
        let logins = newest(document.logins.keys(), [&came.logins, &held.logins]);
        if held.logins != logins {
            self.images.retry_now();
        }
        self.confidential = Arc::new(Confidential { secrets, logins });
    }

    pub(super) fn refused(&mut self, reason: String) {
        self.refusal = reason;
    }

    /// This version is on disk.
    pub(super) fn saved(&mut self, version: Version) {
        self.saved = version;
        self.offered = version;
    }

    /// A new start would go on from this document, or from none after it. Until then nothing is begun or ended for
    /// it, nor is it confirmed: the one before would be in force again, with tasks that run elsewhere by then. A
    /// disk that takes nothing is told as a problem, and must not keep jobs from being stopped.
    pub(super) fn is_kept(&self) -> bool {
        self.offered == self.version()
    }

    pub(super) fn look_again(&mut self) {
        self.unsaved = None;
        self.containers.look_again();
        self.kernel.look_again();
    }

    pub(super) fn containers_changed(&mut self) {
        self.containers.look_again();
    }

    pub(super) fn engine_restarted(&mut self) {
        self.images.forget();
        self.containers.retry_now();
        self.kernel.retry_now();
    }

    pub(super) fn collected(&mut self, collection: Collection) {
        let Collection { removed, let_go, problem, is_tight } = collection;
        self.removed.extend(removed);
        self.removed.drain(..self.removed.len().saturating_sub(REMOVED_MAX));
        self.room_error = problem;
        self.images.collected(let_go, is_tight);
    }

    pub(super) fn network_changed(&mut self) {
        self.kernel.look_again();
    }

    pub(super) fn is_pulling(&self) -> bool {
        self.images.is_pulling()
    }

    /// The end of the next pause.
    pub(super) fn next_pause(&self, now: Instant) -> Option<Instant> {
        let silence = self.desired().and_then(|document| self.contact.next_end(document, now));
        let pauses = self.images.pauses().chain(self.containers.pauses()).chain(self.kernel.pauses());
        pauses.chain(silence).filter(|until| now < *until).min()
    }

    /// Reconciling goes on from what disk and kernel hold: the kernel was offered the document in force, whatever
    /// came of it, or there is none.
    pub(super) fn has_begun(&self) -> bool {
        self.desired.is_none() || self.kernel.was_tried()
    }

    /// What the worker waits for will not come.
    pub(super) fn is_stuck(&self, now: Instant) -> bool {
        self.kernel.is_stuck(now)
    }

    /// Whatever can begin now. Each is marked as under way, so asking twice gives it once.
    pub(super) fn next_actions(&mut self, now: Instant) -> Vec<Todo> {
        let document = self.desired.clone();
        let mut todo = Vec::new();
        if let Some(document) = &document {
            todo.extend(self.save(document));
            todo.extend(self.kernel.next_actions(document, now));
            todo.extend(self.images.next_actions(document, &self.confidential, now));
            todo.extend(self.contact.news_for_disk(document, now).map(Todo::KeepContact));
        }
        let network_applied = self.kernel.carries(self.version());
        let (images, contact, confidential) = (&self.images, &self.contact, &*self.confidential);
        let document = document.as_deref();
        let context = Context { document, images, contact, confidential, network_applied, now };
        let kept = document.filter(|_| self.is_kept());
        todo.extend(self.containers.next_actions(kept, &context));
        todo
    }

    fn save(&mut self, document: &Arc<DesiredState>) -> Option<Todo> {
        let version = document.version();
        let is_kept = self.saved == version && !self.values_changed;
        if self.saving || is_kept || self.unsaved == Some(version) {
            return None;
        }
        self.saving = true;
        self.values_changed = false;
        Some(Todo::Save(Arc::clone(document), Arc::clone(&self.confidential)))
    }

    /// Takes in how an action ended.
    pub(super) fn absorb(&mut self, done: Done, now: Instant) {
        match done {
            Done::Saved(version, saved) => {
                self.saving = false;
                self.offered = version;
                match &saved {
                    Ok(()) => self.saved = version,
                    // A full disk is tried again at the next look, and reported until then.
                    Err(_) => (self.unsaved, self.values_changed) = (Some(version), true),
                }
                self.save_error = saved.err().map(|error| error.to_string()).unwrap_or_default();
            }
            Done::NetworkEnsured(pool, ensured) => self.kernel.ensured(pool, ensured, now),
            Done::Applied(version, applied) => self.kernel.applied(version, applied, now),
            Done::Listed(turns, listed) => self.containers.listed(turns, listed, now),
            Done::ImageLooked(image, found) => self.images.looked(&image, found, now),
            Done::Pulled(image, pulled) => self.images.pulled(&image, pulled, now),
            Done::Started(key, container, started) => self.started(key, container, &started, now),
            Done::Limited(container, limited) => self.containers.limited(container, limited, now),
            Done::Stopped(key, stopped) => self.containers.stopped(key, stopped, now),
            Done::ContactKept(kept) => {
                if let Err(error) = kept {
                    tracing::warn!(%error, "the last contact with the controller is not kept");
                }
                self.contact.kept();
            }
            Done::Removed(container, removed) => self.containers.removed(&container, removed, now),
        }
    }

    /// A start that was refused may be the image's or the network's fault: both are looked at again.
    fn started(
        &mut self,
        key: TaskKey,
        container: Option<FoundContainer>,
        started: &Result<(), EngineError>,
        now: Instant,
    ) {
        if started.is_err() {
            let wanted = self.desired.iter().flat_map(|document| &document.containers);
            wanted.filter(|spec| TaskKey::of(spec) == key).for_each(|spec| self.images.doubt(&spec.image));
            self.kernel.doubt_network();
        }
        self.containers.started(key, container, started, now);
    }
}

/// The first entry of each name.
fn newest<'a, K: Ord + Clone + 'a, V: Clone>(
    names: impl Iterator<Item = &'a K>,
    from: [&BTreeMap<K, V>; 2],
) -> BTreeMap<K, V> {
    let find = |name: &K| from.iter().find_map(|map| map.get(name)).cloned();
    names.filter_map(|name| Some((name.clone(), find(name)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contact::Past;
    use crate::engine::FoundState;
    use crate::engine::fake::{document, found, spec};
    use crate::store::StateError;
    use std::io::ErrorKind;

    /// What is done to containers; the kernel has taken every document.
    fn steps(state: &mut NodeState) -> Vec<&'static str> {
        let now = Instant::now();
        let pool = document(1, vec![]).pool;
        state.absorb(Done::NetworkEnsured(pool, Ok(None)), now);
        let mut todo = state.next_actions(now);
        state.absorb(Done::Applied(state.version(), Ok(vec![])), now);
        todo.extend(state.next_actions(now));
        let step = |todo: Todo| match todo {
            Todo::Create(..) => Some("create"),
            Todo::Remove(_) => Some("remove"),
            _ => None,
        };
        todo.into_iter().filter_map(step).collect()
    }

    fn with_container_of_the_first_document(disk: &tempfile::TempDir) -> NodeState {
        let contact = Contact::at_start(Past::Nothing, Instant::now());
        let mut state = NodeState::new(History::open(disk.path()).0, contact);
        state.take(document(1, vec![spec("a", "h1")]).into());
        state.saved(state.version());
        let first = state.next_actions(Instant::now());
        assert!(first.iter().any(|todo| matches!(todo, Todo::List(0))));
        state.absorb(Done::Listed(0, Ok(vec![found("a", "h1", FoundState::Running)])), Instant::now());
        state
    }

    #[test]
    fn nothing_is_ended_nor_confirmed_before_a_new_start_would_know_of_it() {
        let disk = tempfile::tempdir().unwrap();
        let mut state = with_container_of_the_first_document(&disk);
        assert!(steps(&mut state).is_empty() && state.observed().network_applied);
        state.take(document(2, vec![]).into());
        assert!(steps(&mut state).is_empty() && !state.observed().network_applied);
        state.absorb(Done::Saved(state.version(), Ok(())), Instant::now());
        assert!(state.observed().network_applied);
        assert_eq!(steps(&mut state), ["remove"]);
    }

    #[test]
    fn a_disk_that_takes_nothing_does_not_keep_a_job_from_being_stopped() {
        let disk = tempfile::tempdir().unwrap();
        let mut state = with_container_of_the_first_document(&disk);
        state.take(document(2, vec![]).into());
        assert!(steps(&mut state).is_empty());
        let full = StateError::Write { path: "desired.json".into(), source: ErrorKind::StorageFull.into() };
        state.absorb(Done::Saved(state.version(), Err(full)), Instant::now());
        assert!(state.observed().network_applied);
        assert_eq!(steps(&mut state), ["remove"]);
        state.look_again();
        assert!(state.observed().network_applied, "another attempt takes nothing back");
    }

    #[test]
    fn a_start_under_way_is_told_until_its_container_is_gone_though_nobody_wants_it_any_more() {
        let disk = tempfile::tempdir().unwrap();
        let mut state = with_container_of_the_first_document(&disk);
        let b = TaskKey::of(&spec("b", "h1"));
        let told = |state: &NodeState| state.observed().containers.iter().any(|it| it.task == b.task);
        state.take(document(2, vec![spec("a", "h1"), spec("b", "h1")]).into());
        state.saved(state.version());
        assert!(steps(&mut state).is_empty(), "its image is looked for");
        state.absorb(Done::ImageLooked(spec("b", "h1").image, Ok(true)), Instant::now());
        assert_eq!(steps(&mut state), ["create"]);
        state.take(document(3, vec![spec("a", "h1")]).into());
        state.saved(state.version());
        assert!(told(&state) && steps(&mut state).is_empty());
        // Docker dies in the middle, and has started it nevertheless.
        let away = EngineError::Unreachable { socket: "fake".to_owned(), reason: "away".to_owned() };
        state.absorb(Done::Started(b.clone(), None, Err(away)), Instant::now());
        assert!(told(&state) && !state.observed().converged);
        state.engine_restarted();
        assert!(told(&state));
        let both = ["a", "b"].map(|task| found(task, "h1", FoundState::Running)).to_vec();
        let turns = state.next_actions(Instant::now()).into_iter().find_map(|todo| match todo {
            Todo::List(turns) => Some(turns),
            _ => None,
        });
        state.absorb(Done::Listed(turns.unwrap(), Ok(both)), Instant::now());
        assert_eq!(steps(&mut state), ["remove"]);
        state.absorb(Done::Removed(found("b", "h1", FoundState::Running), Ok(())), Instant::now());
        assert!(!told(&state));
    }
}
