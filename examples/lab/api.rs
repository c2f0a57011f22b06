//! The controller's HTTP API, as any client sees it: over TLS, with the token that a new controller leaves
//! for its administrator.

use anyhow::{Context as _, Result, bail, ensure};
use edgeloom_common::join::Context;
use edgeloom_common::usage::{UsageList, UsageView};
use edgeloom_common::view::{EventList, EventView, JobView, NodeList, Problem};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use ureq::http::Response;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Body, RequestBuilder};

/// A request takes at most so long.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// A controller by the file of its administrator, which is there once it has started for the first time.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    context: PathBuf,
    client: OnceLock<Client>,
}

/// Where the controller is, what to show it, and whom to trust.
#[derive(Debug, Clone)]
struct Client {
    context: Context,
    agent: ureq::Agent,
}

impl Client {
    fn open(path: &Path) -> Result<Self> {
        let text = std::fs::read(path).with_context(|| path.display().to_string())?;
        let context: Context = serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
        // Made with the authority, and complete once the API listens.
        ensure!(!context.server.is_empty(), "the controller does not listen yet");
        let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(context.authorities.as_bytes())
            .map(|found| found.map(|found| Certificate::from_der(&found).to_owned()))
            .collect();
        let roots = roots.with_context(|| format!("the authorities of {}", path.display()))?;
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::Specific(Arc::new(roots)))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(REQUEST_LIMIT))
            .http_status_as_error(false)
            .tls_config(tls)
            .build();
        Ok(Self { context, agent: config.into() })
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.context.server)
    }

    fn signed<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        request.header("authorization", format!("Bearer {}", self.context.token.expose()))
    }
}

type Answer = Result<Response<Body>, ureq::Error>;

fn read<T: DeserializeOwned>(what: &str, wanted: u16, answer: Answer) -> Result<T> {
    let mut answer = answer.with_context(|| what.to_owned())?;
    let status = answer.status().as_u16();
    let body = answer.body_mut().read_to_string()?;
    if status != wanted {
        bail!("{what}: status {status}, wanted {wanted}: {body}");
    }
    serde_json::from_str(&body).with_context(|| format!("{what}: unexpected answer {body}"))
}

impl Api {
    pub(crate) fn new(context: PathBuf) -> Self {
        Self { context, client: OnceLock::new() }
    }

    fn client(&self) -> Result<&Client> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = Client::open(&self.context)?;
        Ok(self.client.get_or_init(|| client))
    }

    fn fetch(&self, path: &str) -> Result<Answer> {
        let client = self.client()?;
        Ok(client.signed(client.agent.get(client.url(path))).call())
    }

    fn send(&self, path: &str, document: &str) -> Result<Answer> {
        let client = self.client()?;
        Ok(client.signed(client.agent.post(client.url(path))).send(document))
    }

    /// Waits until the controller answers.
    pub(crate) fn await_controller(&self, limit: Duration) -> Result<()> {
        let mut last = None;
        let answers = || {
            last = self.nodes().err();
            Ok(last.is_none())
        };
        let waited = wait_for("the controller to answer", limit, answers);
        match last {
            Some(error) => waited.with_context(|| format!("{error:#}")),
            None => waited,
        }
    }

    /// Posts a job and wants 201.
    pub(crate) fn post(&self, document: &str) -> Result<JobView> {
        read("posting the job", 201, self.send("/v1/jobs", document)?)
    }

    /// Posts a job that may find no room.
    pub(crate) fn submit(&self, document: &str) -> Result<Submitted> {
        let mut answer = self.send("/v1/jobs", document)?.context("posting the job")?;
        let (status, body) = (answer.status().as_u16(), answer.body_mut().read_to_string()?);
        if status == 201 {
            return Ok(Submitted::Accepted(Box::new(serde_json::from_str(&body)?)));
        }
        match serde_json::from_str::<Problem>(&body) {
            Ok(problem) if problem.code == "job.unplaceable" => Ok(Submitted::Refused(problem.detail)),
            _ => bail!("posting the job: status {status}: {body}"),
        }
    }

    /// Any request: the status and the body of its answer, whatever they are.
    pub(crate) fn request(&self, request: &Request<'_>) -> Result<(u16, String)> {
        let client = self.client()?;
        let mut answer = match request {
            Request::Get(path) => self.fetch(path)?,
            Request::Post(path, body) => self.send(path, body)?,
            Request::Delete(path) => client.signed(client.agent.delete(client.url(path))).call(),
        }?;
        Ok((answer.status().as_u16(), answer.body_mut().read_to_string()?))
    }

    /// What happened after event `number`, oldest first.
    pub(crate) fn events_after(&self, number: u64) -> Result<Vec<EventView>> {
        let list: EventList = read("reading the events", 200, self.fetch("/v1/events")?)?;
        Ok(list.events.into_iter().filter(|event| event.number > number).collect())
    }

    /// One job, none when it is gone.
    pub(crate) fn job(&self, name: &str) -> Result<Option<JobView>> {
        let answer = self.fetch(&format!("/v1/jobs/{name}"))?;
        if answer.as_ref().is_ok_and(|answer| answer.status().as_u16() == 404) {
            return Ok(None);
        }
        read("reading the job", 200, answer).map(Some)
    }

    /// Every node.
    pub(crate) fn nodes(&self) -> Result<NodeList> {
        read("reading the nodes", 200, self.fetch("/v1/nodes")?)
    }

    /// What containers of a job used, whether it is still there or not.
    pub(crate) fn usage(&self, job: &str) -> Result<Vec<UsageView>> {
        let list: UsageList = read("reading the usage", 200, self.fetch(&format!("/v1/usage?job={job}"))?)?;
        Ok(list.records)
    }

    /// Deletes a job and waits until it is gone.
    pub(crate) fn stop(&self, name: &str) -> Result<()> {
        let client = self.client()?;
        let request = client.agent.delete(client.url(&format!("/v1/jobs/{name}")));
        let _: JobView = read("stopping the job", 202, client.signed(request).call())?;
        wait_for(&format!("{name} to be gone"), Duration::from_secs(60), || Ok(self.job(name)?.is_none()))
    }
}

/// A request as it is, path first.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request<'a> {
    Get(&'a str),
    Post(&'a str, &'a str),
    Delete(&'a str),
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
