//! Steps 2 and 4: candidate nodes, and bin packing of a container and its copies on different ones.
//!
//! Candidates are the nodes that nothing speaks against: reputation is a constraint of the tasks. Of those that
//! have the cores, the one with the fewest idle is taken, so that few nodes are active. A job is placed whole
//! or not at all.

use edgeloom_common::job::Sla;
use edgeloom_common::units::MilliCores;

use super::cores::{Portion, Priorities};
use super::params::Rules;
use crate::copies::{THERE, fullest};
use crate::job_graph::JobGraph;
use crate::ledger::Ledger;
use crate::streaming::{Case, Placed, Stuck};
use crate::world::World;

/// A job with the cores of its tasks set, and its nodes.
#[derive(Debug)]
pub(crate) struct Seated<'a> {
    pub(crate) graph: JobGraph<'a>,
    pub(crate) placed: Placed,
}

/// What is left for the next.
#[derive(Debug, Clone)]
pub(super) struct Room<'w> {
    pub(super) world: &'w World<'w>,
    pub(super) rules: &'w Rules,
    pub(super) ledger: Ledger,
    pub(super) priorities: Priorities,
}

impl Room<'_> {
    /// What the next container of a job of these classes would get.
    pub(super) fn portion(&self, sla: &Sla) -> Portion {
        self.priorities.portion(self.world, &self.ledger.free, self.rules, sla)
    }

    /// Places all containers of a job and answers with what is left then, or says which one is in the way.
    pub(super) fn seat<'a>(&self, graph: &JobGraph<'a>) -> Result<(Seated<'a>, Self), Stuck> {
        let mut room = self.clone();
        let (mut graph, originals) = (graph.clone(), graph.originals());
        let mut placed = Placed { nodes: Vec::new(), reasons: Vec::new() };
        let mut portions: Vec<Option<Portion>> = vec![None; graph.vertices.len()];
        for (index, original) in originals.iter().enumerate() {
            let sla = graph.job.sla;
            if graph.vertices[index].sized && *original == index {
                portions[index] = Some(room.portion(&sla));
                room.priorities.leave(&sla);
            }
            let portion = portions[*original];
            if let Some(portion) = portion {
                graph.vertices[index].give(portion.cpu);
            }
            let case = Case { world: self.world, graph: &graph, ledger: &room.ledger };
            let siblings = placed.nodes.iter().zip(&originals).filter(|(_, other)| *other == original);
            let mut against = case.unreached(index, &placed.nodes);
            against.extend(siblings.map(|(node, _)| (*node, THERE.to_owned())));
            let (node, refusals) = fullest(&case, index, &against)?;
            placed.reasons.push(reason(&case, (index, node), portion, &refusals));
            room.ledger.hold(&graph, index, node);
            placed.nodes.push(node);
        }
        Ok((Seated { graph, placed }, room))
    }
}

fn reason(
    case: &Case<'_>,
    (vertex, node): (usize, usize),
    portion: Option<Portion>,
    refusals: &[Option<String>],
) -> String {
    let cores = |cpu: i64| MilliCores(u32::try_from(cpu.max(0)).unwrap_or(u32::MAX));
    let wanted = &case.graph.vertices[vertex];
    let mut line = format!("{} -> {}: cpu {}", wanted.name, case.world.name(node), cores(wanted.need.cpu));
    if let Some(Portion { idle, interval, .. }) = portion {
        let (least, most) = (cores(interval.least), cores(interval.most));
        line.push_str(&format!(" of {} idle, its class has {least} to {most}", cores(idle)));
    }
    let free = cores(case.ledger.free[node].cpu);
    line.push_str(&format!("; fewest idle of those that have it, {free}"));
    for (other, refusal) in refusals.iter().enumerate() {
        if let Some(text) = refusal {
            line.push_str(&format!("; {} refused: {text}", case.world.name(other)));
        }
    }
    line
}
