//! The package as a whole: barriers under every interleaving, and a cluster of simulated nodes.

mod barrier;
mod cluster;
mod handle;
mod loss;
mod pulls;
mod world;
