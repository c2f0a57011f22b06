//! The package as a whole: barriers under every interleaving, and a cluster of simulated nodes.

mod barrier;
mod cluster;
mod durability;
mod explain;
mod handle;
mod loss;
mod moves;
mod profiler;
mod pulls;
mod replan;
mod strategy;
mod world;
