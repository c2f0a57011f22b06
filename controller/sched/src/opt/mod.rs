//! Solvers over plain numbers: they know no job and no node.
//!
//! `congestion` routes demands so that the fullest pool is as empty as can be (maximum concurrent flow on
//! single paths); `relax` lets demands split and says how far from the best either is; `least` does both;
//! `fewest_hops` routes demands within capacity over as few links as can be; `max_min` hands out capacity
//! fairly, `packing` so that the sum is largest; `mincost` is the minimum-cost flow from rows to columns.

pub(crate) mod congestion;
pub(crate) mod fewest_hops;
pub(crate) mod least;
mod master;
pub(crate) mod max_min;
pub(crate) mod mincost;
pub(crate) mod packing;
pub(crate) mod relax;
mod shortest;

#[cfg(test)]
mod oracle;
