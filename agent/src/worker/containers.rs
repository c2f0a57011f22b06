//! The containers of this node: as found, and what each task has behind it.

use super::act::Todo;
use super::contact::Contact;
use super::images::Images;
use super::task::Task;
use crate::engine::{EngineError, FoundContainer, FoundState, Hold, Limits, TaskKey, Times};
use crate::secrets::Values;
use crate::store::{End, Event, History};
use crate::task::step::{Action, Image, Situation, Waiting, step};
use edgeloom_common::confidential::Confidential;
use edgeloom_common::desired::{ContainerSpec, DesiredState};
use edgeloom_common::ids::SecretName;
use edgeloom_common::report::Outcome;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// Engine actions at a time: Docker starts containers faster side by side, up to about this many.
const ACTIONS_MAX: usize = 8;
/// An action that takes longer may never end; starting a container on a slow flash card takes seconds.
const STUCK_AFTER: Duration = Duration::from_secs(20);

/// Found containers and tasks.
#[derive(Debug)]
pub(super) struct Containers {
    /// None until the engine was asked the first time.
    pub(super) found: Option<BTreeMap<TaskKey, FoundContainer>>,
    pub(super) tasks: BTreeMap<TaskKey, Task>,
    pub(super) engine_error: String,
    history: History,
    /// Actions begun and ended so far: a list that an action overtook is out of date.
    turns: u64,
    /// When the last of them was.
    turned: Option<Instant>,
    listing: bool,
    look: bool,
    /// The engine was away: what ended meanwhile did not fail.
    away: bool,
}

impl Containers {
    pub(super) fn new(history: History) -> Self {
        Self {
            found: None,
            tasks: BTreeMap::new(),
            engine_error: String::new(),
            history,
            turns: 0,
            turned: None,
            listing: false,
            look: true,
            away: false,
        }
    }

    pub(super) fn history(&self) -> &History {
        &self.history
    }

    /// Something changed: list again.
    pub(super) fn look_again(&mut self) {
        self.look = true;
    }

    /// The engine is back: what failed without it may be tried at once.
    pub(super) fn retry_now(&mut self) {
        self.look = true;
        self.away = true;
        for task in self.tasks.values_mut() {
            task.pause = None;
        }
    }

    /// A pause belongs to what was wanted when it began: a task that is wanted otherwise has none, and one that
    /// is neither wanted nor there is forgotten.
    pub(super) fn turn(&mut self, before: Option<&DesiredState>, after: &DesiredState) {
        let (before, after) = (before.map(by_key).unwrap_or_default(), by_key(after));
        let found = self.found.as_ref();
        let here = |key: &TaskKey| found.is_none_or(|found| found.contains_key(key));
        self.tasks.retain(|key, task| task.is_open() || after.contains_key(key) || here(key));
        self.history.retain(|key| after.contains_key(key) || here(key));
        for (key, task) in &mut self.tasks {
            let [old, new] = [&before, &after]
                .map(|wanted| wanted.get(key).map(|spec| (&spec.spec_hash, Limits::of(spec))));
            if old != new {
                task.limit_error.clear();
                task.pause = None;
            }
        }
    }

    /// The ends of all pauses.
    pub(super) fn pauses(&self) -> impl Iterator<Item = Instant> {
        self.tasks.values().filter_map(|task| task.pause)
    }

    /// Tasks that may have a container before long, whether or not they are wanted still: a job is not gone while
    /// one of its starts is under way.
    pub(super) fn open(&self) -> impl Iterator<Item = &TaskKey> {
        self.tasks.iter().filter(|(_, task)| task.is_open()).map(|(key, _)| key)
    }

    fn busy(&self) -> usize {
        self.tasks.values().filter(|task| task.busy.is_some()).count()
    }

    fn is_busy(&self, key: &TaskKey) -> bool {
        self.tasks.get(key).is_some_and(|task| task.busy.is_some())
    }

    /// What is under way does not end. The other containers are to be seen all the same.
    fn is_stuck(&self, now: Instant) -> bool {
        self.turned.is_some_and(|turned| STUCK_AFTER <= now - turned)
    }

