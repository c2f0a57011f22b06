//! Names resolved at registries of fixed answers, and at a real one.

use crate::client::{Asked, BODY_MAX, Client};
use crate::fake::{Answers, Guard, image, serve, serve_to};
use crate::{Image, Platform, Registry, RegistryError, Settings};
use edgeloom_common::confidential::Login;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

fn sha256(bytes: &[u8]) -> String {
    crate::Digest::of(bytes).to_string()
}

fn open(insecure: Vec<String>) -> Registry {
    Registry::open(Settings { insecure, cache: None }).unwrap()
}

fn platform<'a>(image: &'a Image, architecture: &str) -> Option<&'a Platform> {
    image.platforms.iter().find(|platform| platform.architecture == architecture)
}

async fn resolved(answers: Answers) -> Result<Image, RegistryError> {
    let address = serve(answers).await;
    let registry = open(vec![address.clone()]);
    registry.resolve(&format!("{address}/app:1"), None).await
}

#[tokio::test]
async fn a_name_becomes_a_digest_and_layers() {
    let image = resolved(image(&[30, 20])).await.unwrap();
    let layers = &platform(&image, "amd64").unwrap().layers;
    assert_eq!(layers.iter().map(|layer| layer.blob.size_bytes).collect::<Vec<_>>(), [30, 20]);
    assert!(image.reference.digest.starts_with("sha256:"));
    assert!(platform(&image, "arm64").is_none());
}

#[tokio::test]
async fn an_index_gives_its_linux_platforms_and_no_attestations() {
    let mut answers = image(&[30]);
    let (_, manifest) = answers["/v2/app/manifests/1"].clone();
    let index = serde_json::json!({ "schemaVersion": 2, "manifests": [
        { "digest": "sha256:00", "platform": { "architecture": "unknown", "os": "unknown" } },
        { "digest": sha256(&manifest), "platform": { "architecture": "amd64", "os": "linux" } },
    ] });
    answers.insert("/v2/app/manifests/1".to_owned(), (200, index.to_string().into_bytes()));
    assert_eq!(resolved(answers).await.unwrap().platforms.len(), 1);
}

