//! The cluster in numbers: what `GET /metrics` shows.
//!
//! In: nodes, jobs, events and registries as they are, and what was counted since the start. Out: [`Figures`].
//! Nothing here names a job, an image or a user, so that there are never more figures than nodes and registries.

mod histogram;

use crate::cluster::Cluster;
use crate::line::Pulled;
use crate::owner::Owner;
use edgeloom_common::ids::NodeId;
use edgeloom_common::view::{JobState, NodeState};
use edgeloom_registry::{Count, Tally};
pub use histogram::Histogram;
use std::collections::BTreeMap;

/// Upper bounds of the seconds that a decision takes.
pub(crate) const DECISION_BOUNDS: [f64; 8] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0];

/// All numbers.
#[derive(Debug, Clone)]
pub struct Figures {
    pub nodes: BTreeMap<NodeId, NodeFigures>,
    /// In the order of [`JobState::ALL`].
    pub jobs: [usize; JobState::ALL.len()],
    /// Seconds that the scheduler took for decisions, dry runs among them.
    pub decisions: Histogram,
    /// Events by kind, since the start.
    pub events: BTreeMap<&'static str, u64>,
    /// What registries were asked since the start.
    pub asked: BTreeMap<String, Count>,
    /// Registries that are watched.
    pub registries: Vec<Tally>,
}

/// One node.
#[derive(Debug, Clone)]
pub struct NodeFigures {
    pub state: NodeState,
    /// It takes nothing new.
    pub is_cordoned: bool,
    pub disk_used_bytes: u64,
    pub disk_capacity_bytes: u64,
    /// Pulls that failed last time and are tried again.
    pub pulls_failing: usize,
    pub pulled: Pulled,
    /// Payload that pulls get over its line, where it is learnt.
    pub goodput_bps: Option<u64>,
}

impl Cluster {
    /// The cluster in numbers; none while its owner does not answer.
    pub async fn figures(&self) -> Option<Figures> {
        let mut figures = self.ask(|owner| owner.figures()).await?;
        figures.asked = self.registry.counts();
        figures.registries = self.registry.tallies();
        Some(figures)
    }
}

impl Owner {
    /// All but registries, which others know.
    pub(crate) fn figures(&self) -> Figures {
        let mut jobs = [0; JobState::ALL.len()];
        for record in self.model().jobs.values() {
            let state = self.view(record).state;
            let place = JobState::ALL.iter().position(|one| *one == state);
            jobs[place.expect("all states are listed")] += 1;
        }
        Figures {
            nodes: self.nodes.table.keys().map(|name| (name.clone(), self.node_figures(name))).collect(),
            jobs,
            decisions: self.decisions.borrow().clone(),
            events: self.events.counts().clone(),
            asked: BTreeMap::new(),
            registries: Vec::new(),
        }
    }

    fn node_figures(&self, name: &NodeId) -> NodeFigures {
        let known = &self.nodes.table[name];
        let view = self.node(name, known);
        let pulls = known.observed.iter().flat_map(|observed| &observed.pulls);
        NodeFigures {
            state: view.state(),
            is_cordoned: view.cordon.is_some(),
            disk_used_bytes: view.disk_used_bytes,
            disk_capacity_bytes: view.disk_capacity_bytes,
            pulls_failing: pulls.filter(|pull| !pull.error.is_empty()).count(),
            pulled: known.line.pulled().clone(),
            goodput_bps: view.pulls.goodput_bps,
        }
    }
}
