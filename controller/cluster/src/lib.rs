//! The cluster's state and everything that changes it.
//!
//! Jobs come in through [`Cluster`], nodes speak through [`Cluster::observe`]. The planner turns both into a
//! snapshot, the scheduler decides, the checker has to agree; the commit is journaled, and one document a
//! node goes out in steps that never loop a packet nor overbook a link.
//!
//! Acting: `cluster directory journal outbox owner registry state store transfer`, and the archive of `usage`. All others are
//! pure, but that a few log what they note. One owner holds it together.

mod addresses;
mod barrier;
mod batch;
mod booking;
mod capacity;
mod change;
mod cluster;
mod copies;
mod cordon;
mod data;
mod demand;
mod directory;
mod documents;
mod error;
mod events;
mod explain;
mod figures;
mod follow;
mod holding;
mod journal;
mod known;
mod line;
mod lost;
mod missing;
mod model;
mod moves;
mod nodes;
mod outbox;
mod owner;
mod planner;
mod prefetch;
mod profiler;
mod pulls;
mod rebuild;
mod record;
mod regain;
mod registry;
mod replan;
mod reserved;
mod salvage;
mod state;
mod store;
mod strategy;
#[cfg(test)]
mod tests;
mod throughput;
mod topology;
mod transfer;
mod usage;
mod variants;
mod vault;
mod views;

pub use cluster::{Batching, Beat, Cluster, Registries, Settings};
pub use copies::CopyKeys;
pub use directory::{Extent, forget_secrets, repair};
#[cfg(feature = "fakes")]
pub use edgeloom_registry::fake;
pub use edgeloom_registry::{ClientError, Count, Envelope, RegistryError, Tally};
pub use error::{
    DrainError, ForgetError, PrefetchError, SecretError, StartError, StopError, SubmitError, VolumeError,
};
pub use figures::{Figures, Histogram, NodeFigures};
pub use follow::FollowLoad;
pub use journal::{JournalError, Loss};
pub use line::Pulled;
pub use nodes::NodeMessage;
pub use outbox::Publish;
pub use profiler::{Run, SurveyRequest, Trial, Verdict};
pub use salvage::Outcome;
pub use store::StoreError;
pub use transfer::{Existing, TransferError, authority, export, import};
pub use usage::UsageQuery;
pub use vault::{NoRoom, Unusable};