    fn turned(&mut self, now: Instant) {
        self.turns += 1;
        self.turned = Some(now);
    }

    /// One step for each task that can take one, and a list when nothing is under way.
    pub(super) fn next_actions(
        &mut self,
        document: Option<&DesiredState>,
        context: &Context<'_>,
    ) -> Vec<Todo> {
        document.into_iter().for_each(|document| self.note_ends(document));
        let mut todo = document.map(|document| self.steps(document, context)).unwrap_or_default();
        if self.look && !self.listing && (self.busy() == 0 || self.is_stuck(context.now)) {
            self.look = false;
            self.listing = true;
            todo.push(Todo::List(self.turns));
        }
        todo
    }

    fn steps(&mut self, document: &DesiredState, context: &Context<'_>) -> Vec<Todo> {
        let wanted = by_key(document);
        let mut todo = Vec::new();
        let mut room = ACTIONS_MAX.saturating_sub(self.busy());
        for key in self.keys(&wanted) {
            if room == 0 {
                break;
            }
            let Some(next) = self.step(&key, wanted.get(&key).copied(), context) else {
                continue;
            };
            todo.push(next);
            room -= 1;
        }
        todo
    }

    /// Wanted tasks and found containers; none before the engine was asked.
    fn keys(&self, wanted: &BTreeMap<TaskKey, &ContainerSpec>) -> BTreeSet<TaskKey> {
        let found = self.found.iter().flat_map(BTreeMap::keys);
        let wanted = wanted.keys().filter(|_| self.found.is_some());
        found.chain(wanted).cloned().collect()
    }

    fn step(&mut self, key: &TaskKey, wanted: Option<&ContainerSpec>, context: &Context<'_>) -> Option<Todo> {
        let action = self.action(key, wanted, context);
        let found = self.found.as_ref().and_then(|found| found.get(key)).cloned();
        let todo = match action {
            Action::Create => Todo::Create(wanted?.clone(), context.values(wanted?)?),
            Action::Start => Todo::Start(found?, context.values(wanted?)?),
            Action::Limit => Todo::Limit(found?, Limits::of(wanted?)),
            Action::Stop => Todo::Stop(found?),
            Action::Remove => Todo::Remove(found?),
            Action::Nothing | Action::Wait(_) | Action::LookForImage | Action::Pull => return None,
        };
        let stopped = self.tasks.get(key).is_some_and(Task::was_stopped);
        if let Todo::Start(FoundContainer { state: FoundState::Exited(exit_code), .. }, _) = &todo
            && !stopped
        {
            self.count_restart(key, *exit_code);
        }
        self.turned(context.now);
        self.tasks.entry(key.clone()).or_default().busy = Some(action);
        Some(todo)
    }

    /// The next action of a task; busy tasks have none.
    pub(super) fn action(
        &self,
        key: &TaskKey,
        wanted: Option<&ContainerSpec>,
        context: &Context<'_>,
    ) -> Action {
        let task = self.tasks.get(key);
        if task.is_some_and(|task| task.busy.is_some()) {
            return Action::Wait(Waiting::Engine);
        }
        step(&Situation {
            wanted,
            found: self.found.as_ref().and_then(|found| found.get(key)),
            image: wanted.map_or(Image::Unknown, |spec| context.images.state(&spec.image)),
            network_applied: context.network_applied,
            address_free: wanted.is_none_or(|spec| self.address_free(key, spec)),
            pausing: task.is_some_and(|task| task.is_pausing(context.now)),
            silence: wanted.is_some_and(|spec| context.is_over(spec)),
            spoilt: task.is_some_and(Task::is_spoilt),
            secrets: wanted.is_none_or(|spec| context.knows_values(spec)),
            over: match wanted {
                Some(spec) => self.end(key, &spec.spec_hash).is_some(),
                None => context.keeps(key),
            },
        })
    }

