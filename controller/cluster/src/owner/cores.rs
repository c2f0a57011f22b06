//! Dynamic cores: limits of containers that are sized by class follow what they use, and who else is there.
//!
//! In: measured cores beside limits, the scheduler's division of each node. Out: commits that change shares alone,
//! which agents carry out in place, and an event for each container with its reason.

use super::Owner;
use crate::demand::{Demand, Enough, SETTLED_MS, thousandths};
use crate::events::Kind;
use crate::model::{Commit, Event, JobRecord};
use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_common::units::MilliCores;
use edgeloom_sched::plan::JobPlan;
use std::collections::BTreeMap;

/// Between two divisions of the nodes' cores.
const PERIOD_MS: u64 = 5_000;
/// Use is the mean over so long, of which half is covered.
const WINDOW_MS: u64 = SETTLED_MS;

/// What is known of the containers' use, by job and task.
#[derive(Debug, Default)]
pub(super) struct Uses {
    demands: BTreeMap<JobName, BTreeMap<TaskName, (NodeId, Demand)>>,
    enough: Enough,
    /// When cores were divided last.
    divided_ms: u64,
    /// Why they were not, as told last.
    refused: String,
}

impl Uses {
    pub(super) const fn enough(&self) -> &Enough {
        &self.enough
    }
}

/// Whether the job's class says how many cores its tasks get, where the document leaves that open.
fn by_class(record: &JobRecord, plan: &JobPlan) -> bool {
    record.job.sla.resources.is_some() || plan.profile == "sla"
}

/// The CPU limit of a task that the document leaves open, in thousandths of a core.
fn limit(record: &JobRecord, plan: &JobPlan, task: &TaskName) -> Option<MilliCores> {
    let resources = record.job.tasks.get(task)?.program.resources;
    let limit = plan.shares.get(task).map_or(resources.cpu, |share| share.cpu);
    (resources.cpu_sized && limit.0 > 0).then_some(limit)
}

impl Owner {
    /// Looks at what containers use, once a second.
    pub(super) fn follow_use(&mut self) {
        let now_ms = self.now_ms;
        let mut demands = BTreeMap::new();
        for (record, plan) in self.state.model.committed().filter(|(record, plan)| by_class(record, plan)) {
            let name = &record.job.name;
            let mut before = self.closed_loop.uses.demands.remove(name);
            let mut own = BTreeMap::new();
            for (task, node) in &plan.placement {
                let Some(limit) = limit(record, plan, task).map(cores) else { continue };
                let known = before.as_mut().and_then(|before| before.remove(task));
                let known = known.filter(|(was, _)| was == node).map(|(_, demand)| demand);
                let witnessed = self.closed_loop.witnessed.contains(name);
                let first = || if witnessed { Demand::default() } else { Demand::inherited(limit) };
                let mut demand = known.unwrap_or_else(first);
                let mean = self.closed_loop.throughput.cpu(name, task, now_ms, WINDOW_MS);
                if let Some(mean) = mean.filter(|mean| mean.covered_ms * 2 >= WINDOW_MS) {
                    demand.look((mean.rate, limit), now_ms);
                }
                own.insert(task.clone(), (node.clone(), demand));
            }
            demands.insert(name.clone(), own);
        }
        let told = |(task, (_, demand)): (&TaskName, &(NodeId, Demand))| {
            Some((task.clone(), thousandths(demand.enough()?)))
        };
        let enough = demands.iter().map(|(job, own)| (job.clone(), own.iter().filter_map(told).collect()));
        self.closed_loop.uses.enough = enough.collect();
        self.closed_loop.uses.demands = demands;
    }

    /// Divides the nodes' cores anew among containers that are sized by class.
    pub(super) fn divide_cores(&mut self) {
        let uses = &mut self.closed_loop.uses;
        if uses.demands.is_empty() || self.now_ms.saturating_sub(uses.divided_ms) < PERIOD_MS {
            return;
        }
        uses.divided_ms = self.now_ms;
        let down = self.nodes.down(&self.model().topology);
        let commits = match self.planner(self.model(), &down, &BTreeMap::new()).resized() {
            Ok(outcome) if outcome.commits.is_empty() => return,
            Ok(outcome) => outcome.commits,
            Err(error) => {
                let refused = error.to_string();
                if self.closed_loop.uses.refused != refused {
                    tracing::warn!(error = refused, "limits are not changed");
                    self.closed_loop.uses.refused = refused;
                }
                return;
            }
        };
        let notes: Vec<_> = commits.iter().map(|commit| self.resized(commit)).collect();
        if self.state.commit(Event::Committed { commits }).is_err() {
            tracing::error!("new limits are not journaled and not set");
            return;
        }
        for (job, text) in notes {
            self.events.note(self.now_ms, Some(&job), Kind::Resized, text);
        }
        self.follow_plans();
        self.advance();
    }

    /// What new limits are told as, before they are set.
    fn resized(&self, commit: &Commit) -> (JobName, String) {
        let job = &commit.plan.job;
        let record = self.model().jobs.get(job);
        let before = record.and_then(|record| Some((record, record.plan.as_ref()?)));
        let lines = commit.plan.shares.iter().filter_map(|(task, share)| {
            let (record, plan) = before?;
            let was = limit(record, plan, task)?;
            let why = self.why(job, task, (was, share.cpu));
            let node = commit.plan.placement.get(task)?;
            (was != share.cpu)
                .then(|| format!("{task} on {node} gets {} CPU instead of {was}: {why}", share.cpu))
        });
        (job.clone(), lines.collect::<Vec<_>>().join("; "))
    }

    fn why(&self, job: &JobName, task: &TaskName, (was, now): (MilliCores, MilliCores)) -> String {
        let mean = self.closed_loop.throughput.cpu(job, task, self.now_ms, WINDOW_MS);
        let used = mean.map(|mean| format!("it used {:.2} of {:.2} cores", mean.rate, cores(was)));
        let known = self.closed_loop.uses.enough.get(job).and_then(|own| own.get(task));
        match used {
            Some(used) if now < was && known.is_some_and(|enough| *enough < was) => used,
            Some(used) if now > was && known.is_none() => format!("{used}, and there is room"),
            _ => "others came, went or gave".to_owned(),
        }
    }
}

fn cores(cpu: MilliCores) -> f64 {
    f64::from(cpu.0) / 1000.0
}
