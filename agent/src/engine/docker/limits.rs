//! Limits of containers, read back and changed while the container runs, and when it ran.
//!
//! The list shows neither, and an inspect for each container at each look would cost more than the
//! list itself. So what was read stays known until the list shows another state, an event says that it changed,
//! or the stream of events, which may have missed one, begins anew.

use super::held::Held;
use super::{Docker, EngineError, FoundContainer, Request, forgotten, has_status, times};
use crate::engine::{FoundLimits, FoundState, Limits, Times};
use bollard::models::{ContainerUpdateBody, EventMessage, HostConfig};
use bollard::query_parameters::{InspectContainerOptions, StatsOptionsBuilder};
use edgeloom_common::units::{Bytes, MilliCores};
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::timeout;

/// Period of the processor's limit, in microseconds: the kernel's default.
const PERIOD_US: i64 = 100_000;
/// The quota that lifts a limit.
const QUOTA_LIFTED: i64 = -1;
/// Docker refuses to take a memory limit away again; one that no machine reaches serves.
const MEMORY_LIFTED: i64 = 1 << 60;

/// What was read since the stream of events began.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<Read>);

#[derive(Debug, Default)]
struct Read {
    /// By container id, with the state that the list showed then.
    containers: BTreeMap<String, (FoundState, Inspected)>,
    support: Option<Support>,
    held: Held,
}

/// What only an inspect tells.
#[derive(Debug, Clone, Copy)]
struct Inspected {
    limits: Limits,
    times: Times,
    /// Its first process, while it runs.
    process: Option<i32>,
}

impl Inspected {
    /// A container whose first process has gone does not run, whatever the list shows.
    fn is_current(self) -> bool {
        self.process.is_none_or(forgotten::lives)
    }
}

/// What the kernel can limit; Docker keeps a zero for what it cannot.
#[derive(Debug, Clone, Copy)]
struct Support {
    cpu: bool,
    memory: bool,
}

impl Support {
    fn found(self, limits: Limits) -> FoundLimits {
        FoundLimits { cpu: self.cpu.then_some(limits.cpu), memory: self.memory.then_some(limits.memory) }
    }
}

impl Read {
    fn retain(&mut self, listed: &BTreeSet<&String>) {
        self.containers.retain(|id, _| listed.contains(id));
        self.held.retain(listed);
    }
}

impl Known {
    fn read(&self) -> MutexGuard<'_, Read> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn forget(&self, id: &str) {
        self.read().containers.remove(id);
    }

    /// An event told something of the container.
    pub(super) fn heard(&self, id: &str) {
        self.read().held.heard(id);
    }

    /// An event told that it runs, with limits that may be others.
    pub(super) fn started(&self, id: &str) {
        self.forget(id);
        self.read().held.started(id);
    }

    pub(super) fn ended(&self, id: &str, event: &EventMessage) {
        self.read().held.ended(id, event);
    }

    pub(super) fn forget_all(&self) {
        *self.read() = Read::default();
    }
}

/// As they are given when a container is made; zero is Docker's word for no limit there.
pub(super) fn in_words(limits: Limits) -> ContainerUpdateBody {
    let memory = i64::try_from(limits.memory.0).unwrap_or(i64::MAX);
    ContainerUpdateBody {
        cpu_period: (limits.cpu.0 > 0).then_some(PERIOD_US),
        cpu_quota: (limits.cpu.0 > 0).then(|| i64::from(limits.cpu.0) * PERIOD_US / 1000),
        memory: Some(memory),
        // Memory and swap together, as Docker sets it by itself; a change has to name it.
        memory_swap: Some(memory.saturating_mul(2)),
        ..Default::default()
    }
}

/// In a change Docker takes a zero for "as before".
fn in_words_of_a_change(limits: Limits) -> ContainerUpdateBody {
    let body = in_words(limits);
    let memory = body.memory.filter(|memory| *memory > 0).unwrap_or(MEMORY_LIFTED);
    ContainerUpdateBody {
        cpu_quota: body.cpu_quota.or(Some(QUOTA_LIFTED)),
        memory: Some(memory),
        memory_swap: Some(memory.saturating_mul(2)),
        ..body
    }
}

/// Adds limits and times to listed containers; one that went away meanwhile is left out.
pub(super) async fn look_up(
    docker: &Docker,
    found: Vec<FoundContainer>,
) -> Result<Vec<FoundContainer>, EngineError> {
    let listed: BTreeSet<&String> = found.iter().map(|container| &container.id).collect();
    docker.limits.read().retain(&listed);
    let support = support(docker).await?;
    let whole = found.into_iter().map(|container| whole(docker, support, container));
    let whole: Vec<Option<FoundContainer>> = try_join_all(whole).await?;
    Ok(whole.into_iter().flatten().collect())
}

/// None for one that went away meanwhile.
async fn whole(
    docker: &Docker,
    support: Support,
    container: FoundContainer,
) -> Result<Option<FoundContainer>, EngineError> {
    let whole = |it: Inspected, container: FoundContainer| FoundContainer {
        limits: support.found(it.limits),
        times: it.times,
        ..container
    };
    let known = docker.limits.read().containers.get(&container.id).copied();
    if let Some((_, it)) = known.filter(|(state, it)| *state == container.state && it.is_current()) {
        return Ok(Some(whole(it, container)));
    }
    let patience = docker.patience;
    if docker.limits.read().held.may_be_asked(&container.id, patience) {
        let asking = inspect(docker, &container.id, Some(container.state));
        if let Ok(inspected) = timeout(patience.answer, asking).await {
            let inspected = inspected?;
            docker.limits.read().held.answered(&container.id);
            return Ok(inspected.map(|it| whole(it, container)));
        }
        docker.limits.read().held.unanswered(&container.id);
    }
    let container = match known {
        Some((_, it)) => whole(it, container),
        None => container,
    };
    Ok(Some(docker.limits.read().held.shown(container, patience)))
}