    /// How the container of this specification ended for good.
    pub(super) fn end(&self, key: &TaskKey, spec_hash: &str) -> Option<&End> {
        self.history.end(key).filter(|end| end.spec_hash == spec_hash)
    }

    /// Keeps the ends of containers that are not to be started again, so that one that somebody removes is not
    /// taken for one that never ran. Nor can one be that the engine does not let go of, however many attempts
    /// are left.
    fn note_ends(&mut self, document: &DesiredState) {
        for spec in document.containers.iter().filter(|spec| spec.to_end.is_some()) {
            let key = TaskKey::of(spec);
            let Some(found) = self.found.as_ref().and_then(|found| found.get(&key)) else { continue };
            let busy = self.tasks.get(&key).is_some_and(|task| task.busy.is_some());
            let known = self.end(&key, &spec.spec_hash).is_some();
            let FoundState::Exited(exit_code) = found.state else { continue };
            let attempts = self.history.restarts(&key) + 1;
            let over = is_over(spec, exit_code, attempts) || found.hold == Hold::Long;
            if busy || known || found.spec_hash != spec.spec_hash || !over {
                continue;
            }
            let Times { started_ms, finished_ms } = found.times;
            let spec_hash = spec.spec_hash.clone();
            let outcome = Outcome { exit_code, attempts };
            tracing::info!(job = %key.job, task = %key.task, ?exit_code, attempts, "the container has run to its end");
            self.history.set_end(&key, End { spec_hash, outcome, started_ms, finished_ms });
        }
    }

    fn address_free(&self, key: &TaskKey, spec: &ContainerSpec) -> bool {
        let holds = |other: &FoundContainer| {
            let has_it = other.state.is_up() || other.hold != Hold::Free;
            other.key != *key && has_it && other.address == Some(spec.address)
        };
        !self.found.iter().flat_map(BTreeMap::values).any(holds)
    }

    fn count_restart(&mut self, key: &TaskKey, exit_code: Option<i32>) {
        let restarts = self.history.restarts(key) + 1;
        self.history.set_restarts(key, restarts);
        let (job, task) = (key.job.to_string(), key.task.to_string());
        self.history.append(&Event::Restarted { job, task, exit_code });
        self.tasks.entry(key.clone()).or_default().restarts = restarts;
    }

    pub(super) fn listed(
        &mut self,
        turns: u64,
        listed: Result<Vec<FoundContainer>, EngineError>,
        now: Instant,
    ) {
        self.listing = false;
        let listed = match listed {
            Err(error) => {
                self.engine_error = error.to_string();
                return;
            }
            Ok(_) if turns != self.turns => {
                self.look = true;
                return;
            }
            Ok(listed) => listed,
        };
        self.engine_error.clear();
        // What is done to a container is known better by who does it.
        let (mut found, mut before): (BTreeMap<_, _>, BTreeMap<_, _>) =
            self.found.take().unwrap_or_default().into_iter().partition(|(key, _)| self.is_busy(key));
        if std::mem::take(&mut self.away) {
            before.clear();
        }
        for container in listed {
            if self.is_busy(&container.key) {
                continue;
            }
            self.compare(&container, before.get(&container.key), now);
            found.insert(container.key.clone(), container);
        }
        self.tasks.values_mut().filter(|task| task.busy.is_none()).for_each(|task| task.in_doubt = false);
        self.found = Some(found);
    }

    /// A container that was seen running and has ended is started again after a pause; one that was
    /// found ended, as after a reboot, at once.
    fn compare(&mut self, container: &FoundContainer, before: Option<&FoundContainer>, now: Instant) {
        let ran =
            before.is_some_and(|before| before.id == container.id && before.state == FoundState::Running);
        let restarts = || Task::with_restarts(self.history.restarts(&container.key));
        let task = self.tasks.entry(container.key.clone()).or_insert_with(restarts);
        match container.state {
            FoundState::Running => task.seen_running(now),
            FoundState::Exited(code) if ran => task.ended(code, now),
            _ => {}
        }
    }

