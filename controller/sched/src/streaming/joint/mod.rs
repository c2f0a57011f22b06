//! The `edgeloom` profile: placement, paths, rates and processor shares of several jobs decided together.
//!
//! All jobs of the profile draw on the same pools: link directions and, where jobs share them, processors.
//! For given seats (placement and paths) the throughputs are a linear program: every job keeps a floor, a
//! part of its max-min throughput, and above the floors the sum is as large as can be. Seats are searched
//! for, and what the search proposes is judged by that program over all jobs: first the newcomer's, then,
//! as far as each job may change, other paths, other nodes, and places that one job gives up for another.
//! A change of a running job has to gain more than it costs.
//!
//! In: the world, the running jobs, a newcomer or none. Out: the plans that change.

mod evict;
mod improve;
mod member;
mod place;
mod plans;
mod room;
mod shares;

pub(crate) use member::routed;
pub(super) use place::{newcomer, rebalance};
