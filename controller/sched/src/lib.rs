//! The decisions: a snapshot goes in, a decision with its reasons comes out. No clock, no I/O, no
//! randomness but the snapshot's seed.

pub mod plan;
pub mod snapshot;
