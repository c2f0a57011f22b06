//! Experiments under a virtual clock: random clusters and workloads, the scheduler's own decisions, and a
//! throughput computed apart from the scheduler's predictions.
//!
//! In: the kind of experiment and its seeds. Out: JSON with one row a profile. The same seeds give the same
//! bytes, all but `timing`, which holds how long decisions took on this machine.

mod random;
mod statistics;
pub mod streaming;

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// No such experiment.
    #[error("experiment {kind:?} is unknown, one of: streaming")]
    Kind { kind: String },
    /// A setting out of its bounds.
    #[error("{setting} is {value}, at least {least} and at most {most} are allowed")]
    Setting { setting: &'static str, value: u64, least: u64, most: u64 },
    /// A profile that the scheduler does not have.
    #[error("profile {profile:?} is unknown")]
    Profile { profile: String },
}

/// Runs an experiment with its default settings over the seeds `seed_base .. seed_base + seeds`.
///
/// # Errors
/// An unknown kind, or a number of seeds out of bounds.
pub fn run(kind: &str, seeds: u64, seed_base: u64) -> Result<serde_json::Value, SimError> {
    match kind {
        "streaming" => {
            let settings = streaming::Settings { seeds, seed_base, ..streaming::Settings::default() };
            let experiment = streaming::run_streaming(&settings)?;
            Ok(serde_json::to_value(&experiment).expect("an experiment is plain numbers and names"))
        }
        _ => Err(SimError::Kind { kind: kind.to_owned() }),
    }
}
