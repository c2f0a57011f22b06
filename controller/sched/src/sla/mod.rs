//! Service classes: who of the queue is served next, on which nodes, with how many cores, in how many copies.
//!
//! After the paper on opportunistic scheduling and resource allocation by SLA classes, section 5. In: jobs
//! that wait, the world, what others hold. Out: jobs with a node and cores for each container, in the order in
//! which they were chosen, and for those that stay queued what is in the way.
//!
//! | symbol | here |
//! |---|---|
//! | services 3, 2, 1 | `Service::level` of the job's four classes |
//! | `phi` | `promethee::net_flows` |
//! | `N`, min and max cores | `classes::Interval` |
//! | `r_i`, `wc`, `p_i` | `cores::Portion`, formula 1 |
//! | replicas | further tasks, `Task::copy_of` |
//!
//! Departures: `r_i` is clipped also where the paper's example forgets to (c3 gets 3 cores, its maximum); a
//! job of several tasks is chosen as one. Whoever was refused is tried again only when formula 1 gives it less
//! than it was refused with.

mod cores;
mod params;
mod place;
mod promethee;
mod queue;

pub use params::{Blocked, Cores, Order, Rules};
pub(crate) use place::Seated;
pub use promethee::{Alternative, CRITERIA, Criterion, net_flows};
pub use queue::{Values, ranking};

use crate::job_graph::JobGraph;
use crate::ledger::Ledger;
use crate::streaming::Stuck;
use crate::world::World;
use cores::Priorities;
use place::Room;
use queue::Queue;

/// The profile's name.
pub(crate) const NAME: &str = "sla";

/// One of the queue, by its number there, with what became of it.
pub(crate) type Served<'a> = (usize, Result<Seated<'a>, Stuck>);

/// Serves a queue in the order of arrival: those that are placed first, as they were chosen, then the others.
pub(crate) fn serve<'a>(
    world: &World<'_>,
    ledger: &Ledger,
    queue: &[JobGraph<'a>],
    rules: &Rules,
) -> Vec<Served<'a>> {
    let values: Vec<Values> = queue.iter().map(|graph| params::levels(&graph.job.sla)).collect();
    let mut waiting = Queue::new(rules, values.iter().copied());
    let priorities = Priorities::of(queue.iter());
    let mut room = Room { world, rules, ledger: ledger.clone(), priorities };
    let mut refused: Vec<Refused> = queue.iter().map(|_| None).collect();
    let mut served = Vec::new();
    while let Some((number, (seated, after))) = next(&room, &waiting, (queue, &mut refused)) {
        waiting.leave(number, &values[number]);
        room = after;
        served.push((number, Ok(seated)));
    }
    let left: Vec<usize> = waiting.order().collect();
    let first = left.first().copied();
    for number in left {
        let stuck = refused[number].take().map(|(_, stuck)| stuck);
        let behind = || format!("waits behind job {}", queue[first.unwrap_or(number)].job.name);
        let stuck = stuck.unwrap_or_else(|| Stuck { vertex: 0, refusals: vec![behind(); world.nodes.len()] });
        served.push((number, Err(stuck)));
    }
    served
}

/// The cores that a job was refused with, and why; none before it was tried.
type Refused = Option<(i64, Stuck)>;

/// The first of the queue that finds room; the others are noted with the cores they were refused with.
fn next<'a, 'w>(
    room: &Room<'w>,
    waiting: &Queue<'_>,
    (queue, refused): (&[JobGraph<'a>], &mut [Refused]),
) -> Option<(usize, (Seated<'a>, Room<'w>))> {
    for number in waiting.order() {
        let portion = room.portion(&queue[number].job.sla).cpu;
        if refused[number].as_ref().is_none_or(|(before, _)| portion < *before) {
            match room.seat(&queue[number]) {
                Ok(seated) => return Some((number, seated)),
                Err(stuck) => refused[number] = Some((portion, stuck)),
            }
        }
        if room.rules.blocked == Blocked::Blocks {
            break;
        }
    }
    None
}
