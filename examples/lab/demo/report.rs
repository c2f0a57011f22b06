//! What the demo found, as machines read it.

use crate::checks::{self, Checks};
use serde::Serialize;
use serde_json::Value;

/// A task of a job: where it ran and what its image cost.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TaskRow {
    pub(crate) job: String,
    pub(crate) name: String,
    pub(crate) node: String,
    pub(crate) container: String,
    pub(crate) bytes_predicted: u64,
    /// From the registry's access log.
    pub(crate) bytes_fetched: u64,
}

/// A flow: what it was given and what passed the links' own namespaces.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct FlowRow {
    pub(crate) job: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) path: Vec<String>,
    pub(crate) path_observed: Vec<String>,
    pub(crate) rate_given_bps: u64,
    pub(crate) rate_measured_bps: u64,
    pub(crate) saturated: bool,
}

/// A job's throughput.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct JobRow {
    pub(crate) name: String,
    pub(crate) bound: String,
    pub(crate) items_per_s_predicted: f64,
    pub(crate) items_per_s_measured: f64,
}

/// An agent's footprint, read from outside.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct AgentRow {
    pub(crate) node: String,
    pub(crate) pss_bytes: u64,
    /// Share of one core.
    pub(crate) cpu_share: f64,
}

/// Seconds until all tasks ran: ours from HTTP 201, the peer with Docker's API alone.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Start {
    pub(crate) ours_s: f64,
    pub(crate) docker_api_s: f64,
}

/// What changed across the kills of agent and controller.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Restarts {
    pub(crate) containers: usize,
    pub(crate) classes: usize,
}

/// What was there after and not before, over all nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct LeftoverCount {
    pub(crate) containers: usize,
    pub(crate) classes: usize,
    pub(crate) map_entries: usize,
    pub(crate) rules: usize,
    pub(crate) routes: usize,
}

/// Everything the demo says.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    verdict: Checks,
    pub(crate) tasks: Vec<TaskRow>,
    pub(crate) flows: Vec<FlowRow>,
    pub(crate) jobs: Vec<JobRow>,
    pub(crate) agents: Vec<AgentRow>,
    pub(crate) start: Start,
    pub(crate) restarts: Restarts,
    pub(crate) leftovers: LeftoverCount,
}

impl checks::Report for Report {
    fn checks(&mut self) -> &mut Checks {
        &mut self.verdict
    }
}

impl Report {
    pub(crate) fn check(&mut self, name: &str, ok: bool, value: impl Into<Value>, bound: impl Into<Value>) {
        self.verdict.check(name, ok, value, bound);
    }
}
