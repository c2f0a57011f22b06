//! One container, from its job's acceptance until it runs, seen from outside: bytes and moments by the registry's
//! logs, the end of the pull and the start by Docker's events. Beside them what the controller foretold.

use crate::api::Submitted;
use crate::docker;
use crate::ground::Ground;
use crate::lab::Node;
use crate::registry_log::{self, Fetch};
use crate::registry_times;
use anyhow::{Context, Result, bail};
use edgeloom_common::view::{JobState, JobView, TaskView};
use serde::Serialize;
use serde_json::Value;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long an image may take to arrive and its container to start.
const START_LIMIT: Duration = Duration::from_secs(180);
/// A job that still waits for room then gets none.
const ROOM_LIMIT: Duration = Duration::from_secs(10);
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// `{"event":["pull","start"]}`, as it stands in a URL.
const FILTERS: &str = "%7B%22event%22%3A%5B%22pull%22%2C%22start%22%5D%7D";

/// What became of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    Runs(Pull),
    /// No node has room; why.
    NoRoom(String),
}

/// A container that runs.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Pull {
    pub(super) node: String,
    pub(super) bytes_predicted: u64,
    /// By its node from the registry.
    pub(super) bytes_fetched: u64,
    /// By other nodes at the same time.
    pub(super) bytes_elsewhere: u64,
    /// From wherever, as Docker told the agent.
    pub(super) bytes_pulled: u64,
    pub(super) pull_s_predicted: Option<f64>,
    /// From the node's first request to the registry until Docker had the image; none where nothing was pulled.
    pub(super) pull_s_measured: Option<f64>,
    /// From acceptance until the container ran.
    pub(super) seconds: f64,
}

impl Pull {
    /// From the registry, over all lines.
    pub(super) fn uplink_bytes(&self) -> u64 {
        self.bytes_fetched + self.bytes_elsewhere
    }

    /// Anything was foretold or fetched.
    pub(super) fn counts(&self) -> bool {
        self.bytes_predicted + self.bytes_fetched > 0
    }
}

/// Seconds since 1970.
fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970").as_secs_f64()
}

fn length(log: &Path) -> Result<u64> {
    Ok(std::fs::metadata(log).with_context(|| log.display().to_string())?.len())
}

/// Posts a job of one task and waits until its container runs.
pub(super) fn run(ground: &Ground, document: &str) -> Result<Outcome> {
    let (log, times) = (ground.lab.registry_log(), ground.lab.registry_times());
    let (log_from, times_from) = (length(&log)?, length(&times)?);
    let view = match ground.api.submit(document)? {
        Submitted::Accepted(view) => view,
        Submitted::Refused(why) => return Ok(Outcome::NoRoom(why)),
    };
    let accepted_s = now_s();
    let Some(view) = await_running(ground, view.name.as_str())? else {
        return Ok(Outcome::NoRoom("waits for room".to_owned()));
    };
    let task = task(&view)?;
    let node = ground.lab.node(task.node.as_str())?;
    let client: Ipv4Addr = node.uplink_address().parse()?;
    let moments = Moments::of(&node.docker_socket(), accepted_s, &view)?;
    let first_s = registry_times::first_request(&times, times_from, client)?;
    let fetches = registry_log::bytes_fetched(&log, log_from)?;
    let address = |node: Node<'_>| -> Result<Ipv4Addr> { Ok(node.uplink_address().parse()?) };
    let mut others: Vec<Ipv4Addr> = ground.lab.nodes().into_iter().map(address).collect::<Result<_>>()?;
    others.retain(|other| *other != client);
    Ok(Outcome::Runs(Pull {
        node: task.node.to_string(),
        bytes_predicted: task.bytes_predicted,
        bytes_fetched: fetched(&fetches, &[client]),
        bytes_elsewhere: fetched(&fetches, &others),
        bytes_pulled: task.bytes_fetched,
        pull_s_predicted: task.pull_s_predicted,
        pull_s_measured: first_s.zip(moments.pulled_s).map(|(first, pulled)| pulled - first),
        seconds: moments.started_s - accepted_s,
    }))
}

/// By these clients; the controller reads configurations, too.
fn fetched(fetches: &[Fetch], clients: &[Ipv4Addr]) -> u64 {
    fetches.iter().filter(|fetch| clients.contains(&fetch.client)).map(|fetch| fetch.bytes).sum()
}

/// The task of a job that has one.
fn task(view: &JobView) -> Result<&TaskView> {
    view.tasks.first().with_context(|| format!("{} has no task", view.name))
}

/// None where there is no room for it.
fn await_running(ground: &Ground, name: &str) -> Result<Option<JobView>> {
    let begun = Instant::now();
    loop {
        let view = ground.api.job(name)?.with_context(|| format!("{name} is gone"))?;
        match view.state {
            JobState::Running => return Ok(Some(view)),
            JobState::Failed => bail!("{name} failed: {}", view.reason),
            JobState::Waiting if begun.elapsed() > ROOM_LIMIT => return Ok(None),
            state if begun.elapsed() > START_LIMIT => {
                bail!("{name} is still {state:?} after {} s: {}", START_LIMIT.as_secs(), view.reason)
            }
            _ => std::thread::sleep(LOOK_PAUSE),
        }
    }
}

/// What Docker saw, in seconds since 1970.
struct Moments {
    /// None where the image was there.
    pulled_s: Option<f64>,
    started_s: f64,
}

impl Moments {
    fn of(socket: &Path, since_s: f64, job: &JobView) -> Result<Self> {
        let until_s = now_s();
        let path = format!("/events?since={since_s:.6}&until={until_s:.6}&filters={FILTERS}");
        let events = docker::ask_lines(socket, &path)?;
        let pulled = events.iter().find(|event| event["Type"] == "image");
        let ours = |event: &&Value| event["Actor"]["Attributes"]["edgeloom.job"] == job.name.as_str();
        let started = events.iter().find(ours);
        let started = started.with_context(|| format!("Docker did not tell of {}'s start", job.name))?;
        Ok(Self { pulled_s: pulled.and_then(moment), started_s: moment(started).context("no time")? })
    }
}

fn moment(event: &Value) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "microseconds matter here, not nanoseconds")]
    event["timeNano"].as_i64().map(|nanoseconds| nanoseconds as f64 / 1e9)
}
