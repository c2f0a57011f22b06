//! What the worker knows, and what to do about it: pure, apart from the history it keeps.

use super::act::{Done, Todo};
use super::contact::Contact;
use super::containers::{Containers, Context};
use super::images::Images;
use super::kernel::KernelState;
use crate::engine::{EngineError, FoundContainer, TaskKey};
use crate::store::History;
use edgeloom_common::desired::{DesiredState, Version};
use std::sync::Arc;
use tokio::time::Instant;

/// Everything known of this node's desired and found state.
#[derive(Debug)]
pub(crate) struct NodeState {
    pub(super) desired: Option<Arc<DesiredState>>,
    pub(super) kernel: KernelState,
    pub(super) images: Images,
    pub(super) containers: Containers,
    pub(super) contact: Contact,
    /// Why the last document was refused, until one is taken.
    pub(super) refusal: String,
    pub(super) save_error: String,
    /// The version on disk.
    saved: Version,
    saving: bool,
    /// The version that could not be saved, until the next look.
    unsaved: Option<Version>,
}

impl NodeState {
    /// Knows nothing yet.
    #[must_use]
    pub(super) fn new(history: History, contact: Contact) -> Self {
        Self {
            desired: None,
            kernel: KernelState::default(),
            images: Images::default(),
            containers: Containers::new(history),
            contact,
            refusal: String::new(),
            save_error: String::new(),
            saved: Version::default(),
            saving: false,
            unsaved: None,
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
    pub(super) fn take(&mut self, document: DesiredState) {
        self.refusal.clear();
        self.images.retain(&document);
        self.containers.turn(self.desired.as_deref(), &document);
        self.desired = Some(Arc::new(document));
    }

    pub(super) fn refused(&mut self, reason: String) {
        self.refusal = reason;
    }

    /// This version is on disk.
    pub(super) fn saved(&mut self, version: Version) {
        self.saved = version;
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
            todo.extend(self.images.next_actions(document, now));
            todo.extend(self.contact.news_for_disk(document, now).map(Todo::KeepContact));
        }
        let network_applied = self.kernel.carries(self.version());
        let (images, contact) = (&self.images, &self.contact);
        let context = Context { document: document.as_deref(), images, contact, network_applied, now };
        todo.extend(self.containers.next_actions(document.as_deref(), &context));
        todo
    }

    fn save(&mut self, document: &Arc<DesiredState>) -> Option<Todo> {
        let version = document.version();
        if self.saving || self.saved == version || self.unsaved == Some(version) {
            return None;
        }
        self.saving = true;
        Some(Todo::Save(Arc::clone(document)))
    }

    /// Takes in how an action ended.
    pub(super) fn absorb(&mut self, done: Done, now: Instant) {
        match done {
            Done::Saved(version, saved) => {
                self.saving = false;
                match &saved {
                    Ok(()) => self.saved = version,
                    // A full disk is tried again at the next look, and reported until then.
                    Err(_) => self.unsaved = Some(version),
                }
                self.save_error = saved.err().map(|error| error.to_string()).unwrap_or_default();
            }
            Done::NetworkEnsured(pool, ensured) => self.kernel.ensured(pool, ensured, now),
            Done::Applied(version, applied) => self.kernel.applied(version, applied, now),
            Done::Listed(begun, listed) => self.containers.listed(begun, listed, now),
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
