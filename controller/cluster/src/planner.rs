//! From the model and the nodes to a decision that may be committed.
//!
//! One snapshot, one decision, one check: what the checker refuses is never committed, and what would make a
//! document too large for a node is refused too.

use crate::addresses::{PoolExhausted, lease};
use crate::batch::{Parts, ready};
use crate::cordon;
use crate::data;
use crate::demand::Enough;
use crate::documents::{Ground, documents, programs};
use crate::model::{Commit, Event, JobRecord, Model, Phase};
use crate::nodes::Nodes;
use crate::pulls::{Pulls, platforms};
use crate::variants;
use edgeloom_common::desired::Pool;
use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_common::job::{Job, Kind};
use edgeloom_common::topics::DOCUMENT_MAX;
use edgeloom_common::units::TCP_GOODPUT;
use edgeloom_sched::batch::Packing;
use edgeloom_sched::plan::{Decision, JobPlan, Unplaced};
use edgeloom_sched::scoring::Scoring;
use edgeloom_sched::snapshot::{Change, Node, Policy, Processors, Profiles, Running, Snapshot, Waiting};
use edgeloom_sched::{Profile, check, decide, resize};
use std::collections::{BTreeMap, BTreeSet};

/// Share of a link that flows may reserve.
pub(crate) const LINK_SHARE: f64 = 0.95;

/// What the planner looks at.
#[derive(Debug)]
pub(crate) struct Planner<'a> {
    pub(crate) model: &'a Model,
    pub(crate) nodes: &'a Nodes,
    pub(crate) ground: Ground<'a>,
    pub(crate) profile: Profile,
    pub(crate) scoring: &'a Scoring,
    pub(crate) packing: Packing,
    pub(crate) now_ms: u64,
    pub(crate) leave: Leave<'a>,
}

/// What may change of jobs that run, and what was learnt of them while they ran.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leave<'a> {
    /// Jobs not named may change their rates.
    pub(crate) changes: &'a BTreeMap<JobName, Change>,
    /// Measured while a job runs; more to be believed than what was measured before.
    pub(crate) online: &'a BTreeMap<JobName, Profiles>,
    /// Cores that turned out to be enough.
    pub(crate) enough: &'a Enough,
}

/// A sound decision, ready to be journaled.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) commits: Vec<Commit>,
    pub(crate) unplaced: Vec<Unplaced>,
}

/// Why a decision is not committed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error("the plan breaks a rule: {rules}")]
    Unsound { rules: String },
    #[error(transparent)]
    Pool(#[from] PoolExhausted),
    #[error("the document of node {node} would have {bytes} bytes, over {DOCUMENT_MAX}; stop a job")]
    Document { node: NodeId, bytes: usize },
}

