//! The controller's HTTP API, as any client sees it.

use anyhow::{Context, Result, bail};
use edgeloom_common::view::{EventList, EventView, JobView, NodeList, Problem};
use serde::de::DeserializeOwned;
use std::time::{Duration, Instant};

/// A controller by its base address, for instance `http://10.60.0.2:7070`.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    base: String,
    agent: ureq::Agent,
}

impl Api {
    /// A client with a time limit of 30 s a request.
    pub(crate) fn new(base: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(30)))
            .http_status_as_error(false)
            .build();
        Self { base: base.to_owned(), agent: config.into() }
    }

    fn read<T: DeserializeOwned>(
        &self,
        what: &str,
        wanted: u16,
        answer: std::result::Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<T> {
        let mut answer = answer.with_context(|| format!("{what} at {}", self.base))?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().read_to_string()?;
        if status != wanted {
            bail!("{what}: status {status}, wanted {wanted}: {body}");
        }
        serde_json::from_str(&body).with_context(|| format!("{what}: unexpected answer {body}"))
    }

    /// Posts a job and wants 201.
    pub(crate) fn post(&self, document: &str) -> Result<JobView> {
        let url = format!("{}/v1/jobs", self.base);
        self.read("posting the job", 201, self.agent.post(&url).send(document))
    }

    /// Posts a job that may find no room.
    pub(crate) fn submit(&self, document: &str) -> Result<Submitted> {
        let url = format!("{}/v1/jobs", self.base);
        let mut answer = self.agent.post(&url).send(document).context("posting the job")?;
        let (status, body) = (answer.status().as_u16(), answer.body_mut().read_to_string()?);
        if status == 201 {
            return Ok(Submitted::Accepted(Box::new(serde_json::from_str(&body)?)));
        }
        match serde_json::from_str::<Problem>(&body) {
            Ok(problem) if problem.code == "job.unplaceable" => Ok(Submitted::Refused(problem.detail)),
            _ => bail!("posting the job: status {status}: {body}"),
        }
    }

    /// What happened after event `number`, oldest first.
    pub(crate) fn events_after(&self, number: u64) -> Result<Vec<EventView>> {
        let url = format!("{}/v1/events", self.base);
        let list: EventList = self.read("reading the events", 200, self.agent.get(&url).call())?;
        Ok(list.events.into_iter().filter(|event| event.number > number).collect())
    }

    /// One job, none when it is gone.
    pub(crate) fn job(&self, name: &str) -> Result<Option<JobView>> {
        let url = format!("{}/v1/jobs/{name}", self.base);
        let answer = self.agent.get(&url).call();
        if answer.as_ref().is_ok_and(|answer| answer.status().as_u16() == 404) {
            return Ok(None);
        }
        self.read("reading the job", 200, answer).map(Some)
    }

    /// Every node.
    pub(crate) fn nodes(&self) -> Result<NodeList> {
        let url = format!("{}/v1/nodes", self.base);
        self.read("reading the nodes", 200, self.agent.get(&url).call())
    }

    /// Deletes a job and waits until it is gone.
    pub(crate) fn stop(&self, name: &str) -> Result<()> {
        let url = format!("{}/v1/jobs/{name}", self.base);
        let _: JobView = self.read("stopping the job", 202, self.agent.delete(&url).call())?;
        wait_for(&format!("{name} to be gone"), Duration::from_secs(60), || Ok(self.job(name)?.is_none()))
    }
}

/// What became of a posted job.
#[derive(Debug)]
pub(crate) enum Submitted {
    Accepted(Box<JobView>),
    /// It fits on no node, whatever else runs; why.
    Refused(String),
}

/// Polls until `done`, every 50 ms.
pub(crate) fn wait_for(what: &str, limit: Duration, mut done: impl FnMut() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    while !done()? {
        if start.elapsed() > limit {
            bail!("waited {} s for {what}", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