async fn support(docker: &Docker) -> Result<Support, EngineError> {
    let known = docker.limits.read().support;
    if let Some(support) = known {
        return Ok(support);
    }
    let info = docker.client().await?.info().await;
    let info = info.map_err(|error| docker.refusal(Request { verb: "ask", object: "info" }, &error))?;
    // An answer without a word about it comes from a daemon that can.
    let support =
        Support { cpu: info.cpu_cfs_quota.unwrap_or(true), memory: info.memory_limit.unwrap_or(true) };
    docker.limits.read().support = Some(support);
    Ok(support)
}

/// Of the last run; none of a container that is gone.
pub(super) async fn times(docker: &Docker, id: &str) -> Result<Option<Times>, EngineError> {
    Ok(inspect(docker, id, None).await?.map(|inspected| inspected.times))
}

/// `listed` is the state that what is read belongs to.
async fn inspect(
    docker: &Docker,
    id: &str,
    listed: Option<FoundState>,
) -> Result<Option<Inspected>, EngineError> {
    let made = match docker.client().await?.inspect_container(id, None::<InspectContainerOptions>).await {
        Ok(made) => made,
        Err(error) if has_status(&error, 404) => return Ok(None),
        Err(error) => {
            return Err(docker.refusal(Request { verb: "inspect container", object: id }, &error));
        }
    };
    let limits = read(&made.host_config.unwrap_or_default());
    let state = made.state.unwrap_or_default();
    let process = state.pid.and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 0);
    let inspected = Inspected { limits, times: times::of(&state), process };
    let mut known = docker.limits.read();
    known.containers.extend(listed.map(|state| (id.to_owned(), (state, inspected))));
    Ok(Some(inspected))
}

fn read(host: &HostConfig) -> Limits {
    let positive = |value: Option<i64>| value.filter(|value| *value > 0);
    let quota = positive(host.cpu_quota)
        .map(|quota| quota.saturating_mul(1000) / positive(host.cpu_period).unwrap_or(PERIOD_US));
    // Containers of others' making may have the one or the other.
    let cpu = quota.or(positive(host.nano_cpus).map(|nano| nano / 1_000_000)).unwrap_or(0);
    let memory = positive(host.memory).filter(|memory| *memory < MEMORY_LIFTED).unwrap_or(0);
    Limits {
        cpu: MilliCores(u32::try_from(cpu).unwrap_or(u32::MAX)),
        memory: Bytes(u64::try_from(memory).unwrap_or(0)),
    }
}

/// Changes what differs. Control groups of version 2 take a limit below the present use and end processes
/// until it holds, so the use is asked for first.
pub(super) async fn change(docker: &Docker, id: &str, limits: Limits) -> Result<(), EngineError> {
    let request = Request { verb: "change limits of container", object: id };
    let Some(Inspected { limits: now, .. }) = inspect(docker, id, None).await? else { return Ok(()) };
    let lowered = limits.memory.0 > 0 && (now.memory.0 == 0 || limits.memory < now.memory);
    let used = if lowered { memory_used(docker, id).await? } else { Bytes(0) };
    let in_use = lowered && used > limits.memory;
    let mut body = in_words_of_a_change(limits);
    if in_use || now.memory == limits.memory {
        (body.memory, body.memory_swap) = (None, None);
    }
    if now.cpu == limits.cpu {
        (body.cpu_period, body.cpu_quota) = (None, None);
    }
    if body != ContainerUpdateBody::default() {
        let changed = docker.client().await?.update_container(id, body).await;
        docker.limits.forget(id);
        changed.map_err(|error| docker.refusal(request, &error))?;
    }
    match in_use {
        true => Err(EngineError::MemoryInUse { id: id.to_owned(), used, wanted: limits.memory }),
        false => Ok(()),
    }
}

/// What cannot be given back: use without cached files. A container that does not run uses none.
async fn memory_used(docker: &Docker, id: &str) -> Result<Bytes, EngineError> {
    let options = StatsOptionsBuilder::new().stream(false).one_shot(true).build();
    let mut answers = pin!(docker.client().await?.stats(id, Some(options)));
    let request = Request { verb: "read the use of container", object: id };
    let Some(answer) = answers.next().await else { return Ok(Bytes(0)) };
    let memory = answer.map_err(|error| docker.refusal(request, &error))?.memory_stats.unwrap_or_default();
    let cached = |name: &str| memory.stats.as_ref().and_then(|stats| stats.get(name)).copied();
    // Versions 1 and 2 of control groups.
    let cached = cached("total_inactive_file").or_else(|| cached("inactive_file")).unwrap_or(0);
    Ok(Bytes(memory.usage.unwrap_or(0).saturating_sub(cached)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_is_what_is_read() {
        for (cpu, memory) in [(0, 0), (10, 6 << 20), (1500, 1 << 30), (64_000, 1 << 40)] {
            let limits = Limits { cpu: MilliCores(cpu), memory: Bytes(memory) };
            let words = in_words(limits);
            let made = HostConfig {
                cpu_period: words.cpu_period,
                cpu_quota: words.cpu_quota,
                memory: words.memory,
                ..Default::default()
            };
            assert_eq!(read(&made), limits);
        }
    }

    #[test]
    fn a_change_names_a_lifted_limit() {
        let body = in_words_of_a_change(Limits::default());
        assert_eq!(body.cpu_quota, Some(-1));
        assert_eq!(read(&HostConfig { memory: body.memory, ..Default::default() }), Limits::default());
    }
}
