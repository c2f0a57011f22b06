//! What jobs achieve, from what nodes count: items a second beside the prediction.
//!
//! In: the reports of nodes, as they come. Out: per job the measured items a second over a window, per flow
//! and task the mean of what was counted. A flow's items are its payload by the bytes that the job declares
//! an item to have; a job is as fast as the slowest of its flows. Nothing here outlives the controller.

mod series;

pub(crate) use series::Mean;

use edgeloom_common::ids::{FlowId, JobName, NodeId, TaskName};
use edgeloom_common::job::Job;
use edgeloom_common::report::Report;
use edgeloom_common::units::{Bytes, TCP_GOODPUT};
use edgeloom_common::view::MeasuredView;
use edgeloom_sched::plan::JobPlan;
use series::Series;
use std::collections::BTreeMap;

/// What users are shown is the mean over this long.
pub(crate) const WINDOW_MS: u64 = 20_000;
/// Below this, headers and acknowledgements weigh more than the items.
const VOLUME_MIN: Bytes = Bytes(1_000);

/// What one container used, as series.
#[derive(Debug, Default)]
struct TaskSeries {
    /// Cores.
    cpu: Series,
    /// Bits a second.
    received: Series,
}

/// Everything counted of one job under its present plan, by the node that counts it.
#[derive(Debug)]
struct JobSeries {
    flows: BTreeMap<FlowId, (NodeId, Series)>,
    tasks: BTreeMap<TaskName, (NodeId, TaskSeries)>,
}

impl JobSeries {
    fn of(plan: &JobPlan) -> Self {
        let flows = plan
            .flows
            .iter()
            .filter_map(|flow| Some((flow.id.clone(), (flow.path.first()?.clone(), Series::default()))));
        let task = |(task, node): (&TaskName, &NodeId)| (task.clone(), (node.clone(), TaskSeries::default()));
        Self { flows: flows.collect(), tasks: plan.placement.iter().map(task).collect() }
    }
}

/// What is measured of all jobs.
#[derive(Debug, Default)]
pub(crate) struct Throughput {
    jobs: BTreeMap<JobName, JobSeries>,
    /// When each node's last report came.
    heard_ms: BTreeMap<NodeId, u64>,
}

impl Throughput {
    /// Takes a report in: what the plan has this node count, and nothing else.
    pub(crate) fn take(&mut self, node: &NodeId, report: &Report, now_ms: u64) {
        let Some(before_ms) = self.heard_ms.insert(node.clone(), now_ms) else { return };
        let span = (now_ms, now_ms.saturating_sub(before_ms));
        for flow in &report.flows {
            let known = self.jobs.get_mut(&flow.id.job).and_then(|job| job.flows.get_mut(&flow.id));
            if let Some((_, series)) = known.filter(|(first, _)| first == node) {
                series.add(span, flow.rate.as_f64(), flow.backlog.0 > 0);
            }
        }
        for task in &report.tasks {
            let known = self.jobs.get_mut(&task.job).and_then(|job| job.tasks.get_mut(&task.task));
            if let Some((_, series)) = known.filter(|(runs_on, _)| runs_on == node) {
                series.cpu.add(span, f64::from(task.cpu.0) / 1000.0, false);
                series.received.add(span, task.received.as_f64(), false);
            }
        }
    }

    /// Begins anew with a job: what was counted belongs to another plan.
    pub(crate) fn begin(&mut self, plan: &JobPlan) {
        self.jobs.insert(plan.job.clone(), JobSeries::of(plan));
    }

    /// Keeps nothing of jobs for which `keep` says no.
    pub(crate) fn retain(&mut self, keep: impl Fn(&JobName) -> bool) {
        self.jobs.retain(|job, _| keep(job));
    }

    /// The mean wire rate of a flow, in bits a second.
    pub(crate) fn flow(&self, id: &FlowId, now_ms: u64, window_ms: u64) -> Option<Mean> {
        self.jobs.get(&id.job)?.flows.get(id)?.1.mean(now_ms, window_ms)
    }

    /// The mean of the cores that a task uses.
    pub(crate) fn cpu(&self, job: &JobName, task: &TaskName, now_ms: u64, window_ms: u64) -> Option<Mean> {
        self.jobs.get(job)?.tasks.get(task)?.1.cpu.mean(now_ms, window_ms)
    }

    /// Items a second over the window, once half of it is covered for everything that counts.
    pub(crate) fn measured(
        &self,
        job: &Job,
        plan: &JobPlan,
        now_ms: u64,
        window_ms: u64,
    ) -> Option<MeasuredView> {
        let known = self.jobs.get(&job.name)?;
        let enough = |mean: &Mean| mean.covered_ms * 2 >= window_ms;
        let mut means = Vec::new();
        let flows = plan.flows.iter().filter(|flow| flow.volume >= VOLUME_MIN);
        for flow in flows {
            let mean = known.flows.get(&flow.id)?.1.mean(now_ms, window_ms).filter(enough)?;
            means.push((items_per_s(mean.rate * TCP_GOODPUT, flow.volume), mean));
        }
        let origin = if means.is_empty() { "containers" } else { "flows" };
        if means.is_empty() {
            for (task, volume) in inputs(job).into_iter().filter(|(_, volume)| *volume >= VOLUME_MIN) {
                let mean = known.tasks.get(&task)?.1.received.mean(now_ms, window_ms).filter(enough)?;
                means.push((items_per_s(mean.rate, volume), mean));
            }
        }
        let slowest = means.into_iter().min_by(|x, y| x.0.total_cmp(&y.0))?;
        #[expect(clippy::cast_precision_loss, reason = "a minute of milliseconds")]
        let window_s = slowest.1.covered_ms as f64 / 1000.0;
        Some(MeasuredView { items_per_s_measured: slowest.0, window_s, origin: origin.to_owned() })
    }
}

#[expect(clippy::cast_precision_loss, reason = "bytes an item stay far below 2^52")]
fn items_per_s(payload_bps: f64, volume: Bytes) -> f64 {
    payload_bps / (8.0 * volume.0 as f64)
}

/// Bytes that each task receives an item.
fn inputs(job: &Job) -> BTreeMap<TaskName, Bytes> {
    let mut received: BTreeMap<TaskName, Bytes> = BTreeMap::new();
    for (_, to, bytes) in job.edges() {
        let sum = received.entry(to).or_default();
        *sum = Bytes(sum.0 + bytes.0);
    }
    received
}

#[cfg(test)]
mod tests;
