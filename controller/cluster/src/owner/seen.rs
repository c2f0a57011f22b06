//! What the replanner looks at, gathered: plans, what is measured of them, steady capacities.

use super::Owner;
use crate::model::JobRecord;
use crate::planner::{LINK_SHARE, profiles};
use crate::replan::{Direction, FlowSeen, JobSeen, LinkSeen, Seen, TaskSeen};
use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_sched::plan::{FlowPlan, JobPlan};
use edgeloom_sched::snapshot::Profiles;
use std::collections::BTreeMap;

/// A shortfall is looked for in the mean over this long.
const SHORT_WINDOW_MS: u64 = 10_000;
/// A job is judged only after it has run for this long under its plan: buffers fill, connections find their
/// rate.
const SETTLED_MS: u64 = 10_000;

impl Owner {
    /// What the replanner looks at.
    pub(super) fn seen(&self) -> Seen {
        let settled = |job: &JobName| {
            let running_ms = self.closed_loop.known.get(job).and_then(|known| known.running_ms);
            running_ms.is_some_and(|since_ms| self.now_ms.saturating_sub(since_ms) >= SETTLED_MS)
        };
        let jobs = self.model().committed();
        let jobs = jobs.filter(|(record, plan)| {
            !record.job.kind.ends() && record.settled() && settled(&record.job.name) && self.all_there(plan)
        });
        let capacities = &self.nodes.capacities;
        Seen {
            now_ms: self.now_ms,
            jobs: jobs.map(|(record, plan)| self.job_seen(record, plan)).collect(),
            links: self.links_seen(),
            speeds: capacities.speeds().map(|(node, speed)| (node.clone(), speed)).collect(),
        }
    }

    /// Every node with a task of the plan is online. Without one of them nothing is learnt of the rest.
    pub(super) fn all_there(&self, plan: &JobPlan) -> bool {
        plan.placement.values().all(|node| self.nodes.online(node))
    }

    fn links_seen(&self) -> BTreeMap<Direction, LinkSeen> {
        let known = self.nodes.capacities.links();
        let mut links: BTreeMap<Direction, LinkSeen> = known
            .map(|(direction, capacity)| {
                let queued = self.nodes.queued(&direction.0, &direction.1);
                let usable_bps = capacity * LINK_SHARE;
                (direction.clone(), LinkSeen { usable_bps, reserved_bps: 0.0, queued })
            })
            .collect();
        for flow in self.model().committed().flat_map(|(_, plan)| &plan.flows) {
            for hop in flow.path.windows(2) {
                if let Some(link) = links.get_mut(&(hop[0].clone(), hop[1].clone())) {
                    link.reserved_bps += flow.rate.as_f64();
                }
            }
        }
        links
    }

    fn job_seen(&self, record: &JobRecord, plan: &JobPlan) -> JobSeen {
        let (throughput, now_ms) = (&self.closed_loop.throughput, self.now_ms);
        let flow = |flow: &FlowPlan| {
            let mean = throughput.flow(&flow.id, now_ms, SHORT_WINDOW_MS);
            FlowSeen {
                id: flow.id.clone(),
                path: flow.path.clone(),
                given_bps: flow.rate.as_f64(),
                measured_bps: mean.map_or(0.0, |mean| mean.rate),
                backlogged: mean.map_or(0.0, |mean| mean.backlogged),
            }
        };
        let measured = throughput.measured(&record.job, plan, now_ms, SHORT_WINDOW_MS);
        let online = self.closed_loop.online().get(&record.job.name);
        let profiles = profiles(self.model(), online, record);
        let task = |(task, node)| self.task_seen((record, plan), &profiles, (task, node));
        let tasks = plan.placement.iter().filter_map(task);
        JobSeen {
            name: record.job.name.clone(),
            predicted: plan.prediction.items_per_s,
            bound: plan.prediction.bound,
            measured: measured.map(|view| view.items_per_s_measured),
            flows: plan.flows.iter().map(flow).collect(),
            tasks: tasks.collect(),
        }
    }

    fn task_seen(
        &self,
        (record, plan): (&JobRecord, &JobPlan),
        profiles: &Profiles,
        (name, node): (&TaskName, &NodeId),
    ) -> Option<TaskSeen> {
        let task = record.job.tasks.get(name)?;
        let inventory = self.nodes.table.get(node)?.inventory.as_ref()?;
        let requested = task.program.resources.cpu;
        let limit = plan.shares.get(name).map_or(requested, |share| share.cpu);
        let limit = if limit.0 == 0 { inventory.cpu } else { limit };
        let profile = profiles.get(name).and_then(|by_class| by_class.get(&inventory.class));
        let declared = task.work.map_or(0.0, edgeloom_common::units::Work::as_secs_f64);
        let mean = self.closed_loop.throughput.cpu(&record.job.name, name, self.now_ms, SHORT_WINDOW_MS);
        Some(TaskSeen {
            name: name.clone(),
            node: node.clone(),
            cores_used: mean.map(|mean| mean.rate),
            cores_limit: f64::from(limit.0) / 1000.0,
            work_s: profile.map_or(declared, |profile| profile.work_s),
        })
    }
}