#[tokio::test]
async fn unknown_unreadable_and_unreachable_are_told_apart() {
    assert!(matches!(resolved(Answers::new()).await, Err(RegistryError::Unknown { .. })));
    let garbage = Answers::from([("/v2/app/manifests/1".to_owned(), (200, b"<html>".to_vec()))]);
    assert!(matches!(resolved(garbage).await, Err(RegistryError::Unreadable { .. })));
    let large = Answers::from([("/v2/app/manifests/1".to_owned(), (200, vec![b' '; BODY_MAX + 1]))]);
    assert!(matches!(resolved(large).await, Err(RegistryError::Unreadable { .. })));
    let away = Answers::from([("/v2/app/manifests/1".to_owned(), (503, Vec::new()))]);
    assert!(matches!(resolved(away).await, Err(RegistryError::Unreachable { .. })));
    let registry = open(vec!["127.0.0.1:1".to_owned()]);
    let error = registry.resolve("127.0.0.1:1/app:1", None).await.unwrap_err();
    assert!(matches!(error, RegistryError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_body_that_does_not_match_its_digest_is_refused() {
    let mut answers = image(&[30]);
    let is_config =
        |(path, (_, body)): &(&String, &(u16, Vec<u8>))| path.contains("/blobs/") && !body.is_empty();
    let config = answers.iter().find(is_config).unwrap().0.clone();
    answers.insert(config, (200, b"{\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":[]}}".to_vec()));
    assert!(matches!(resolved(answers).await, Err(RegistryError::Unreadable { .. })));
}

fn login(password: &str) -> Login {
    Login { username: "user".to_owned(), password: password.to_owned().into() }
}

/// `user:hunter2`.
const LOGIN: &str = "dXNlcjpodW50ZXIy";

#[tokio::test]
async fn a_login_opens_a_registry_whichever_proof_it_wants() {
    for guard in [Guard::Basic(LOGIN), Guard::Token(LOGIN)] {
        let address = serve_to(guard, image(&[30])).await;
        let registry = open(vec![address.clone()]);
        let (name, host) = (format!("{address}/app:1"), address.parse().unwrap());
        let found = registry.resolve(&name, Some(&login("hunter2"))).await.unwrap();
        assert_eq!(platform(&found, "amd64").unwrap().layers.len(), 1, "{guard:?}");
        registry.check(&host, &login("hunter2")).await.unwrap();
        let none = registry.resolve(&name, None).await.unwrap_err();
        assert!(matches!(none, RegistryError::Denied { .. }), "{none}");
        assert!(none.remedy().contains("edgeloom registry login"), "{}", none.remedy());
        let wrong = registry.resolve(&name, Some(&login("hunter3"))).await.unwrap_err();
        assert!(
            matches!(&wrong, RegistryError::LoginRefused { username, .. } if username == "user"),
            "{wrong}"
        );
        assert_eq!(registry.check(&host, &login("hunter3")).await, Err(wrong.clone()));
        assert!(!format!("{wrong} {wrong:?} {}", wrong.remedy()).contains("hunter"));
    }
}

#[tokio::test]
async fn a_login_is_not_sent_in_the_clear_for_a_registry_that_speaks_tls() {
    let client = Client::new(Vec::new()).unwrap();
    let (host, login) = ("reg.lan".parse().unwrap(), login("hunter2"));
    let asked = Asked { client: &client, subject: "a login", host: &host, login: Some(&login), part: "" };
    let error = asked.token("realm=\"http://127.0.0.1:9/token\",service=\"s\"").await.unwrap_err();
    assert!(
        matches!(&error, RegistryError::Unreadable { reason, .. } if reason.contains("in the clear")),
        "{error}"
    );
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A registry on a folder, with more lines of configuration; its address once it answers.
async fn start(folder: &Path, more: &str) -> (String, Ended) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let root = folder.display();
    let config = format!(
        "version: 0.1\nlog: {{ level: error }}\nstorage: {{ filesystem: {{ rootdirectory: {root} }} }}\nhttp: {{ addr: \"{address}\" }}\n{more}"
    );
    let file = folder.join("config.yml");
    std::fs::write(&file, config).unwrap();
    let child = Command::new("docker-registry")
        .arg("serve")
        .arg(&file)
        .spawn()
        .expect("lab_allowed has prepared docker-registry");
    let ended = Ended(child);
    let http = reqwest_client();
    for _ in 0..100 {
        if http.get(format!("http://{address}/v2/")).send().await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    (address, ended)
}

#[tokio::test]
async fn a_real_registry_answers_as_the_fake_does() {
    if !edgeloom_prepare::lab_allowed(&["docker-registry"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (address, _ended) = start(dir.path(), "").await;
    push(&reqwest_client(), &address).await;
    let registry = open(vec![address.clone()]);
    let image = registry.resolve(&format!("{address}/app:1"), None).await.unwrap();
    assert_eq!(platform(&image, "amd64").unwrap().layers[0].blob.size_bytes, 5);
    let by_digest = format!("{address}/app@{}", image.reference.digest);
    assert_eq!(registry.resolve(&by_digest, None).await.unwrap().platforms, image.platforms);
    let error = registry.resolve(&format!("{address}/app:2"), None).await.unwrap_err();
    assert!(matches!(error, RegistryError::Unknown { .. }), "{error}");
}

/// User `user`, password `U*U`: bcrypt, of the test vectors of crypt_blowfish.
const HTPASSWD: &str = "user:$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW\n";

#[tokio::test]
async fn a_real_registry_opens_to_a_login() {
    if !edgeloom_prepare::lab_allowed(&["docker-registry"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (at_first, ended) = start(dir.path(), "").await;
    push(&reqwest_client(), &at_first).await;
    drop(ended);
    let file = dir.path().join("htpasswd");
    std::fs::write(&file, HTPASSWD).unwrap();
    let auth = format!("auth: {{ htpasswd: {{ realm: test, path: {} }} }}\n", file.display());
    let (address, _ended) = start(dir.path(), &auth).await;
    let registry = open(vec![address.clone()]);
    let (name, host) = (format!("{address}/app:1"), address.parse().unwrap());
    registry.check(&host, &login("U*U")).await.unwrap();
    registry.resolve(&name, Some(&login("U*U"))).await.unwrap();
    let none = registry.resolve(&name, None).await.unwrap_err();
    assert!(matches!(none, RegistryError::Denied { .. }), "{none}");
    let wrong = registry.check(&host, &login("U*V")).await.unwrap_err();
    assert!(matches!(wrong, RegistryError::LoginRefused { .. }), "{wrong}");
}

fn reqwest_client() -> reqwest::Client {
    Client::new(Vec::new()).unwrap().http().clone()
}

/// Pushes one layer of five bytes as Docker would.
async fn push(http: &reqwest::Client, address: &str) {
    let layer = b"layer".to_vec();
    let config = serde_json::json!({ "architecture": "amd64", "os": "linux", "rootfs": { "type": "layers", "diff_ids": [sha256(b"content")] } });
    let config = config.to_string().into_bytes();
    for blob in [&layer, &config] {
        let begun = http.post(format!("http://{address}/v2/app/blobs/uploads/")).send().await.unwrap();
        let place = begun.headers()["location"].to_str().unwrap().to_owned();
        let place = format!("{place}&digest={}", sha256(blob));
        let put = http.put(place).header("content-type", "application/octet-stream").body(blob.clone());
        assert_eq!(put.send().await.unwrap().status().as_u16(), 201);
    }
    let kind = "application/vnd.docker.distribution.manifest.v2+json";
    let manifest = serde_json::json!({
        "schemaVersion": 2, "mediaType": kind,
        "config": { "mediaType": "application/vnd.docker.container.image.v1+json", "digest": sha256(&config), "size": config.len() },
        "layers": [{ "mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", "digest": sha256(&layer), "size": 5 }],
    });
    let put = http.put(format!("http://{address}/v2/app/manifests/1")).header("content-type", kind);
    let answer = put.body(manifest.to_string()).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 201);
}
