//! A registry in the process: images made from numbers, so that it holds nothing, and faults by path.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use edgeloom_common::registry::RegistryHost;
use edgeloom_registry::{Digest, Interest, Interests, Registry, Settings, watch};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Layers that several images share, and those of each one alone.
pub(crate) const SHARED: usize = 6;
pub(crate) const OWN: usize = 2;

/// An answer in place of the usual one.
#[derive(Clone)]
pub(crate) struct Fault {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// It never comes.
    pub(crate) silent: bool,
}

impl Fault {
    pub(crate) fn of(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let (status, headers) = (StatusCode::from_u16(status).unwrap(), Vec::new());
        Self { status, headers, body: body.into(), silent: false }
    }

    pub(crate) fn silence() -> Self {
        Self { silent: true, ..Self::of(200, "") }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// What the registry has.
#[derive(Default)]
pub(crate) struct Content {
    /// Which version of its image each tag names, by `repository:tag`.
    pub(crate) tags: BTreeMap<String, usize>,
    /// By path.
    pub(crate) faults: BTreeMap<String, Fault>,
    /// Every request's method and path.
    pub(crate) asked: Vec<(Method, String)>,
    /// Names of a page.
    pub(crate) page: usize,
    /// Manifests and configurations are found by digest, since nobody could make them from it.
    by_digest: BTreeMap<String, (String, usize)>,
}

/// A running registry.
pub(crate) struct Site {
    pub(crate) host: RegistryHost,
    pub(crate) content: Arc<Mutex<Content>>,
    running: JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Site {
    pub(crate) async fn start(tags: impl IntoIterator<Item = String>) -> Self {
        let content = Content { page: 100, ..Content::default() };
        let content = Arc::new(Mutex::new(content));
        tags.into_iter().for_each(|tag| content.lock().unwrap().push(&tag, 0));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string().parse().unwrap();
        let running = tokio::spawn(serve(listener, content.clone()));
        Self { host, content, running }
    }

    /// Closes every connection and the socket.
    pub(crate) fn go_away(&mut self) {
        self.running.abort();
    }

    /// Comes back under the same address.
    pub(crate) async fn come_back(&mut self) {
        let listener = loop {
            match TcpListener::bind(self.host.as_str()).await {
                Ok(listener) => break listener,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        self.running = tokio::spawn(serve(listener, self.content.clone()));
    }

    pub(crate) fn push(&self, tag: &str, version: usize) {
        self.content.lock().unwrap().push(tag, version);
    }

    pub(crate) fn fault(&self, path: impl Into<String>, fault: Fault) {
        self.content.lock().unwrap().faults.insert(path.into(), fault);
    }

    pub(crate) fn digest_of(&self, tag: &str) -> Digest {
        let content = self.content.lock().unwrap();
        let (repository, _) = tag.split_once(':').unwrap();
        Digest::of(manifest(repository, content.tags[tag]).as_bytes())
    }

    /// Requests so far whose path ends so.
    pub(crate) fn asked(&self, method: &Method, end: &str) -> usize {
        let content = self.content.lock().unwrap();
        content.asked.iter().filter(|(its, path)| its == method && path.ends_with(end)).count()
    }
}

impl Content {
    fn push(&mut self, tag: &str, version: usize) {
        let (repository, _) = tag.split_once(':').unwrap();
        self.tags.insert(tag.to_owned(), version);
        for text in [manifest(repository, version), config(repository, version)] {
            let digest = Digest::of(text.as_bytes()).to_string();
            self.by_digest.insert(digest, (repository.to_owned(), version));
        }
    }

    fn answer(&mut self, method: &Method, path: &str, query: &str, unless: Option<&str>) -> Fault {
        self.asked.push((method.clone(), path.to_owned()));
        if let Some(fault) = self.faults.get(path) {
            return fault.clone();
        }
        let missing = Fault::of(404, "{}");
        let rest = path.strip_prefix("/v2/").unwrap_or("");
        if rest.is_empty() {
            return Fault::of(200, "{}");
        }
        let split = |tag: &String| tag.split_once(':').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        if rest == "_catalog" {
            let names: BTreeSet<_> = self.tags.keys().map(|tag| split(tag).0).collect();
            return self.page(path, query, "repositories", names);
        }
        if let Some(repository) = rest.strip_suffix("/tags/list") {
            let tags = self.tags.range(format!("{repository}:")..).map(|(tag, _)| split(tag));
            let names = tags.take_while(|(of, _)| of == repository).map(|(_, tag)| tag).collect();
            return self.page(path, query, "tags", names);
        }
        if let Some((repository, version)) = rest.split_once("/manifests/") {
            return self.manifest(repository, version, unless).unwrap_or(missing);
        }
        let Some((_, digest)) = rest.split_once("/blobs/") else { return missing };
        match self.by_digest.get(digest) {
            Some((repository, version)) => Fault::of(200, config(repository, *version)),
            None => Fault::of(200, Vec::new()),
        }
    }

    fn manifest(&self, repository: &str, version: &str, unless: Option<&str>) -> Option<Fault> {
        let version = match self.by_digest.get(version) {
            Some((of, version)) if of == repository => *version,
            Some(_) => return None,
            None => *self.tags.get(&format!("{repository}:{version}"))?,
        };
        let text = manifest(repository, version);
        let digest = Digest::of(text.as_bytes()).to_string();
        let etag = format!("\"{digest}\"");
        let status = if unless == Some(etag.as_str()) { 304 } else { 200 };
        Some(Fault::of(status, text).with("docker-content-digest", digest).with("etag", etag))
    }

    fn page(&self, path: &str, query: &str, field: &str, names: BTreeSet<String>) -> Fault {
        let last = query.split('&').find_map(|pair| pair.strip_prefix("last=")).unwrap_or("");
        let after: Vec<_> = names.into_iter().filter(|name| name.as_str() > last).collect();
        let page = &after[..after.len().min(self.page)];
        let answer = Fault::of(200, json!({ field: page }).to_string());
        match page.last() {
            Some(last) if page.len() < after.len() => {
                answer.with("link", format!("<{path}?last={last}&n={}>; rel=\"next\"", self.page))
            }
            _ => answer,
        }
    }
}

fn blob(name: &str) -> String {
    Digest::of(name.as_bytes()).to_string()
}

/// Names of an image's layers, bottom first: some of them are those of nine other images, too.
fn layers(repository: &str, version: usize) -> Vec<String> {
    let number: usize = repository.bytes().fold(0, |sum, byte| (sum * 31 + usize::from(byte)) % 9973);
    let shared = (0..SHARED).map(|layer| format!("shared {} {layer}", number / 10));
    shared.chain((0..OWN).map(|layer| format!("{repository} {version} {layer}"))).collect()
}

fn config(repository: &str, version: usize) -> String {
    let diff_ids: Vec<_> =
        layers(repository, version).iter().map(|name| blob(&format!("diff {name}"))).collect();
    json!({ "architecture": "amd64", "os": "linux", "of": repository, "version": version,
        "rootfs": { "type": "layers", "diff_ids": diff_ids } })
    .to_string()
}

pub(crate) fn manifest(repository: &str, version: usize) -> String {
    let config = config(repository, version);
    let layers = layers(repository, version);
    let layers: Vec<_> = layers.iter().map(|name| json!({ "digest": blob(name), "size": 1000 })).collect();
    json!({ "schemaVersion": 2, "layers": layers,
        "config": { "digest": blob(&config), "size": config.len() } })
    .to_string()
}

async fn serve(listener: TcpListener, content: Arc<Mutex<Content>>) {
    let router = Router::new().fallback(answer).with_state(content);
    axum::serve(listener, router).await.unwrap();
}

async fn answer(State(content): State<Arc<Mutex<Content>>>, request: Request) -> Response {
    let unless = request.headers().get("if-none-match").and_then(|value| value.to_str().ok());
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or(""));
    let answer = content.lock().unwrap().answer(request.method(), path, query, unless);
    if answer.silent {
        std::future::pending::<()>().await;
    }
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(*name, value);
    }
    response.body(Body::from(answer.body)).unwrap()
}

/// What is of interest, as the test has it.
pub(crate) type Wanted = Arc<Mutex<BTreeMap<RegistryHost, Interest>>>;

struct Fixed(Wanted);

impl Interests for Fixed {
    async fn interests(&self) -> Option<BTreeMap<RegistryHost, Interest>> {
        Some(self.0.lock().unwrap().clone())
    }
}

/// A watcher that ends with this.
pub(crate) struct Watcher {
    pub(crate) registry: Arc<Registry>,
    running: JoinHandle<()>,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// All of a registry.
pub(crate) fn whole(hosts: &[&RegistryHost]) -> Wanted {
    let interest = Interest { catalogue: true, ..Interest::default() };
    Arc::new(Mutex::new(hosts.iter().map(|host| ((*host).clone(), interest.clone())).collect()))
}

impl Watcher {
    pub(crate) fn start(wanted: &Wanted, cache: Option<PathBuf>, period: Duration) -> Self {
        let insecure = wanted.lock().unwrap().keys().map(ToString::to_string).collect();
        let registry = Arc::new(Registry::open(Settings { insecure, cache }).unwrap());
        let running = tokio::spawn(watch(registry.clone(), Fixed(wanted.clone()), period));
        Self { registry, running }
    }
}

/// Looks again until there is an answer.
pub(crate) async fn until<T>(look: impl Fn() -> Option<T>) -> T {
    let looking = async {
        loop {
            match look() {
                Some(answer) => return answer,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(120), looking).await.expect("it comes to pass")
}
