//! Nodes that could be emptied: what would move where, and what that costs.
//!
//! In: the cluster as it runs, and every running job as if it waited, for its images. One node after the other,
//! the one with the fewest requested cores first, is cordoned for trial; its jobs are then planned anew by their own
//! profiles with all other tasks held where they are. Out: nodes for which every task found another place, in an order
//! in which they can be emptied together, and why the others cannot be.
//!
//! Invariant: each step passes the checker, and no job falls below nine tenths of its predicted throughput.

use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_common::units::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::check::check;
use crate::cordon::hold_in_place;
use crate::ledger::{Held, HeldJobs, Ledger};
use crate::plan::{Decision, JobPlan};
use crate::profile::{Profile, decide};
use crate::snapshot::{Change, Node, Running, Snapshot, Waiting};
use crate::world::World;

/// Part of its predicted throughput that every job keeps.
const KEEPS: f64 = 0.9;

/// What could be done.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Consolidation {
    pub emptied: Vec<Emptied>,
    pub kept: Vec<Kept>,
}

/// A node that could be emptied after those before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Emptied {
    pub node: NodeId,
    /// None where nothing runs on it.
    pub moves: Vec<Moved>,
}

/// One task that would move.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    pub job: JobName,
    pub task: TaskName,
    pub to: NodeId,
    /// To be pulled first, while the task runs where it is.
    pub bytes: Bytes,
    /// How long that takes; none where the line is not known.
    pub pull_s: Option<f64>,
    /// How long the task is away then.
    pub pause_s: f64,
}

/// A node that could not be emptied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub node: NodeId,
    pub reason: String,
}

/// How much is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Nodes to empty at most.
    pub emptied: usize,
    /// Nodes to try at most.
    pub tried: usize,
}

impl Bounds {
    /// Every node is tried.
    pub const NONE: Self = Self { emptied: usize::MAX, tried: usize::MAX };
}

/// Looks for nodes that could be emptied. The waiting jobs of the snapshot are those that run.
#[must_use]
pub fn consolidate(default: Profile, snapshot: &Snapshot, bounds: Bounds) -> Consolidation {
    let running = snapshot
        .running
        .iter()
        .map(|running| Running { change: Change::Rates.min(running.change), ..running.clone() });
    let mut now = Snapshot { running: running.collect(), waiting: Vec::new(), ..snapshot.clone() };
    let mut found = Consolidation::default();
    let order = order(snapshot);
    let mut active = order.len();
    for node in order.into_iter().take(bounds.tried) {
        if found.emptied.len() >= bounds.emptied {
            break;
        }
        let trial = if active > 1 {
            Trial { default, snapshot, before: &now, node: &node }.run()
        } else {
            Err("it is the last node that takes tasks".to_owned())
        };
        match trial {
            Ok((after, moves)) => {
                (now, active) = (after, active - 1);
                found.emptied.push(Emptied { node, moves });
            }
            Err(reason) => found.kept.push(Kept { node, reason }),
        }
    }
    found
}

/// Nodes that take tasks, the one with the fewest requested cores first.
fn order(snapshot: &Snapshot) -> Vec<NodeId> {
    let world = World::of(snapshot);
    let held: HeldJobs<'_> =
        snapshot.running.iter().map(|running| (running.job.name.clone(), Held::of(running))).collect();
    let ledger = Ledger::of(&world, held.values());
    let takes = |node: &Node| node.ready && !node.is_cordoned();
    let all = world.nodes.iter().zip(&ledger.free).filter(|(node, _)| takes(node));
    let mut order: Vec<(i64, &NodeId)> =
        all.map(|(node, free)| (i64::from(node.cpu.0) - free.cpu, &node.id)).collect();
    order.sort();
    order.into_iter().map(|(_, node)| node.clone()).collect()
}

/// One node, tried on what is left of the cluster.
struct Trial<'a> {
    default: Profile,
    /// As it is now, for what each job has.
    snapshot: &'a Snapshot,
    /// After the nodes emptied before.
    before: &'a Snapshot,
    node: &'a NodeId,
}

