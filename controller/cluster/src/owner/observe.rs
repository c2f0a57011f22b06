//! What nodes say, and that time passes.

use super::Owner;
use crate::line::Known;
use crate::model::{EPOCH_MAX, Event, Model};
use crate::nodes::NodeMessage;
use crate::pulls::predicted;
use crate::reserved::left;
use edgeloom_common::desired::{DesiredState, Version};
use edgeloom_common::ids::NodeId;

impl Owner {
    /// Takes in what a node says.
    pub(crate) fn observe(&mut self, node: &NodeId, message: NodeMessage) {
        let only_load = matches!(message, NodeMessage::Report(_));
        if let NodeMessage::Report(report) = &message {
            self.closed_loop.take(node, report, self.now_ms);
            self.count(node, report);
        }
        if matches!(message, NodeMessage::Links(_)) {
            self.untold.remove(node);
        }
        if let NodeMessage::Observed(observed) = &message {
            self.note_removed(node, observed);
            self.count_ends(node, observed);
            self.count_containers(node, observed);
        }
        let told_version = matches!(message, NodeMessage::Observed(_));
        let connected = matches!(&message, NodeMessage::Status(status) if status.online);
        self.nodes.observe(node, message, self.now_ms, &self.settings.cluster);
        if connected {
            self.outbox.mark(node.clone());
        }
        if told_version {
            self.compare_version(node);
            self.rejoin(node);
            self.learn_line(node);
        }
        if !only_load {
            self.advance();
        }
    }

    /// A node with an older document gets it again; one with a newer shows that our state was lost or is an
    /// old copy. It is left as it is, unless the operator has put this state in place or wants back what it runs.
    fn compare_version(&mut self, node: &NodeId) {
        let Some(observed) = self.nodes.table.get(node).and_then(|known| known.observed.as_ref()) else {
            return;
        };
        let (theirs, ours) = (observed.version, self.model().version(node));
        if theirs < ours {
            self.outbox.mark(node.clone());
        }
        let forgotten = self.model().forgotten.get(node).is_some_and(|sent| theirs <= *sent);
        let overruled = (self.model().overrules || forgotten) && theirs.epoch < EPOCH_MAX;
        let ahead = (theirs > ours && !overruled).then_some(theirs);
        let asked = self.model().regain.is_some();
        if theirs > ours && overruled {
            self.overtake(node, theirs);
        }
        if let Some(known) = self.nodes.table.get_mut(node) {
            if ahead.is_some() && known.ahead.is_none() && !asked {
                tracing::error!(%node, ?theirs, ?ours, "a node has a newer document than was ever sent; it is left as it is");
            }
            known.ahead = ahead;
            known.held = known.held.take().filter(|held| ahead == Some(held.version()));
        }
        if self.nodes.confirmed(node, &self.state.model.published)
            && let Some(known) = self.nodes.table.get_mut(node)
        {
            known.silent = false;
        }
    }

    /// Holds the node's finished pulls against what was predicted for them.
    fn learn_line(&mut self, node: &NodeId) {
        let Some(known) = self.nodes.table.get_mut(node) else { return };
        let mut line = std::mem::take(&mut known.line);
        let (model, nodes) = (&self.state.model, &self.nodes);
        let observed = nodes.table.get(node).and_then(|known| known.observed.as_ref());
        let done = || observed.iter().flat_map(|observed| &observed.pulls).filter(|pull| pull.done);
        for pull in done() {
            let image = pull.image.as_str();
            line.learn(pull, || Known {
                fetch: predicted(model, node, image),
                left: left(model, nodes, (node, image)),
            });
        }
        line.learnt(done());
        if let Some(known) = self.nodes.table.get_mut(node) {
            known.line = line;
        }
    }

    /// Our state is an old copy: the node gets its document again, newer than the one it has. One that was
    /// never sent any gets its first one in its turn; for all others the next one tells the new epoch.
    fn overtake(&mut self, node: &NodeId, theirs: Version) {
        let model = self.model();
        if theirs.epoch >= model.epoch {
            tracing::warn!(%node, ?theirs, "a node has a newer document than was ever sent; the epoch rises");
            let epoch = Model::epoch_after(theirs.epoch, self.now_ms / 1000);
            if self.keep(Event::EpochRaised { epoch }).is_err() {
                return;
            }
        }
        let document: Vec<DesiredState> = self.model().published.get(node).cloned().into_iter().collect();
        if !document.is_empty()
            && let Err(error) = self.publish(document)
        {
            tracing::error!(%error, %node, "a document is not published anew");
        }
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self) {
        self.nodes.expire(self.now_ms);
        self.nodes.settle(self.now_ms);
        self.advance();
        self.keep_accounts();
        if !self.gathering() {
            self.close_the_loop();
        }
    }
}
