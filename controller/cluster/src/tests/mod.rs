//! The package as a whole: barriers under every interleaving, and a cluster of simulated nodes.

mod away;
mod back_off;
mod barrier;
mod batches;
mod cluster;
mod copies;
mod cores;
mod drain;
mod durability;
mod explain;
mod handle;
mod loss;
mod losses;
mod lost_midway;
mod moves;
mod prefetch;
mod profiler;
mod pulls;
mod regain;
mod replan;
mod secrets;
mod strategy;
mod usage;
mod variants;
mod volumes;
mod world;