impl Planner<'_> {
    /// Decides on these waiting jobs.
    pub(crate) fn outcome(&self, waiting: &[&JobRecord]) -> Result<Outcome, PlanError> {
        let pulls = Pulls::after(self.model, self.nodes);
        let mut parts = Parts::new(self.model);
        for record in waiting.iter().filter(|record| record.job.kind.ends()) {
            parts.add((record, self.nodes), self.model, &self.profiles(record));
        }
        let mut snapshot = self.snapshot(waiting, &pulls);
        for Waiting { job, images, .. } in &mut parts.entries {
            variants::hold(job, None, &snapshot.nodes, variants::told(images));
        }
        snapshot.waiting.append(&mut parts.entries);
        let decision = decide(self.profile, &snapshot);
        self.sound(waiting, (&snapshot, decision), (pulls, parts))
    }

    /// Divides the nodes' cores anew among containers that are sized by class.
    pub(crate) fn resized(&self) -> Result<Outcome, PlanError> {
        let pulls = Pulls::after(self.model, self.nodes);
        let snapshot = self.snapshot(&[], &pulls);
        let decision = resize(&snapshot);
        self.sound(&[], (&snapshot, decision), (pulls, Parts::new(self.model)))
    }

    /// The decision as commits, if it breaks no rule.
    fn sound(
        &self,
        waiting: &[&JobRecord],
        (snapshot, decision): (&Snapshot, Decision),
        (mut pulls, mut parts): (Pulls<'_>, Parts),
    ) -> Result<Outcome, PlanError> {
        let violations = check(&decision, snapshot);
        if !violations.is_empty() {
            let rules: Vec<String> = violations.iter().map(ToString::to_string).collect();
            return Err(PlanError::Unsound { rules: rules.join("; ") });
        }
        let record = |job: &JobName| {
            let fresh = waiting.iter().find(|record| record.job.name == *job).copied();
            fresh.or_else(|| self.model.jobs.get(job))
        };
        let decision = parts.join(decision, record);
        let mut commits = Vec::new();
        let mut used = self.model.leased();
        for plan in decision.plans {
            let Some(record) = record(&plan.job) else { continue };
            let addresses = addresses(self.ground.pool, &mut used, (record, &plan))?;
            let mut bytes_predicted = pulls.add(record, &plan);
            bytes_predicted.extend(behind(record, &plan));
            let (lost, at_ms) = (BTreeSet::new(), self.now_ms);
            commits.push(Commit { plan, addresses, bytes_predicted, lost, at_ms });
        }
        self.documents_fit(waiting, &commits)?;
        Ok(Outcome { commits, unplaced: decision.unplaced })
    }

    /// The cluster as it runs, with every settled job as if it waited: what a consolidation looks at.
    pub(crate) fn again(&self) -> Snapshot {
        let settled = self.model.committed().map(|(record, _)| record).filter(|record| record.settled());
        self.snapshot(&settled.collect::<Vec<_>>(), &Pulls::after(self.model, self.nodes))
    }

    /// The cluster as it stands, with nothing waiting.
    pub(crate) fn standing(&self) -> Snapshot {
        self.snapshot(&[], &Pulls::after(self.model, self.nodes))
    }

    fn snapshot(&self, waiting: &[&JobRecord], pulls: &Pulls<'_>) -> Snapshot {
        let mut nodes = self.nodes.schedulable();
        nodes.iter_mut().for_each(|node| node.hosting.held = pulls.held(&node.id));
        variants::label(&mut nodes);
        let running = self.running(&nodes);
        let job = |record: &JobRecord| {
            let mut job = data::beside(record, self.nodes);
            variants::hold(&mut job, record.plan.as_ref(), &nodes, variants::of(record));
            job
        };
        let waiting = waiting
            .iter()
            .filter(|record| !record.job.kind.ends())
            .map(|record| Waiting {
                job: job(record),
                since_ms: record.since_ms,
                images: platforms(&record.images),
                profiles: self.profiles(record),
            })
            .collect();
        let mut snapshot = Snapshot {
            now_ms: self.now_ms,
            seed: self.model.generation,
            goodput: TCP_GOODPUT,
            link_share: LINK_SHARE,
            processors: Processors::Shared,
            policy: Policy { batch: self.packing, ..Policy::default() },
            scoring: self.scoring.clone(),
            nodes,
            links: self.nodes.links(),
            running,
            waiting,
        };
        cordon::apply(&self.model.cordons, &mut snapshot);
        snapshot
    }

    fn profiles(&self, record: &JobRecord) -> Profiles {
        profiles(self.model, self.leave.online.get(&record.job.name), record)
    }

    /// Jobs that hold resources: a stopping one does until it is gone.
    fn running(&self, nodes: &[Node]) -> Vec<Running> {
        let holding = self.model.jobs.values().filter(|record| record.phase != Phase::Waiting);
        holding
            .filter_map(|record| {
                let name = &record.job.name;
                let plan = record.plan.clone()?;
                let mut job = placed(&record.job, &plan);
                variants::hold(&mut job, Some(&plan), nodes, variants::of(record));
                Some(Running {
                    job,
                    plan,
                    profiles: self.profiles(record),
                    change: match record.phase {
                        Phase::Stopping => Change::Nothing,
                        _ if record.job.kind.ends() => Change::Rates,
                        _ => self.leave.changes.get(name).copied().unwrap_or(Change::Rates),
                    },
                    enough: self.leave.enough.get(name).cloned().unwrap_or_default(),
                })
            })
            .collect()
    }

    fn documents_fit(&self, waiting: &[&JobRecord], commits: &[Commit]) -> Result<(), PlanError> {
        let mut after = self.model.clone();
        for record in waiting {
            after.jobs.entry(record.job.name.clone()).or_insert_with(|| (*record).clone());
        }
        after.apply(Event::Committed { commits: commits.to_vec() });
        for (node, document) in documents(&after, &self.ground) {
            let bytes = serde_json::to_vec(&document).map_or(usize::MAX, |text| text.len());
            // Room for the version, and for old and new entries side by side during a change.
            if bytes.saturating_mul(2) > DOCUMENT_MAX {
                return Err(PlanError::Document { node, bytes });
            }
        }
        Ok(())
    }
}

