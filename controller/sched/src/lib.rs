//! The decisions: a snapshot goes in, a decision with its reasons comes out. No clock, no I/O, no
//! randomness but the snapshot's seed.
//!
//! [`decide`] asks one profile about every waiting job, longest wait first; [`check`] holds any
//! decision against the hard rules, whoever made it. Equal snapshots give equal decisions, whatever
//! the order of their lists.

pub mod batch;
pub mod consolidate;
pub mod cordon;
pub mod plan;
pub mod pull;
pub mod scoring;
pub mod sla;
pub mod snapshot;

mod alone;
mod case;
mod check;
mod classes;
mod copies;
mod explain;
mod filter;
mod images;
mod job_graph;
mod kube;
mod layers;
mod ledger;
mod one_by_one;
mod opt;
mod profile;
mod queues;
mod resize;
mod route;
mod score;
mod streaming;
mod world;

#[cfg(test)]
extern crate self as edgeloom_sched;
#[cfg(test)]
#[path = "../tests/worlds/mod.rs"]
mod worlds;

pub use check::{Violation, check};
pub use explain::{JobExplanation, explain};
pub use profile::{Profile, decide, profile, profile_names};
pub use resize::resize;
pub use streaming::{JrbaProblem, JrbaResult, JrbaSize, jrba_congestion};
