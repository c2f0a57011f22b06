//! Profiles that route and rate all their jobs anew at every change: OTFA (Algorithm 4) and TP.
//!
//! Algorithm 1 places the newcomer; then the bandwidth of all the profile's jobs is released, and OTFA runs
//! JRBA over all their flows, running and new, while TP takes the paths of fewest hops and shares each link
//! equally among the flows on it. Tasks stay. What jobs of other profiles hold is not touched, and a running
//! job that may not change, or one of whose nodes or links is gone, keeps what it has.

use super::allocation::allocate;
use super::baseline::equal_shares;
use super::jrba::{demands, open, route_and_share};
use super::online::{Outcome, Strategy, no_bandwidth, plan};
use super::params::PAPER;
use super::{Case, Placed, Routed, Stuck, nodes_of};
use crate::images::PullCosts;
use crate::job_graph::{Edge, JobGraph};
use crate::ledger::{Held, HeldJobs, Ledger};
use crate::opt::congestion::{Demand, Network};
use crate::plan::JobPlan;
use crate::snapshot::Change;
use crate::world::World;

/// One job whose flows are routed anew.
struct Member<'a> {
    /// None for the newcomer.
    held: Option<&'a Held<'a>>,
    graph: JobGraph<'a>,
    nodes: Vec<usize>,
    edges: Vec<Edge>,
}

/// The profile and all it looks at.
pub(super) struct Together<'a> {
    pub(super) strategy: Strategy,
    pub(super) world: &'a World<'a>,
    pub(super) others: &'a HeldJobs<'a>,
}

impl<'a> Together<'a> {
    /// Places the newcomer and routes everybody's flows.
    pub(super) fn place(&self, case: &Case<'_>, pulls: &PullCosts) -> Result<Outcome, Stuck> {
        let placed = allocate(case, PAPER, pulls)?;
        let mut members = self.members();
        let (graph, edges) = (case.graph.clone(), case.flows(&placed.nodes));
        members.push(Member { held: None, graph, nodes: placed.nodes.clone(), edges });
        let Some(mut routed) = self.route(&members) else {
            return Err(no_bandwidth(case, &placed.nodes));
        };
        let own = routed.pop().unwrap_or_default();
        let changed = self.changes(&members, &routed);
        Ok(Outcome { plan: plan(case, self.strategy.name(), placed, own), changed })
    }

    /// Routes the flows of all running jobs anew after some have gone.
    pub(super) fn rebalance(&self) -> Vec<JobPlan> {
        let members = self.members();
        self.route(&members).map_or_else(Vec::new, |routed| self.changes(&members, &routed))
    }

    fn is_member(&self, held: &Held<'_>) -> bool {
        let whole = |path: &[edgeloom_common::ids::NodeId]| self.world.pools_of(path).len() + 1 == path.len();
        held.plan.profile == self.strategy.name()
            && held.change >= Change::Routes
            && held.plan.flows.iter().all(|flow| whole(&flow.path))
    }

    fn members(&self) -> Vec<Member<'a>> {
        let one = |held: &'a Held<'a>| {
            let graph = JobGraph::of(self.world, held.job, held.profiles).running_with(&held.plan.shares);
            let nodes = nodes_of(self.world, &graph, &held.plan)?;
            let apart = |edge: &&Edge| nodes[edge.from] != nodes[edge.to];
            let edges = graph.edges.iter().filter(apart).copied().collect();
            Some(Member { held: Some(held), graph, nodes, edges })
        };
        self.others.values().filter(|held| self.is_member(held)).filter_map(one).collect()
    }

    /// Per member its flows with paths and rates; none if one finds no way or no bandwidth.
    fn route(&self, members: &[Member<'_>]) -> Option<Vec<Vec<Routed>>> {
        let ledger = Ledger::of(self.world, self.others.values().filter(|held| !self.is_member(held)));
        let capacity = open(ledger.residual(self.world));
        let mut all: Vec<Demand> = Vec::new();
        for member in members {
            let case = Case { world: self.world, graph: &member.graph, ledger: &ledger };
            all.extend(demands(&case, &member.nodes, &member.edges));
        }
        let network = Network { graph: &self.world.graph, capacity: &capacity };
        let (paths, rates) = match self.strategy {
            Strategy::Tp => equal_shares(network, &all)?,
            _ => route_and_share(network, &all)?,
        };
        let mut given = paths.into_iter().zip(rates);
        let mut take = |member: &Member<'_>| -> Vec<Routed> {
            let flows = member.edges.iter().zip(given.by_ref());
            flows.map(|(edge, (path, rate))| Routed { edge: *edge, path, rate }).collect()
        };
        let routed: Vec<Vec<Routed>> = members.iter().map(&mut take).collect();
        routed.iter().flatten().all(|flow| flow.rate >= 1.0).then_some(routed)
    }

    /// Plans of running members whose routes or rates are others now.
    fn changes(&self, members: &[Member<'_>], routed: &[Vec<Routed>]) -> Vec<JobPlan> {
        let mut changed = Vec::new();
        for (member, flows) in members.iter().zip(routed) {
            let Some(held) = member.held else { continue };
            let others = self.others.values().filter(|other| other.job.name != held.job.name);
            let ledger = Ledger::of(self.world, others);
            let case = Case { world: self.world, graph: &member.graph, ledger: &ledger };
            let placed = Placed { nodes: member.nodes.clone(), reasons: Vec::new() };
            let mut new = plan(&case, self.strategy.name(), placed, flows.clone());
            if new.flows != held.plan.flows {
                new.reasons.insert(0, "flows of all jobs routed and rated anew".to_owned());
                changed.push(new);
            }
        }
        changed
    }
}