/// What was measured of a job's tasks, before it ran and while it does.
pub(crate) fn profiles(model: &Model, online: Option<&Profiles>, record: &JobRecord) -> Profiles {
    let mut profiles = crate::profiler::profiles(model, record);
    for (task, by_class) in online.into_iter().flatten() {
        profiles.entry(task.clone()).or_default().extend(by_class.clone());
    }
    profiles
}

/// Pulls of a running job's tasks that stay where they are.
fn behind<'a>(record: &'a JobRecord, plan: &'a JobPlan) -> impl Iterator<Item = (TaskName, u64)> + 'a {
    let old = record.plan.as_ref();
    let stays =
        move |task: &TaskName| old.is_some_and(|old| old.placement.get(task) == plan.placement.get(task));
    record
        .bytes_predicted
        .iter()
        .filter(move |(task, _)| stays(task))
        .map(|(task, bytes)| (task.clone(), *bytes))
}

/// The job as far as it is placed: of a batch, tasks that wait or have ended hold nothing.
fn placed(job: &Job, plan: &JobPlan) -> Job {
    if !job.kind.ends() {
        return job.clone();
    }
    let tasks = job.tasks.iter().filter(|(name, _)| plan.placement.contains_key(*name));
    let tasks = tasks.map(|(name, task)| (name.clone(), task.clone())).collect();
    // What is placed is not placed again, so that it began together or not makes no difference.
    Job { kind: Kind::Batch, tasks, ..job.clone() }
}

/// The addresses that the job has, and new ones: of a batch for what is placed, otherwise for all at once.
fn addresses(
    pool: &Pool,
    used: &mut BTreeSet<std::net::Ipv4Addr>,
    (record, plan): (&JobRecord, &JobPlan),
) -> Result<BTreeMap<TaskName, std::net::Ipv4Addr>, PoolExhausted> {
    let mut addresses = record.addresses.clone();
    let batch = record.job.kind.ends();
    if !batch && !addresses.is_empty() {
        return Ok(addresses);
    }
    let mut names: Vec<TaskName> = programs(&record.job).into_iter().map(|(name, _)| name).collect();
    names.retain(|name| !batch || (plan.placement.contains_key(name) && !addresses.contains_key(name)));
    let given = lease(pool, used, names.len())?;
    used.extend(&given);
    addresses.extend(names.into_iter().zip(given));
    Ok(addresses)
}

/// Why a job found no place, one line.
pub(crate) fn reason(unplaced: &Unplaced) -> String {
    if unplaced.reasons.is_empty() {
        return format!("task {} waits for the first node to join and to tell what it has", unplaced.task);
    }
    let nodes: Vec<String> =
        unplaced.reasons.iter().map(|reason| format!("{}: {}", reason.node, reason.text)).collect();
    format!("task {} finds no node ({})", unplaced.task, nodes.join("; "))
}

/// A job that waits for its first decision.
pub(crate) fn new_record(
    job: Job,
    images: BTreeMap<TaskName, crate::model::Image>,
    profile: &str,
    since_ms: u64,
) -> JobRecord {
    JobRecord {
        profile: job.profile.clone().unwrap_or_else(|| profile.to_owned()),
        job,
        phase: Phase::Waiting,
        since_ms,
        images,
        addresses: BTreeMap::new(),
        plan: None,
        commit_number: 0,
        confirmed: false,
        previous: None,
        left: BTreeSet::new(),
        moved: BTreeMap::new(),
        placed: BTreeMap::new(),
        bytes_predicted: BTreeMap::new(),
        reason: String::new(),
        ended: BTreeMap::new(),
    }
}

/// Names of jobs that wait, and of batches of which tasks do, the longest wait first.
pub(crate) fn waiting(model: &Model, nodes: &Nodes) -> Vec<JobName> {
    let waits = |record: &&JobRecord| match record.phase {
        Phase::Waiting => true,
        Phase::Committed => record.job.kind.ends() && !ready(record, nodes).is_empty(),
        Phase::Ended | Phase::Stopping => false,
    };
    let mut found: Vec<&JobRecord> = model.jobs.values().filter(waits).collect();
    found.sort_by(|x, y| (x.since_ms, &x.job.name).cmp(&(y.since_ms, &y.job.name)));
    found.into_iter().map(|record| record.job.name.clone()).collect()
}
