//! Waiting jobs that are decided on together: the queue of `sla`, in its own order, then batches, the better class
//! of satisfaction first.
//!
//! Jobs that are placed are committed to what is held, so that what is decided on later draws on what is left.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::alone::{emptied, fits_nowhere};
use crate::batch::{Groups, Scheduler, place_jobs};
use crate::case::Case;
use crate::explain::unplaced;
use crate::job_graph::JobGraph;
use crate::ledger::{HeldJobs, Ledger};
use crate::plan::Decision;
use crate::profile::{Room, commit, satisfaction};
use crate::sla::{self, Rules};
use crate::snapshot::{Snapshot, Waiting};
use crate::streaming::give_bandwidth;
use crate::world::World;

/// Jobs that wait, by who decides on them.
#[derive(Debug, Default)]
pub(crate) struct Queues<'a> {
    sla: Vec<(&'a Waiting, Rules)>,
    batches: BTreeMap<(Reverse<u32>, Scheduler), Vec<&'a Waiting>>,
}

impl<'a> Queues<'a> {
    /// Whether the room decides on several jobs together; the job is in its queue then. A batch knows no rules but
    /// those of [`Groups`], so jobs that have others are decided on alone.
    pub(crate) fn takes(&mut self, world: &World<'_>, entry: &'a Waiting, room: Room) -> bool {
        let ruled = || Groups::of(&entry.job).is_none();
        match room {
            Room::Streaming(_) | Room::Kube(_) | Room::Layers(_) => return false,
            Room::Batch(_) if world.limits_containers || ruled() => return false,
            Room::Sla(rules) => self.sla.push((entry, rules)),
            Room::Batch(scheduler) => {
                let class = Reverse(satisfaction(entry));
                self.batches.entry((class, scheduler)).or_default().push(entry);
            }
        }
        true
    }

    /// Decides on all of them.
    pub(crate) fn serve(
        self,
        (snapshot, world): (&Snapshot, &World<'_>),
        (decision, held): (&mut Decision, &mut HeldJobs<'a>),
    ) {
        serve_sla((snapshot, world), self.sla, (decision, held));
        for ((_, scheduler), entries) in self.batches {
            let waited_s = |entry: &Waiting| seconds(snapshot.now_ms.saturating_sub(entry.since_ms));
            let entries = entries.into_iter().map(|entry| (entry, waited_s(entry))).collect();
            serve_batch((world, scheduler), entries, (decision, held));
        }
    }
}

/// All of the queue is looked at together, and what is chosen is committed in that order.
fn serve_sla<'a>(
    (snapshot, world): (&Snapshot, &World<'_>),
    mut queue: Vec<(&'a Waiting, Rules)>,
    (decision, held): (&mut Decision, &mut HeldJobs<'a>),
) {
    let Some((_, rules)) = queue.first().copied() else { return };
    queue.sort_by_key(|(entry, _)| (entry.since_ms, &entry.job.name));
    let graphs: Vec<JobGraph<'_>> =
        queue.iter().map(|(entry, _)| JobGraph::of(world, &entry.job, &entry.profiles)).collect();
    let mut ledger = Ledger::of(world, held.values());
    let empty = emptied(snapshot);
    let empty = World::of(&empty);
    for (number, seated) in sla::serve(world, &ledger, &graphs, &rules) {
        let (entry, _) = queue[number];
        let outcome = seated.and_then(|seated| {
            let case = Case { world, graph: &seated.graph, ledger: &ledger };
            give_bandwidth(&case, sla::NAME, seated.placed)
        });
        match outcome {
            Ok(outcome) => {
                commit(decision, held, entry, outcome);
                held.get(&entry.job.name).into_iter().for_each(|own| ledger.take(world, own));
            }
            Err(stuck) => {
                let never = fits_nowhere(&empty, Room::Sla(rules), entry);
                let case = Case { world, graph: &graphs[number], ledger: &ledger };
                decision.unplaced.push(unplaced(&case, &stuck, never));
            }
        }
    }
}

/// All jobs of one scheduler at once, with the seconds that each has waited: nodes together, then each job's paths and
/// rates.
fn serve_batch<'a>(
    (world, scheduler): (&World<'_>, Scheduler),
    entries: Vec<(&'a Waiting, f64)>,
    (decision, held): (&mut Decision, &mut HeldJobs<'a>),
) {
    let graph = |(entry, _): &(&'a Waiting, f64)| JobGraph::of(world, &entry.job, &entry.profiles);
    let graphs: Vec<JobGraph<'_>> = entries.iter().map(graph).collect();
    let mut ledger = Ledger::of(world, held.values());
    let jobs: Vec<(&JobGraph<'_>, f64)> =
        graphs.iter().zip(&entries).map(|(graph, (_, waited_s))| (graph, *waited_s)).collect();
    let answers = place_jobs((world, &ledger), scheduler, &jobs);
    for (((entry, _), graph), answer) in entries.into_iter().zip(&graphs).zip(answers) {
        if !graph.edges.is_empty() {
            // Flows draw on what those before them left.
            ledger = Ledger::of(world, held.values());
        }
        let case = Case { world, graph, ledger: &ledger };
        let outcome = answer.and_then(|placed| {
            give_bandwidth(&case, scheduler.name(), placed).map_err(|stuck| (stuck, false))
        });
        match outcome {
            Ok(outcome) => commit(decision, held, entry, outcome),
            Err((stuck, never)) => decision.unplaced.push(unplaced(&case, &stuck, never)),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "waits stay far below 2^52 milliseconds")]
fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}
