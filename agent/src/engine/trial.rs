//! The second seam to what runs containers: one program, run once to be measured, apart from all tasks.
//!
//! A trial carries our labels of cluster and node, but none of a job or task, so that no list of task
//! containers ever shows it. It has no network. Whoever makes one removes it.

use super::EngineError;
use edgeloom_common::desired::ImageRef;
use edgeloom_common::units::{Bytes, MilliCores};
use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

/// What to run, and within which limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialSpec {
    pub image: ImageRef,
    /// Empty: what the image says.
    pub command: Vec<String>,
    pub environment: BTreeMap<String, String>,
    /// Zero: no limit.
    pub cpu: MilliCores,
    pub memory: Bytes,
}

/// How a trial ended, by the engine's own clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialEnd {
    /// Since 1970.
    pub started: Duration,
    pub finished: Duration,
    pub exit_code: i32,
    /// It wanted more memory than its limit.
    pub out_of_memory: bool,
}

/// What a trial has used since its container was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialUse {
    /// Since 1970: when this was so.
    pub at: Duration,
    pub cpu: Duration,
    pub memory_peak: Bytes,
}

/// Reads what one trial uses.
pub trait Gauge: Send {
    /// The figures now; none before there is anything to read, and after the trial's end.
    fn read(&mut self) -> impl Future<Output = Option<TrialUse>> + Send;
}

/// The verbs.
pub trait Trials: Send + Sync + 'static {
    /// Makes a trial's container and returns its id.
    fn create_trial(&self, spec: &TrialSpec) -> impl Future<Output = Result<String, EngineError>> + Send;
    /// Starts it.
    fn start_trial(&self, id: &str) -> impl Future<Output = Result<(), EngineError>> + Send;
    /// Waits until it has ended.
    fn end_of_trial(&self, id: &str) -> impl Future<Output = Result<TrialEnd, EngineError>> + Send;
    fn gauge(&self, id: &str) -> impl Gauge;
    /// The ids of all trials of this owner, running or not.
    fn list_trials(&self) -> impl Future<Output = Result<Vec<String>, EngineError>> + Send;
    /// Kills and removes it; gone already is well.
    fn remove_trial(&self, id: &str) -> impl Future<Output = Result<(), EngineError>> + Send;
}