impl Trial<'_> {
    /// The cluster afterwards, with what moved; or what is in the way.
    fn run(&self) -> Result<(Snapshot, Vec<Moved>), String> {
        let mut after = self.before.clone();
        after.nodes.iter_mut().filter(|node| node.id == *self.node).for_each(Node::cordon);
        let mut moves = Vec::new();
        let concerned =
            self.before.running.iter().filter(|it| it.plan.placement.values().any(|at| at == self.node));
        for running in concerned {
            // Its plan may have other rates by now.
            let at = after.running.iter().position(|it| it.job.name == running.job.name);
            let placement = at.map(|at| after.running[at].plan.placement.clone()).unwrap_or_default();
            let entry = self.movable(running)?;
            let leaves = BTreeSet::from([self.node.clone()]);
            let mut waiting = entry.clone();
            hold_in_place(&mut waiting.job, &placement, &leaves);
            after.waiting = vec![waiting];
            let decision = self.sound(decide(self.default, &after), &after)?;
            for plan in decision.plans {
                if plan.job == running.job.name {
                    moves.extend(moved(&mut after, entry, (&placement, &plan)));
                }
                if let Some(it) = after.running.iter_mut().find(|it| it.job.name == plan.job) {
                    it.plan = plan;
                }
            }
        }
        after.waiting.clear();
        self.nobody_falls(&after)?;
        Ok((after, moves))
    }

    fn movable(&self, running: &Running) -> Result<&Waiting, String> {
        let job = &running.job.name;
        if running.job.source.as_ref().is_some_and(|source| source.node == *self.node) {
            return Err(format!("the source of job {job} stays on it"));
        }
        if running.change == Change::Nothing {
            return Err(format!("job {job} may not be changed now"));
        }
        let entry = self.snapshot.waiting.iter().find(|entry| entry.job.name == *job);
        entry.ok_or_else(|| format!("job {job} is not settled"))
    }

    fn sound(&self, decision: Decision, after: &Snapshot) -> Result<Decision, String> {
        if let Some(unplaced) = decision.unplaced.first() {
            let others = unplaced.reasons.iter().filter(|reason| reason.node != *self.node);
            let why: Vec<String> = others.map(|reason| format!("{}: {}", reason.node, reason.text)).collect();
            let (task, job) = (&unplaced.task, &unplaced.job);
            return Err(format!("task {task} of job {job} finds no other node ({})", why.join("; ")));
        }
        match check(&decision, after).first() {
            Some(violation) => Err(violation.to_string()),
            None => Ok(decision),
        }
    }

    fn nobody_falls(&self, after: &Snapshot) -> Result<(), String> {
        for (was, is) in self.snapshot.running.iter().zip(&after.running) {
            let (was, is, job) =
                (was.plan.prediction.items_per_s, is.plan.prediction.items_per_s, &was.job.name);
            if is < was * KEEPS {
                return Err(format!("job {job} would fall from {was:.2} to {is:.2} items/s"));
            }
        }
        Ok(())
    }
}

/// Tasks that change their node; what they pull is there for those after them.
fn moved(
    after: &mut Snapshot,
    entry: &Waiting,
    (before, plan): (&std::collections::BTreeMap<TaskName, NodeId>, &JobPlan),
) -> Vec<Moved> {
    let mut moves = Vec::new();
    for (task, to) in plan.placement.iter().filter(|(task, to)| before.get(*task) != Some(*to)) {
        let Some(node) = after.nodes.iter_mut().find(|node| node.id == *to) else { continue };
        let image = entry.images.get(task).and_then(|platforms| platforms.get(&node.hosting.platform));
        let fetch = image.map(|image| node.hosting.held.fetch(image)).unwrap_or_default();
        if let Some(image) = image {
            Arc::make_mut(&mut node.hosting.held).add(image);
        }
        moves.push(Moved {
            job: plan.job.clone(),
            task: task.clone(),
            to: to.clone(),
            bytes: fetch.bytes(),
            pull_s: node.hosting.goodput.map(|line| fetch.seconds(line, Bytes(0))),
            pause_s: after.policy.migration_s,
        });
    }
    moves
}
