//! Experiments under a virtual clock: random clusters and workloads or a user's own, the scheduler's own
//! decisions, and a throughput computed apart from the scheduler's predictions.
//!
//! In: settings, and for what-ifs the files of a cluster and its jobs. Out: results with one row a profile.
//! The same seeds give the same bytes, all but `timing`, which holds how long decisions took on this machine.

pub mod batch;
mod experiment;
pub mod layers;
mod parallel;
pub mod plot;
mod random;
mod simulation;
pub mod sla;
pub mod statistics;
pub mod streaming;
mod truth;
pub mod what_if;

pub use experiment::Experiment;
pub use parallel::available_threads;

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SimError {
    /// A setting out of its bounds.
    #[error("{setting} is {value}, at least {least} and at most {most} are allowed")]
    Setting { setting: &'static str, value: f64, least: f64, most: f64 },
    /// A profile that the scheduler does not have.
    #[error("profile {profile:?} is unknown, one of: {known}")]
    Profile { profile: String, known: String },
    /// A profile is named twice, or none is.
    #[error("profile {profile:?} is named twice; name each once")]
    Twice { profile: String },
    /// No profile at all.
    #[error("no profile is named; name at least one of: {known}")]
    NoProfile { known: String },
    /// The scheduler broke one of its own rules.
    #[error(
        "profile {profile} broke a rule with seed {seed} at {at_s:.3} s: {first}; please report this command"
    )]
    Broken { profile: &'static str, seed: u64, at_s: f64, first: String },
    /// The scheduler gave away more than a machine has.
    #[error(
        "profile {profile} overbooked machine {machine} with seed {seed} at {at_s:.3} s; please report this command"
    )]
    Overbooked { profile: String, seed: u64, at_s: f64, machine: usize },
    /// A line of a trace that does not read.
    #[error(
        "line {line} of the trace is {text:?}; write submitted s, duration s, CPU, memory, the last two as parts of the largest machine, 0 to 1; or give task_events of Google's trace of 2011, or batch_task of Alibaba's of 2018"
    )]
    Trace { line: usize, text: String },
    /// Nothing to write out.
    #[error("no profile here is a flow; name ecsched-dp or ecsched-ml")]
    NoFlow,
}

/// The profiles of those names.
pub(crate) fn profiles(names: &[String]) -> Result<Vec<edgeloom_sched::Profile>, SimError> {
    let known = || edgeloom_sched::profile_names().join(", ");
    if names.is_empty() {
        return Err(SimError::NoProfile { known: known() });
    }
    if let Some(at) = (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
        return Err(SimError::Twice { profile: names[at].clone() });
    }
    let unknown = |name: &String| SimError::Profile { profile: name.clone(), known: known() };
    names.iter().map(|name| edgeloom_sched::profile(name).ok_or_else(|| unknown(name))).collect()
}

/// A setting within its bounds; what is no number is outside.
pub(crate) fn within(setting: &'static str, value: f64, (least, most): (f64, f64)) -> Result<(), SimError> {
    let inside = (least..=most).contains(&value);
    if inside { Ok(()) } else { Err(SimError::Setting { setting, value, least, most }) }
}

/// A number of things that is swept. Saturates, and so stays out of bounds where it was.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts from float saturate")]
pub(crate) fn count(value: f64) -> usize {
    value.round() as usize
}
