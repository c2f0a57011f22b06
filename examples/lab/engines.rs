//! Docker as seen from outside the agents: which containers run, since when, what they print; and the
//! peer that starts the same containers with nothing but Docker's API.

use anyhow::{Context, Result, bail};
use bollard::Docker;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, NetworkCreateRequest, NetworkingConfig,
};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, CreateImageOptionsBuilder, InspectContainerOptions,
    ListContainersOptionsBuilder, LogsOptionsBuilder, RemoveContainerOptionsBuilder, StartContainerOptions,
};
use futures_util::TryStreamExt;
use futures_util::future::try_join_all;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// How often a daemon is asked whether its containers run; the same for both sides of a comparison.
const POLL: Duration = Duration::from_millis(20);

/// How long images may take to arrive and containers to start.
const START_LIMIT: Duration = Duration::from_secs(240);

/// Every node's daemon.
#[derive(Debug)]
pub(crate) struct Engines {
    runtime: tokio::runtime::Runtime,
    daemons: BTreeMap<String, Docker>,
}

/// A container and the moment it started: the pair changes when it is restarted or replaced.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Life {
    pub(crate) node: String,
    pub(crate) task: String,
    pub(crate) id: String,
    pub(crate) started_at: String,
}

/// Items finished by a moment, in seconds since 1970 as Docker stamped the line.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Count {
    pub(crate) items: u64,
    pub(crate) at_s: f64,
}

impl Count {
    /// Items since another count. One that fell belongs to a container that was started in between: it counts
    /// from its start.
    pub(crate) fn since(self, before: Self) -> u64 {
        self.items.checked_sub(before.items).unwrap_or(self.items)
    }
}

/// Reads `2026-01-02T03:04:05.5Z items=17 rate=…`.
fn parse_count(line: &str) -> Option<Count> {
    let (stamp, text) = line.trim().split_once(' ')?;
    let at = OffsetDateTime::parse(stamp, &Rfc3339).ok()?;
    let items = text.split_whitespace().find_map(|word| word.strip_prefix("items="))?.parse().ok()?;
    #[expect(clippy::cast_precision_loss, reason = "microseconds matter here, not nanoseconds")]
    Some(Count { items, at_s: at.unix_timestamp_nanos() as f64 / 1e9 })
}

