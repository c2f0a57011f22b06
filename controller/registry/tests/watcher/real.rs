//! The watcher over the registry of the distribution project, as Debian has it: pages, removals and notifications.

use super::site::{Watcher, until, whole};
use super::{current, image};
use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::post;
use edgeloom_common::registry::RegistryHost;
use edgeloom_registry::{Digest, Registry};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A registry on a folder that notifies a listener; its address once it answers.
async fn start(folder: &Path, listener: &str) -> (RegistryHost, Ended) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let root = folder.display();
    let config = format!(
        "version: 0.1\nlog: {{ level: error }}\n\
         storage: {{ filesystem: {{ rootdirectory: {root} }}, delete: {{ enabled: true }} }}\n\
         http: {{ addr: \"{address}\" }}\n\
         notifications: {{ endpoints: [ {{ name: watcher, url: \"http://{listener}/v1/registry/events\", \
         timeout: 5s, threshold: 5, backoff: 1s, headers: {{ Authorization: [\"Bearer token\"] }} }} ] }}\n"
    );
    let file = folder.join("config.yml");
    std::fs::write(&file, config).unwrap();
    let mut command = Command::new("docker-registry");
    command.arg("serve").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
    let ended = Ended(command.spawn().expect("lab_allowed has prepared docker-registry"));
    while TcpStream::connect(&address).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    (address.parse().unwrap(), ended)
}

/// One request; status, headers and body as they came.
async fn request(host: &RegistryHost, head: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(host.as_str()).await.unwrap();
    let head =
        format!("{head}\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Pushes an image of one layer, as Docker would.
async fn push(host: &RegistryHost, repository: &str, content: &str) -> Digest {
    let digest = |bytes: &[u8]| Digest::of(bytes).to_string();
    let config = serde_json::json!({ "architecture": "amd64", "os": "linux",
        "rootfs": { "type": "layers", "diff_ids": [digest(format!("diff {content}").as_bytes())] } });
    let (layer, config) = (content.as_bytes().to_vec(), config.to_string().into_bytes());
    for blob in [&layer, &config] {
        let begun = request(host, &format!("POST /v2/{repository}/blobs/uploads/ HTTP/1.1"), b"").await;
        let place = begun.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap();
        let path = place.split_once(host.as_str()).unwrap().1;
        let head =
            format!("PUT {path}&digest={} HTTP/1.1\r\ncontent-type: application/octet-stream", digest(blob));
        assert!(request(host, &head, blob).await.starts_with("HTTP/1.1 201"));
    }
    let kind = "application/vnd.docker.distribution.manifest.v2+json";
    let manifest = serde_json::json!({ "schemaVersion": 2, "mediaType": kind,
        "config": { "mediaType": "application/vnd.docker.container.image.v1+json", "digest": digest(&config), "size": config.len() },
        "layers": [{ "mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", "digest": digest(&layer), "size": layer.len() }] });
    let manifest = manifest.to_string();
    let head = format!("PUT /v2/{repository}/manifests/1 HTTP/1.1\r\ncontent-type: {kind}");
    assert!(request(host, &head, manifest.as_bytes()).await.starts_with("HTTP/1.1 201"));
    Digest::of(manifest.as_bytes())
}

/// Hands notifications to the watcher as the controller's API does.
async fn listen(registry: Arc<OnceLock<Arc<Registry>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let notified = move |headers: HeaderMap, body: Bytes| async move {
        assert_eq!(headers["authorization"], "Bearer token");
        if let Some(registry) = registry.get() {
            registry.notified(&serde_json::from_slice(&body).unwrap(), None);
        }
    };
    let router = Router::new().route("/v1/registry/events", post(notified));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

#[tokio::test]
async fn a_real_registry_is_watched_and_notifies() {
    if !edgeloom_prepare::lab_allowed(&["docker-registry"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let watching = Arc::new(OnceLock::new());
    let listener = listen(watching.clone()).await;
    let (host, _ended) = start(folder.path(), &listener).await;
    for number in 0..5 {
        push(&host, &format!("team/app-{number}"), &format!("content {number}")).await;
    }
    let watcher = Watcher::start(&whole(&[&host]), None, Duration::from_millis(500));
    watching.set(watcher.registry.clone()).unwrap();
    until(|| (watcher.registry.images("").images.iter().filter(|it| current(it)).count() == 5).then_some(()))
        .await;
    let pushed = push(&host, "team/app-2", "another content").await.to_string();
    image(&watcher.registry, "app-2:1", |image| image.digest.as_ref() == Some(&pushed)).await;
    until(|| watcher.registry.images("").registries[0].notifies.then_some(())).await;
    // Only a notification tells of this: the questions rest.
    push(&host, "new", "new content").await;
    image(&watcher.registry, "new:1", current).await;
    let gone = request(&host, &format!("DELETE /v2/team/app-2/manifests/{pushed} HTTP/1.1"), b"").await;
    assert!(gone.starts_with("HTTP/1.1 202"), "{gone}");
    until(|| watcher.registry.images("app-2").images.is_empty().then_some(())).await;
}
