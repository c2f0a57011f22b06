//! Batches: independent containers, many at once, each to a machine that has room for it.
//!
//! Paper: "ECSched: Efficient Container Scheduling on Heterogeneous Clusters" (Hu, de Laat, Zhao, 2018), sections
//! III (model) and IV (the flow network). In: machines with what is free on them, requests with what they may not do
//! without. Out: a machine for each request, or why it waits. No machine is ever overbooked.
//!
//! | symbol | here |
//! |---|---|
//! | `m_j`, `V_j` | `Machine`, its `free` |
//! | `c_i`, `D_i` | `Request`, its `demand`; `Unit` after groups were merged |
//! | `CA`, `MA` | `Request::together`, `Request::machines` |
//! | unscheduled node | the row's own way out, at cost 0 |
//! | `K` | `params::HEARTBEAT_MOST` |
//!
//! Departures: a flow places one container a machine, so it is repeated until nothing more is placed
//! ([`Method::EcschedDpOnce`] does it once, as printed); a group is one container with the summed demand.

mod costs;
mod floor;
mod groups;
mod instance;
mod jobs;
mod packing;
mod params;
mod queue;
mod rounds;
mod start;
#[cfg(test)]
mod tests;
mod units;
mod vectors;

pub(crate) use groups::Groups;
pub use instance::{Instance, Prepared, Solution};
pub(crate) use jobs::{Scheduler, place_jobs};
pub use packing::Objective;

use costs::Formula;
use floor::Floor;
use params::Rounds;
use units::Units;

pub const RESOURCES: usize = 3;

/// Thousandths of a core, bytes of memory, bytes of storage.
pub type Vector = [i64; RESOURCES];

/// A machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    pub capacity: Vector,
    /// What nobody holds; below nothing where the capacity shrank.
    pub free: Vector,
}

/// A container that wants a machine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    pub demand: Vector,
    /// Machines by index that it may run on; none: all.
    pub machines: Option<Vec<usize>>,
    /// Requests with the same number share a machine.
    pub together: Option<usize>,
    /// Of requests with the same number no two share a machine.
    pub apart: Option<usize>,
    /// Of requests with the same number all are placed or none.
    pub gang: Option<usize>,
    pub waited_s: f64,
}

/// All that waits, and where it may go.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    pub machines: Vec<Machine>,
    pub requests: Vec<Request>,
}

/// Who decides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// ECSched, dot product.
    EcschedDp,
    /// ECSched, dot product, one flow and no more.
    EcschedDpOnce,
    /// ECSched, most loaded.
    EcschedMl,
    /// One at a time in the order of arrival, to the machine with the largest part free: Kubernetes.
    Spread(Blocked),
    /// One at a time in the order of arrival, to the most loaded machine with room: Swarm, as the paper has it.
    MostLoaded(Blocked),
    /// Whole batches as vectors.
    Packing(Packing),
}

/// What a queue does with a request that fits nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked {
    /// Everything behind it waits.
    Queue,
    /// It alone waits.
    One,
}

/// What the default stage is to achieve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packing {
    pub objective: Objective,
    /// A request's size counts as that over the cube root of 1 and its wait over this, in seconds; see
    /// [`Objective::Completion`].
    pub ageing_s: f64,
    /// Seconds of waiting after which a request that fits nowhere keeps a machine for itself; after half of them its size
    /// counts for half; see
    /// [`Objective::Completion`].
    pub patience_s: f64,
}

impl Default for Packing {
    fn default() -> Self {
        Self { objective: Objective::Completion, ageing_s: params::AGEING_S, patience_s: params::PATIENCE_S }
    }
}

/// Why a request has no machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// It must and must not share a machine with another, or a group is in two gangs.
    Contradiction,
    /// No machine is left that the whole group may run on.
    NoMachine,
    /// No machine could take it, not even an empty one.
    TooLarge,
    /// A member of its gang fits nowhere.
    Gang,
    /// It would fit an empty machine; now none has room.
    NoRoom,
}

/// For each request its machine, or why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub places: Vec<Result<usize, Refusal>>,
}

/// Decides on the whole batch.
#[must_use]
pub fn place(batch: &Batch, method: Method) -> Answer {
    let units = Units::of(batch);
    let mut floor = Floor::new(batch, &units);
    match method {
        Method::EcschedDp => rounds::place(batch, &mut floor, Formula::DotProduct, Rounds::All),
        Method::EcschedDpOnce => rounds::place(batch, &mut floor, Formula::DotProduct, Rounds::One),
        Method::EcschedMl => rounds::place(batch, &mut floor, Formula::MostLoaded, Rounds::All),
        Method::Spread(blocked) => queue::place(batch, &mut floor, queue::Rank::LeastUsed, blocked),
        Method::MostLoaded(blocked) => queue::place(batch, &mut floor, queue::Rank::MostUsed, blocked),
        Method::Packing(packing) => floor = packing::place(batch, floor, packing),
    }
    let mut places = vec![Err(Refusal::NoRoom); batch.requests.len()];
    for (unit, machine) in units.units.iter().zip(&floor.places) {
        for member in &unit.members {
            places[*member] = machine.ok_or(Refusal::NoRoom);
        }
    }
    for (member, refusal) in &units.refused {
        places[*member] = Err(*refusal);
    }
    Answer { places }
}

/// So much is there of every resource that is wanted.
fn fits(free: &Vector, demand: &Vector) -> bool {
    free.iter().zip(demand).all(|(free, demand)| free >= demand || *demand == 0)
}
