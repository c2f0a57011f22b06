//! A job decided on alone, by the room of its profile, on what others leave; and whether it could be placed at all.

use edgeloom_common::job::Selector;
use edgeloom_common::units::BitRate;

use crate::batch::{Scheduler, place_jobs};
use crate::case::{Case, Placed, Stuck};
use crate::copies::with_copies;
use crate::images::{JobImages, PullCosts, Stores};
use crate::job_graph::JobGraph;
use crate::kube::Baseline;
use crate::ledger::{HeldJobs, Ledger};
use crate::one_by_one::{Judge, one_by_one};
use crate::profile::Room;
use crate::sla::{self, Rules};
use crate::snapshot::{Duplex, Link, Node, Snapshot, Waiting};
use crate::streaming::{Outcome, decide_one, give_bandwidth};
use crate::world::World;

/// Any rate will do where only the way is asked for.
const ANY_RATE: BitRate = BitRate(1_000_000_000);

/// What others hold is the case's ledger and `others`; `stores` has what jobs decided on before are going to pull.
pub(crate) fn decide_alone(
    case: &Case<'_>,
    room: Room,
    others: &HeldJobs<'_>,
    (entry, stores): (&Waiting, &Stores),
) -> Result<Outcome, Stuck> {
    let scored = |profile: &str, judge: &dyn Judge| {
        with_copies(case, others, &entry.profiles, |case| {
            let images = JobImages::of(case.world, case.graph, entry);
            give_bandwidth(case, profile, one_by_one(case, &images, stores, judge)?)
        })
    };
    match room {
        Room::Streaming(strategy) => with_copies(case, others, &entry.profiles, |case| {
            let images = JobImages::of(case.world, case.graph, entry);
            decide_one(case, strategy, others, &PullCosts::of(case, &images, stores))
        }),
        Room::Sla(rules) => alone_in_queue(case, &rules),
        Room::Batch(scheduler) => match alone_in_batch(case, scheduler) {
            Ok(placed) if case.broken_rule(&placed.nodes).is_none() => {
                give_bandwidth(case, scheduler.name(), placed)
            }
            // A batch knows no rules about other tasks: those that have some go where it is fullest and they hold.
            Ok(_) => scored(scheduler.name(), &Baseline::Swarm),
            Err(stuck) => Err(stuck),
        },
        Room::Kube(baseline) => scored(baseline.name(), &baseline),
        Room::Layers(layers) => scored(layers.name(), &layers),
    }
}

fn alone_in_queue(case: &Case<'_>, rules: &Rules) -> Result<Outcome, Stuck> {
    let queue = std::slice::from_ref(case.graph);
    let served = sla::serve(case.world, case.ledger, queue, rules).into_iter().next();
    let (_, seated) = served.expect("a queue of one is served one answer");
    let seated = seated?;
    give_bandwidth(&Case { graph: &seated.graph, ..*case }, sla::NAME, seated.placed)
}

fn alone_in_batch(case: &Case<'_>, scheduler: Scheduler) -> Result<Placed, Stuck> {
    let answers = place_jobs((case.world, case.ledger), scheduler, &[(case.graph, 0.0)]);
    let answer = answers.into_iter().next().expect("a batch of one is given one answer");
    answer.map_err(|(stuck, _)| stuck)
}

/// Whether the job finds no place even with every node ready and reached, and nothing else running. One that
/// wants to be with tasks of other jobs may find them yet.
pub(crate) fn never_fits(snapshot: &Snapshot, room: Room, entry: &Waiting) -> bool {
    let mut terms = entry.job.tasks.values().flat_map(|task| &task.placement.affinity.required);
    if terms.any(|term| matches!(term.with, Selector::Labels(_))) {
        return false;
    }
    let empty = emptied(snapshot);
    fits_nowhere(&World::of(&empty), room, entry)
}

/// The cluster with every node ready, reached and open, and nothing running.
pub(crate) fn emptied(snapshot: &Snapshot) -> Snapshot {
    let mut nodes = snapshot.nodes.clone();
    for node in &mut nodes {
        node.ready = true;
        node.uncordon();
    }
    // The hub of the links to come has to pass on, and not to depend on the order of the list.
    nodes.sort_by(|x, y| (!x.shapes_flows, &x.id).cmp(&(!y.shapes_flows, &y.id)));
    let links = [snapshot.links.clone(), star(&nodes)].concat();
    let scoring = snapshot.scoring.clone();
    Snapshot { nodes, links, running: Vec::new(), waiting: Vec::new(), scoring, ..*snapshot }
}

/// Whether a world in which nothing runs has no place for the job.
pub(crate) fn fits_nowhere(world: &World<'_>, room: Room, entry: &Waiting) -> bool {
    let none = HeldJobs::new();
    let ledger = Ledger::of(world, none.values());
    let graph = JobGraph::of(world, &entry.job, &entry.profiles);
    let case = Case { world, graph: &graph, ledger: &ledger };
    decide_alone(&case, room, &none, (entry, &Stores::of(world))).is_err()
}

/// A link from the first node to each other one: what is down, or not measured yet, may come.
fn star(nodes: &[Node]) -> Vec<Link> {
    let Some((hub, others)) = nodes.split_first() else { return Vec::new() };
    let link = |other: &Node| Link {
        a: hub.id.clone(),
        b: other.id.clone(),
        a_to_b: ANY_RATE,
        b_to_a: ANY_RATE,
        duplex: Duplex::Full,
    };
    others.iter().map(link).collect()
}
