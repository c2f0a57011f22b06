//! Nodes give back what the controller has lost: they are asked for their documents, which are taken in
//! together, and nothing is decided or published before.
//!
//! In: documents of nodes that are ahead, in a state that the operator has repaired. Out: one event with their
//! jobs, and the same documents once more under a higher epoch. Nodes that come later are taken in one by one.

use super::Owner;
use crate::documents::Documents;
use crate::events::Kind;
use crate::journal::JournalError;
use crate::lost;
use crate::model::{EPOCH_MAX, Event, Model, nodes_of};
use crate::nodes::{GATHER_MS, NodeRecord};
use crate::prefetch::Entry;
use crate::regain::{Regained, regain};
use edgeloom_common::desired::DesiredState;
use edgeloom_common::ids::NodeId;
use std::collections::BTreeSet;
use std::iter::once;

/// Between two requests to a node that has not answered.
const ASK_AGAIN_MS: u64 = 5_000;

impl Owner {
    /// Everything waits for what nodes have to tell.
    pub(super) fn gathering(&self) -> bool {
        self.model().regain.as_ref().is_some_and(|regain| !regain.gathered)
    }

    /// Asks nodes that are ahead, and takes in what they answered.
    pub(super) fn regain(&mut self) -> Result<(), JournalError> {
        if self.model().regain.is_none() {
            return Ok(());
        }
        self.ask_for_documents();
        let answers =
            self.nodes.table.iter().filter(|(_, known)| known.ahead.is_some() && has_answered(known));
        let held: Documents =
            answers.filter_map(|(node, known)| Some((node.clone(), known.held.clone()?))).collect();
        let mut regained = regain(self.model(), &held, &self.settings.keys);
        if self.gathering() {
            if !self.all_told(&regained) {
                return Ok(());
            }
        } else if held.is_empty() {
            return Ok(());
        } else {
            regained.documents.retain(|node, _| held.contains_key(node));
        }
        self.take_in(regained)
    }

    fn ask_for_documents(&mut self) {
        let (now_ms, outbox) = (self.now_ms, &self.outbox);
        for (node, known) in self.nodes.table.iter_mut().filter(|(_, known)| known.online) {
            let waits = known.asked_ms.is_some_and(|ms| now_ms.saturating_sub(ms) < ASK_AGAIN_MS);
            let believed = known.ahead.is_some_and(|theirs| theirs.epoch < EPOCH_MAX);
            let wanted = believed && !has_answered(known) && !waits;
            if wanted && outbox.ask_for_document(node, now_ms) {
                known.asked_ms = Some(now_ms);
            }
        }
    }

    /// Every node that anything names has told, or had its time to come back.
    fn all_told(&self, regained: &Regained) -> bool {
        let Some(attended_ms) = self.nodes.attended_for_ms(self.now_ms) else { return false };
        let model = self.model();
        let neighbours = model.topology.iter().flat_map(|(node, peers)| once(node).chain(peers.keys()));
        let mut expected: BTreeSet<&NodeId> = neighbours.collect();
        expected.extend(model.published.keys().chain(self.nodes.table.keys()));
        expected.extend(regained.records.iter().filter_map(|record| record.plan.as_ref()).flat_map(nodes_of));
        let told = |node: &&NodeId| self.nodes.table.get(*node).is_some_and(has_told);
        attended_ms >= GATHER_MS || expected.iter().all(told)
    }

    fn take_in(&mut self, regained: Regained) -> Result<(), JournalError> {
        let Regained { records, documents, topology, unknown, ended, anew, ready } = regained;
        let names: Vec<_> = records.iter().map(|record| record.job.name.clone()).collect();
        let (epoch, documents) = self.above(documents);
        let nodes: Vec<NodeId> = documents.iter().map(|document| document.node.clone()).collect();
        let (gone, images) = (ended.clone(), ready.clone());
        self.state.commit(Event::Regained { epoch, records, documents, topology, ended, ready })?;
        self.step_ms = self.now_ms;
        for node in nodes {
            if let Some(known) = self.nodes.table.get_mut(&node) {
                (known.ahead, known.held, known.asked_ms) = (None, None, None);
            }
            self.outbox.mark(node);
        }
        for job in &names {
            let text = if anew.contains(job) {
                "came back from nodes, and is planned anew: another job has its address"
            } else {
                "came back from nodes that run it"
            };
            tracing::info!(%job, "{text}");
            self.events.note(self.now_ms, Some(job), Kind::Regained, text.to_owned());
        }
        for Entry { image, nodes, .. } in images {
            let on = nodes.map_or("every node".to_owned(), |nodes| lost::names(&nodes));
            let text = format!("{} is held ready on {on} again: their documents name it", image.name);
            self.events.note(self.now_ms, None, Kind::Regained, text);
        }
        for job in gone {
            let text = "counts as ended: no node has anything of it any more; run it again if it is wanted";
            tracing::warn!(%job, "{text}");
            self.events.note(self.now_ms, Some(&job), Kind::Gone, text.to_owned());
        }
        for (job, nodes) in unknown {
            let nodes = nodes.iter().map(NodeId::as_str).collect::<Vec<_>>().join(", ");
            let text = format!("runs on {nodes}, and no copy of it reads: it is stopped there; run it again");
            tracing::error!(%job, "{text}");
            self.events.note(self.now_ms, Some(&job), Kind::Gone, text);
        }
        Ok(())
    }

    /// The documents with versions above all that anybody holds, as far as that is needed.
    fn above(&self, documents: Documents) -> (u64, Vec<DesiredState>) {
        let model = self.model();
        let highest = documents.values().map(|document| document.epoch).max().unwrap_or(0);
        let epoch = if self.gathering() || highest >= model.epoch {
            Model::epoch_after(highest.max(model.epoch), self.now_ms / 1000)
        } else {
            model.epoch
        };
        let numbered = |(document, generation)| DesiredState { epoch, generation, ..document };
        (epoch, documents.into_values().zip(model.generation + 1..).map(numbered).collect())
    }
}

/// What the node says that it holds is here.
fn has_answered(known: &NodeRecord) -> bool {
    known.held.as_ref().map(DesiredState::version) == known.ahead
}

fn has_told(known: &NodeRecord) -> bool {
    known.online
        && known.links.is_some()
        && known.observed.is_some()
        && (known.ahead.is_none() || has_answered(known))
}