impl Engines {
    /// Connects to each node's socket.
    pub(crate) fn connect<'a>(sockets: impl IntoIterator<Item = (String, &'a Path)>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let connect = |(node, socket): (String, &Path)| {
            let path = socket.to_str().context("socket path is no UTF-8")?;
            let docker = Docker::connect_with_unix(path, 120, bollard::API_DEFAULT_VERSION)?;
            let docker = runtime.block_on(docker.negotiate_version())?;
            Ok((node, docker))
        };
        let daemons = sockets.into_iter().map(connect).collect::<Result<_>>()?;
        Ok(Self { runtime, daemons })
    }

    /// Makes and removes a network on every daemon. At the first network of its life Docker sets up tables
    /// of its own and keeps them; what is compared before and after must not take them for ours.
    pub(crate) fn settle(&self) -> Result<()> {
        self.runtime.block_on(async {
            for docker in self.daemons.values() {
                let request = NetworkCreateRequest { name: "settle".to_owned(), ..Default::default() };
                docker.create_network(request).await?;
                docker.remove_network("settle").await?;
            }
            Ok(())
        })
    }

    /// Every container of a job, by inspection.
    pub(crate) fn inspect_job(&self, job: &str) -> Result<Vec<(String, ContainerInspectResponse)>> {
        self.runtime.block_on(async {
            let mut found = Vec::new();
            for (node, docker) in &self.daemons {
                for id in ids(docker, &format!("edgeloom.job={job}"), Ask::All).await? {
                    found.push((
                        node.clone(),
                        docker.inspect_container(&id, None::<InspectContainerOptions>).await?,
                    ));
                }
            }
            Ok(found)
        })
    }

    /// Fetches an image to every node.
    pub(crate) fn pull(&self, image: &str) -> Result<()> {
        let options = CreateImageOptionsBuilder::default().from_image(image).build();
        self.runtime.block_on(async {
            let pulls = self
                .daemons
                .values()
                .map(|docker| docker.create_image(Some(options.clone()), None, None).try_collect::<Vec<_>>());
            try_join_all(pulls).await?;
            Ok(())
        })
    }

    /// Id and start of each container of a job.
    pub(crate) fn lives(&self, job: &str) -> Result<Vec<Life>> {
        let mut lives: Vec<Life> = self
            .inspect_job(job)?
            .into_iter()
            .map(|(node, container)| Life {
                node,
                task: label(&container, "edgeloom.task"),
                id: container.id.unwrap_or_default(),
                started_at: container.state.and_then(|state| state.started_at).unwrap_or_default(),
            })
            .collect();
        lives.sort();
        Ok(lives)
    }

    /// Waits until `count` containers with a label run over all nodes, and tells whenever there are more.
    pub(crate) fn wait_running(&self, label: &str, count: usize, tell: impl FnMut(usize)) -> Result<()> {
        self.runtime.block_on(self.running(label, count, tell))
    }

    async fn running(&self, label: &str, count: usize, mut tell: impl FnMut(usize)) -> Result<()> {
        let start = Instant::now();
        let mut told = 0;
        loop {
            let asked = self.daemons.values().map(|docker| ids(docker, label, Ask::Running));
            let running: usize = try_join_all(asked).await?.iter().map(Vec::len).sum();
            if told < running {
                tell(running);
                told = running;
            }
            if running >= count {
                return Ok(());
            }
            if start.elapsed() > START_LIMIT {
                bail!("{running} of {count} containers run after {} s", START_LIMIT.as_secs());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Items that a task has finished, by the last line its program printed.
    pub(crate) fn items(&self, job: &str, task: &str) -> Result<Count> {
        self.runtime.block_on(async {
            for docker in self.daemons.values() {
                let label = format!("edgeloom.job={job},edgeloom.task={task}");
                // A daemon that does not answer is one that was broken on purpose: its tasks do not count.
                let found = ids(docker, &label, Ask::Running).await.unwrap_or_default();
                let Some(id) = found.into_iter().next() else { continue };
                let options = LogsOptionsBuilder::default().stdout(true).timestamps(true).tail("1").build();
                let lines: Vec<_> = docker.logs(&id, Some(options)).try_collect().await?;
                let text: String = lines.iter().map(ToString::to_string).collect();
                return Ok(parse_count(&text).unwrap_or_default());
            }
            bail!("no container runs {task} of {job}")
        })
    }

    /// Creates and starts copies of `models` with Docker's API alone, all at once, and says how long it
    /// took until all ran. The copies are removed again.
    pub(crate) fn start_copies(&self, models: &[(String, ContainerInspectResponse)]) -> Result<Duration> {
        self.runtime.block_on(async {
            let begun = Instant::now();
            let started =
                try_join_all(models.iter().map(|(node, model)| start_copy(&self.daemons[node], model)))
                    .await?;
            self.running(COPY_LABEL, models.len(), |_| ()).await?;
            let took = begun.elapsed();
            let removed = models.iter().zip(&started).map(|((node, _), id)| remove(&self.daemons[node], id));
            try_join_all(removed).await?;
            Ok(took)
        })
    }
}

/// Marks the peer's containers.
const COPY_LABEL: &str = "edgeloom-demo.copy=true";

/// Which containers to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    All,
    Running,
}

/// Ids of the containers that carry all of the comma-separated `labels`.
async fn ids(docker: &Docker, labels: &str, ask: Ask) -> Result<Vec<String>> {
    let mut filters = HashMap::from([("label", labels.split(',').collect::<Vec<_>>())]);
    if ask == Ask::Running {
        filters.insert("status", vec!["running"]);
    }
    let options = ListContainersOptionsBuilder::default().all(ask == Ask::All).filters(&filters).build();
    let found = docker.list_containers(Some(options)).await?;
    Ok(found.into_iter().filter_map(|container| container.id).collect())
}

fn label(container: &ContainerInspectResponse, key: &str) -> String {
    let labels = container.config.as_ref().and_then(|config| config.labels.as_ref());
    labels.and_then(|labels| labels.get(key)).cloned().unwrap_or_default()
}

/// Same image, command, environment, limits, network and address as the model.
async fn start_copy(docker: &Docker, model: &ContainerInspectResponse) -> Result<String> {
    let config = model.config.clone().context("the model has no configuration")?;
    let endpoints = model.network_settings.clone().and_then(|settings| settings.networks).unwrap_or_default();
    let (key, value) = COPY_LABEL.split_once('=').context("the label has a value")?;
    let body = ContainerCreateBody {
        image: config.image,
        cmd: config.cmd,
        env: config.env,
        labels: Some(HashMap::from([(key.to_owned(), value.to_owned())])),
        host_config: model.host_config.clone(),
        networking_config: Some(NetworkingConfig {
            endpoints_config: Some(
                endpoints
                    .into_iter()
                    .map(|(network, found)| {
                        let wanted = bollard::models::EndpointSettings {
                            ipam_config: found.ipam_config,
                            ..Default::default()
                        };
                        (network, wanted)
                    })
                    .collect(),
            ),
        }),
        ..Default::default()
    };
    let name = format!("copy{}", model.name.clone().unwrap_or_default().replace('/', "-"));
    let options = CreateContainerOptionsBuilder::default().name(&name).build();
    let created = docker.create_container(Some(options), body).await?;
    docker.start_container(&created.id, None::<StartContainerOptions>).await?;
    Ok(created.id)
}

async fn remove(docker: &Docker, id: &str) -> Result<()> {
    let options = RemoveContainerOptionsBuilder::default().force(true).build();
    Ok(docker.remove_container(id, Some(options)).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamped_line_gives_items_and_moment() {
        let count = parse_count("1970-01-01T00:01:00.5Z items=17 rate=2.00\n").unwrap();
        assert_eq!(count, Count { items: 17, at_s: 60.5 });
        assert_eq!(parse_count("listening"), None);
    }
}
