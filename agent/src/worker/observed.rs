//! What became of the desired state, in the words of the wire.

use super::NodeState;
use super::containers::{Context, by_key};
use crate::engine::{FoundContainer, FoundState, Hold, TaskKey};
use crate::task::step::Action;
use edgeloom_common::desired::{ContainerSpec, SCHEMA};
use edgeloom_common::report::{ContainerPhase, ContainerState, Observed, Outcome};
use std::collections::BTreeSet;
use tokio::time::Instant;

/// Problems told at a time: more do not help anybody.
const PROBLEMS_MAX: usize = 32;

/// Why a task does not start whose secrets are not here.
const UNTOLD: &str = "waits for the values of its secrets, which only the controller can send";

/// Why nothing becomes of a container.
const HELD: &str = "docker does not answer for this container, which it neither starts nor removes; restart docker on the node";

/// Why a task is stopped that is to stop without the controller.
const SILENCE: &str = "stopped until the controller, not heard of for too long, sends its document";

impl NodeState {
    /// The observed state now.
    #[must_use]
    pub(crate) fn observed(&self) -> Observed {
        let version = self.version();
        let network_applied = self.desired.is_some() && self.is_kept() && self.kernel.is_whole(version);
        let mut containers = Vec::new();
        let mut settled = network_applied && self.containers.found.is_some();
        let context = Context {
            document: self.desired(),
            images: &self.images,
            contact: &self.contact,
            confidential: &self.confidential,
            network_applied: self.kernel.carries(version),
            now: Instant::now(),
        };
        let wanted = self.desired().map(by_key).unwrap_or_default();
        let found = self.containers.found.iter().flatten().map(|(key, _)| key);
        let open: BTreeSet<&TaskKey> = self.containers.open().collect();
        for key in found.chain(wanted.keys()).chain(open.iter().copied()).collect::<BTreeSet<_>>() {
            let spec = wanted.get(key).copied();
            let as_wanted = self.containers.action(key, spec, &context) == Action::Nothing;
            settled &= as_wanted && !open.contains(key);
            containers.push(self.container_state(key, spec, &context));
        }
        let images = self.desired().is_some_and(|document| self.images.all_present(document));
        Observed {
            schema: SCHEMA,
            version,
            network_applied,
            converged: settled && images,
            listed: self.containers.found.is_some(),
            containers,
            pulls: self.images.pulls(),
            prefetched: self.desired().map(|document| self.images.prefetched(document)).unwrap_or_default(),
            collected: self.removed.iter().cloned().collect(),
            ended: self.ends.counts.ended(self.ends.connected, Instant::now()),
            problems: self.problems(),
        }
    }

    fn container_state(
        &self,
        key: &TaskKey,
        wanted: Option<&ContainerSpec>,
        context: &Context<'_>,
    ) -> ContainerState {
        let task = self.containers.tasks.get(key);
        let found = self.containers.found.as_ref().and_then(|found| found.get(key));
        let hash = found.map(|found| &found.spec_hash).or(wanted.map(|spec| &spec.spec_hash));
        let end = hash.and_then(|hash| self.containers.end(key, hash));
        let found_phase = || found.map_or_else(|| self.phase_before(key, wanted), phase);
        let phase = end.map_or_else(found_phase, |end| match end.outcome.succeeded() {
            true => ContainerPhase::Succeeded,
            false => ContainerPhase::Failed,
        });
        let mut error = task.map(|task| task.error().to_owned()).unwrap_or_default();
        if end.is_none() && wanted.is_some_and(|spec| context.is_over(spec)) {
            error = SILENCE.to_owned();
        } else if let Some(end) = end {
            error = told(end.outcome);
        } else if phase != ContainerPhase::Running && wanted.is_some_and(|spec| !context.knows_values(spec)) {
            error = UNTOLD.to_owned();
        }
        if found.is_some_and(|found| found.hold == Hold::Long) {
            error = [error.as_str(), HELD]
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect::<Vec<_>>()
                .join("; ");
        }
        let times = found.map(|found| found.times).unwrap_or_default();
        ContainerState {
            job: key.job.clone(),
            task: key.task.clone(),
            spec_hash: hash.cloned().unwrap_or_default(),
            container_id: found.map(|found| found.id.clone()).unwrap_or_default(),
            phase,
            restarts: task.map_or(0, |task| task.restarts),
            detail: if error.is_empty() && end.is_none() { self.pull_error(wanted) } else { error },
            started_ms: end.map_or(times.started_ms, |end| end.started_ms),
            finished_ms: end.map_or(times.finished_ms, |end| end.finished_ms),
            outcome: end.map(|end| end.outcome),
        }
    }

    /// The phase of a task that has no container yet.
    fn phase_before(&self, key: &TaskKey, wanted: Option<&ContainerSpec>) -> ContainerPhase {
        let task = self.containers.tasks.get(key);
        if wanted.is_some_and(|spec| self.images.is_pulling_image(&spec.image)) {
            ContainerPhase::Pulling
        } else if task.is_some_and(|task| task.busy == Some(Action::Create)) {
            ContainerPhase::Creating
        } else if task.is_some_and(|task| !task.error().is_empty()) || !self.pull_error(wanted).is_empty() {
            ContainerPhase::Failed
        } else {
            ContainerPhase::Waiting
        }
    }

    fn pull_error(&self, wanted: Option<&ContainerSpec>) -> String {
        wanted.map(|spec| self.images.error(&spec.image).to_owned()).unwrap_or_default()
    }

    fn problems(&self) -> Vec<String> {
        let single = [&self.refusal, &self.save_error, &self.room_error, &self.containers.engine_error];
        let single = single.into_iter().chain(self.kernel.errors());
        let limits = self.containers.tasks.values().map(|task| &task.limit_error);
        let problems = single.chain(limits).filter(|text| !text.is_empty()).chain(&self.kernel.problems);
        let unique: BTreeSet<&String> = problems.collect();
        unique.into_iter().take(PROBLEMS_MAX).cloned().collect()
    }
}

/// Why a container is not started again; nothing after a success.
fn told(outcome: Outcome) -> String {
    let attempts = outcome.attempts;
    match outcome.exit_code {
        Some(0) => String::new(),
        Some(code) => format!("exited with code {code}, {attempts} of {attempts} attempts"),
        None => format!("ended without a code, {attempts} of {attempts} attempts"),
    }
}

fn phase(found: &FoundContainer) -> ContainerPhase {
    match found.state {
        FoundState::Running => ContainerPhase::Running,
        FoundState::Created => ContainerPhase::Creating,
        FoundState::Exited(_) => ContainerPhase::Exited,
        FoundState::Dead => ContainerPhase::Failed,
        FoundState::Paused | FoundState::Changing => ContainerPhase::Waiting,
    }
}
