//! Trials: made without network and name, waited for, and gauged by their control group.

use super::{Docker, EngineError, Request, has_status, times};
use crate::engine::label;
use crate::engine::trial::{Gauge, TrialEnd, TrialSpec, TrialUse, Trials};
use bollard::models::{
    ContainerCreateBody, ContainerState, HostConfig, RestartPolicy, RestartPolicyNameEnum,
};
use bollard::query_parameters::{
    CreateContainerOptions, InspectContainerOptions, ListContainersOptionsBuilder,
    RemoveContainerOptionsBuilder, StatsOptionsBuilder, WaitContainerOptionsBuilder,
};
use edgeloom_common::units::Bytes;
use edgeloom_observe::cgroup::container::ContainerGroup;
use futures_util::StreamExt;
use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// A control group that has not shown itself for so long is none that we can see: Docker is asked then.
const GROUP_PATIENCE: Duration = Duration::from_secs(1);
/// Docker takes some milliseconds for an answer about use.
const STATS_PERIOD: Duration = Duration::from_millis(250);
/// A wait that was over before the container was is begun anew.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

impl Trials for Docker {
    async fn create_trial(&self, spec: &TrialSpec) -> Result<String, EngineError> {
        let image = self.name_to_run(&spec.image).await?;
        let body = ContainerCreateBody { image: Some(image), ..body(self, spec) };
        let created = self.client().await?.create_container(None::<CreateContainerOptions>, body).await;
        let request = Request { verb: "create container", object: &spec.image.name };
        created.map(|created| created.id).map_err(|error| self.refusal(request, &error))
    }

    async fn start_trial(&self, id: &str) -> Result<(), EngineError> {
        super::containers::start(self, id).await
    }

    async fn end_of_trial(&self, id: &str) -> Result<TrialEnd, EngineError> {
        let client = self.client().await?;
        let options = WaitContainerOptionsBuilder::new().condition("not-running").build();
        loop {
            // An exit code other than 0 comes as an error; how it ended is read below either way.
            let _ = client.wait_container(id, Some(options.clone())).collect::<Vec<_>>().await;
            let request = Request { verb: "inspect container", object: id };
            let found = client.inspect_container(id, None::<InspectContainerOptions>).await;
            let found = found.map_err(|error| self.refusal(request, &error))?;
            if let Some(ended) = found.state.as_ref().and_then(end) {
                return Ok(ended);
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    fn gauge(&self, id: &str) -> impl Gauge {
        DockerGauge { docker: self, id: id.to_owned(), group: None, made: Instant::now(), asked: None }
    }

    async fn list_trials(&self) -> Result<Vec<String>, EngineError> {
        let owner = &self.owner;
        let labels = vec![
            format!("{}={}", label::CLUSTER, owner.cluster),
            format!("{}={}", label::NODE, owner.node),
            label::TRIAL.to_owned(),
        ];
        let filters = HashMap::from([("label", labels)]);
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        let request = Request { verb: "list", object: "measurements" };
        let listed = self.client().await?.list_containers(Some(options)).await;
        let listed = listed.map_err(|error| self.refusal(request, &error))?;
        Ok(listed.into_iter().filter_map(|summary| summary.id).collect())
    }

    async fn remove_trial(&self, id: &str) -> Result<(), EngineError> {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        match self.client().await?.remove_container(id, Some(options)).await {
            // 409: a removal is on its way already.
            Err(error) if !has_status(&error, 404) && !has_status(&error, 409) => {
                Err(self.refusal(Request { verb: "remove container", object: id }, &error))
            }
            _ => Ok(()),
        }
    }
}

fn body(docker: &Docker, spec: &TrialSpec) -> ContainerCreateBody {
    let labels = HashMap::from([
        (label::CLUSTER.to_owned(), docker.owner.cluster.to_string()),
        (label::NODE.to_owned(), docker.owner.node.to_string()),
        (label::TRIAL.to_owned(), spec.image.digest.clone()),
    ]);
    ContainerCreateBody {
        cmd: (!spec.command.is_empty()).then(|| spec.command.clone()),
        env: Some(spec.environment.iter().map(|(key, value)| format!("{key}={value}")).collect()),
        labels: Some(labels),
        host_config: Some(HostConfig {
            nano_cpus: Some(i64::from(spec.cpu.0) * 1_000_000),
            memory: Some(i64::try_from(spec.memory.0).unwrap_or(i64::MAX)),
            init: Some(false),
            network_mode: Some("none".to_owned()),
            restart_policy: Some(RestartPolicy {
                name: Some(RestartPolicyNameEnum::NO),
                maximum_retry_count: None,
            }),
            log_config: Some(super::containers::log_files()),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// None while it runs, and while there is no end or no start: such times are of the year 1.
fn end(state: &ContainerState) -> Option<TrialEnd> {
    if state.running == Some(true) {
        return None;
    }
    Some(TrialEnd {
        started: times::since_1970(state.started_at.as_deref())?,
        finished: times::since_1970(state.finished_at.as_deref())?,
        exit_code: i32::try_from(state.exit_code?).ok()?,
        out_of_memory: state.oom_killed == Some(true),
    })
}

/// By the control group, whose files take microseconds to read; by Docker where that is out of sight.
struct DockerGauge<'a> {
    docker: &'a Docker,
    id: String,
    group: Option<ContainerGroup>,
    made: Instant,
    asked: Option<Instant>,
}

impl Gauge for DockerGauge<'_> {
    async fn read(&mut self) -> Option<TrialUse> {
        if self.group.is_none() && self.made.elapsed() < GROUP_PATIENCE {
            self.group = ContainerGroup::find(&self.id);
        }
        if let Some(group) = &mut self.group {
            let used = group.read()?;
            return Some(TrialUse { at: now(), cpu: used.cpu, memory_peak: used.memory_peak });
        }
        if self.made.elapsed() < GROUP_PATIENCE || self.asked.is_some_and(|at| at.elapsed() < STATS_PERIOD) {
            return None;
        }
        self.asked = Some(Instant::now());
        self.ask().await
    }
}

impl DockerGauge<'_> {
    async fn ask(&self) -> Option<TrialUse> {
        let options = StatsOptionsBuilder::new().stream(false).one_shot(true).build();
        let client = self.docker.client().await.ok()?;
        let mut answers = std::pin::pin!(client.stats(&self.id, Some(options)));
        let stats = answers.next().await?.ok()?;
        let memory = stats.memory_stats?;
        Some(TrialUse {
            at: now(),
            cpu: Duration::from_nanos(stats.cpu_stats?.cpu_usage?.total_usage?),
            // Version 2 has no highest use here: the highest of many readings stands in.
            memory_peak: Bytes(memory.max_usage.or(memory.usage)?),
        })
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(started: &str, finished: &str) -> ContainerState {
        ContainerState {
            started_at: Some(started.to_owned()),
            finished_at: Some(finished.to_owned()),
            exit_code: Some(0),
            ..Default::default()
        }
    }

    #[test]
    fn start_and_end_are_read_to_the_nanosecond() {
        let ended = end(&state("2026-01-01T00:00:01.25Z", "2026-01-01T01:00:02.750000001+01:00")).unwrap();
        assert_eq!(ended.finished - ended.started, Duration::new(1, 500_000_001));
    }

    #[test]
    fn what_never_started_has_no_end() {
        assert_eq!(end(&state("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z")), None);
    }
}
