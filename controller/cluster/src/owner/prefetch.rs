//! Images to hold ready: asked for, listed, released; and what nodes removed to make room.

use super::Owner;
use crate::error::PrefetchError;
use crate::events::Kind;
use crate::model::Event;
use crate::prefetch::{ENTRIES_MAX, Entry};
use edgeloom_common::desired::ImageRef;
use edgeloom_common::ids::NodeId;
use edgeloom_common::prefetch::{Hold, PrefetchOn, PrefetchView};
use edgeloom_common::report::Observed;

impl Owner {
    /// Nodes get it with their next documents.
    pub(crate) fn prefetch(
        &mut self,
        image: ImageRef,
        on: PrefetchOn,
        hold: Hold,
    ) -> Result<PrefetchView, PrefetchError> {
        let before = self.model().prefetch.find(&image.name);
        if before.is_none() && self.model().prefetch.is_full() {
            return Err(PrefetchError::TooMany { max: ENTRIES_MAX });
        }
        let nodes = match on {
            PrefetchOn::Same => before.and_then(|entry| entry.nodes.clone()),
            PrefetchOn::All => None,
            PrefetchOn::Nodes(nodes) if nodes.is_empty() => return Err(PrefetchError::NoNode),
            PrefetchOn::Nodes(nodes) => Some(nodes.into_iter().collect()),
        };
        for node in nodes.iter().flatten() {
            if !self.nodes.table.contains_key(node) && !self.model().topology.contains_key(node) {
                return Err(PrefetchError::UnknownNode(node.clone()));
            }
        }
        let name = image.name.clone();
        let entry = Entry { image, pinned: hold == Hold::Pinned, nodes };
        self.keep_ready(Event::PrefetchKept { entry: Box::new(entry) })?;
        let entry = self.model().prefetch.find(&name).ok_or(PrefetchError::Unavailable)?;
        Ok(self.ready_view(entry))
    }

    pub(crate) fn release(&mut self, image: String) -> Result<PrefetchView, PrefetchError> {
        let entry = self.model().prefetch.find(&image);
        let view = entry.map(|entry| self.ready_view(entry));
        let view = view.ok_or_else(|| PrefetchError::NotHeld { image: image.clone() })?;
        self.keep_ready(Event::PrefetchReleased { image })?;
        Ok(view)
    }

    pub(crate) fn prefetched(&self) -> Vec<PrefetchView> {
        self.model().prefetch.all().map(|entry| self.ready_view(entry)).collect()
    }

    fn ready_view(&self, entry: &Entry) -> PrefetchView {
        let observed = |node| self.nodes.table.get(node).and_then(|known| known.observed.as_ref());
        entry.view(self.model().topology.keys().map(|node| (node, observed(node))))
    }

    fn keep_ready(&mut self, event: Event) -> Result<(), PrefetchError> {
        self.state.commit(event).map_err(|error| {
            tracing::error!(%error, "a change of images to hold ready is refused");
            PrefetchError::Unavailable
        })?;
        self.advance();
        Ok(())
    }

    /// Tells which images a node has removed since it was heard of last.
    pub(super) fn note_removed(&mut self, node: &NodeId, observed: &Observed) {
        let known = self.nodes.table.get(node).and_then(|known| known.observed.as_ref());
        // What it did before we first heard of it is no news.
        let Some(known) = known else { return };
        let new = observed.collected.iter().filter(|removed| !known.collected.contains(removed));
        for removed in new {
            let text =
                format!("node {node} removed {}, {} freed: {}", removed.image, removed.freed, removed.why);
            self.events.note(self.now_ms, None, Kind::ImageRemoved, text);
        }
    }
}
