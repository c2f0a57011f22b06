//! What a node sees of itself: how much CPU, memory and disk it has and uses, how fast its cores are,
//! which image layers it holds, what its containers use, how hot it is, and what its links to the neighbours can do.
//!
//! In: /proc and the cgroup files, Docker's data directory, UDP packets of the neighbours.
//! Out: the numbers of a node's report, inventory and link report.
//! Everything here only reads (apart from the cached reference run): it changes nothing on the node.

pub mod cgroup;
pub mod class;
pub mod clock;
pub mod container;
pub mod disk;
pub mod heat;
pub mod layers;
pub mod links;
pub mod machine;
pub mod meter;
pub mod speed;