    pub(super) fn started(
        &mut self,
        key: TaskKey,
        container: Option<FoundContainer>,
        started: &Result<(), EngineError>,
        now: Instant,
    ) {
        self.turned(now);
        self.tasks.entry(key.clone()).or_default().started(started, now);
        if let Err(error) = started {
            tracing::warn!(job = %key.job, task = %key.task, %error, "container did not start");
            self.look = true;
        }
        if let (Some(container), Some(found)) = (container, &mut self.found) {
            found.insert(key, container);
        }
    }

    pub(super) fn limited(
        &mut self,
        container: FoundContainer,
        limited: Result<(), EngineError>,
        now: Instant,
    ) {
        self.turned(now);
        self.look = true;
        let refused = limited.err().map(|error| format!("task {}: {error}", container.key));
        if refused.is_none() {
            self.change(&container.key, |found| found.limits = container.limits);
        }
        self.tasks.entry(container.key).or_default().limited(refused, now);
    }

    pub(super) fn stopped(&mut self, key: TaskKey, stopped: Result<(), EngineError>, now: Instant) {
        self.turned(now);
        self.look = true;
        if stopped.is_ok() {
            tracing::info!(job = %key.job, task = %key.task, "stopped: the controller was not heard of for too long");
            self.change(&key, |found| found.state = FoundState::Exited(None));
        }
        self.tasks.entry(key).or_default().stopped(stopped, now);
    }

    fn change(&mut self, key: &TaskKey, change: impl FnOnce(&mut FoundContainer)) {
        if let Some(found) = self.found.as_mut().and_then(|found| found.get_mut(key)) {
            change(found);
        }
    }

    pub(super) fn removed(
        &mut self,
        container: &FoundContainer,
        removed: Result<(), EngineError>,
        now: Instant,
    ) {
        self.turned(now);
        let key = &container.key;
        let task = self.tasks.entry(key.clone()).or_default();
        if let Err(error) = removed {
            task.refused(&error, now);
            self.look = true;
            return;
        }
        if task.is_spoilt() {
            task.unspoilt();
        } else {
            self.tasks.remove(key);
            self.history.set_restarts(key, 0);
        }
        self.found.iter_mut().for_each(|found| drop(found.remove(key)));
    }
}

/// Nothing follows the end of a container of this specification.
fn is_over(spec: &ContainerSpec, exit_code: Option<i32>, attempts: u32) -> bool {
    spec.to_end.is_some_and(|to_end| exit_code == Some(0) || to_end.retries < attempts)
}

/// What the steps of all tasks share.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) document: Option<&'a DesiredState>,
    pub(super) images: &'a Images,
    pub(super) contact: &'a Contact,
    pub(super) confidential: &'a Confidential,
    pub(super) network_applied: bool,
    pub(super) now: Instant,
}

impl Context<'_> {
    /// The task's container stays for its logs.
    fn keeps(&self, key: &TaskKey) -> bool {
        let kept = self.document.into_iter().flat_map(|document| &document.kept);
        kept.into_iter().any(|kept| (&kept.job, &kept.task) == (&key.job, &key.task))
    }

    pub(super) fn knows_values(&self, spec: &ContainerSpec) -> bool {
        spec.secrets.keys().all(|name| self.confidential.secrets.contains_key(name))
    }

    /// The values of all secrets of a task; none if one is not known.
    pub(super) fn values(&self, spec: &ContainerSpec) -> Option<Values> {
        let value = |name: &SecretName| Some((name.clone(), self.confidential.secrets.get(name)?.clone()));
        spec.secrets.keys().map(value).collect()
    }

    /// The task may not run without the controller any more.
    pub(super) fn is_over(&self, spec: &ContainerSpec) -> bool {
        self.document.is_some_and(|document| self.contact.is_over(document, spec, self.now))
    }
}

/// The wanted containers by task.
pub(super) fn by_key(document: &DesiredState) -> BTreeMap<TaskKey, &ContainerSpec> {
    document.containers.iter().map(|spec| (TaskKey::of(spec), spec)).collect()
}
