use super::asked::BODY_MAX;
use super::fake::{Answers, Guard, image, serve, serve_to};
use super::*;
use std::path::Path;
use std::process::{Child, Command};

async fn resolved(answers: Answers) -> Result<Image, RegistryError> {
    let address = serve(answers).await;
    let registry = Registry::new(vec![address.clone()]).unwrap();
    registry.resolve(&format!("{address}/app:1"), None).await
}

#[tokio::test]
async fn a_name_becomes_a_digest_and_layers() {
    let image = resolved(image(&[30, 20])).await.unwrap();
    let layers = image.layers("x86_64").unwrap();
    assert_eq!(layers.layers.iter().map(|blob| blob.size.0).collect::<Vec<_>>(), [30, 20]);
    assert_eq!(layers.diff_ids.len(), 2);
    assert!(image.reference.digest.starts_with("sha256:"));
    assert!(image.layers("aarch64").is_none());
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
    let registry = Registry::new(vec!["127.0.0.1:1".to_owned()]).unwrap();
    let error = registry.resolve("127.0.0.1:1/app:1", None).await.unwrap_err();
    assert!(matches!(error, RegistryError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_body_that_does_not_match_its_digest_is_refused() {
    let mut answers = image(&[30]);
    let blob = answers.keys().find(|path| path.contains("/blobs/")).unwrap().clone();
    answers.insert(blob, (200, b"{\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":[]}}".to_vec()));
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
        let registry = Registry::new(vec![address.clone()]).unwrap();
        let (name, host) = (format!("{address}/app:1"), address.parse().unwrap());
        let found = registry.resolve(&name, Some(&login("hunter2"))).await.unwrap();
        assert_eq!(found.layers("x86_64").unwrap().layers.len(), 1, "{guard:?}");
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
    let registry = Registry::new(Vec::new()).unwrap();
    let login = login("hunter2");
    let asked = Asked { registry: &registry, image: "a login", host: "reg.lan", login: Some(&login) };
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
    let registry = Registry::new(vec![address.clone()]).unwrap();
    let image = registry.resolve(&format!("{address}/app:1"), None).await.unwrap();
    assert_eq!(image.layers("x86_64").unwrap().layers[0].size.0, 5);
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
    let (open, ended) = start(dir.path(), "").await;
    push(&reqwest_client(), &open).await;
    drop(ended);
    let file = dir.path().join("htpasswd");
    std::fs::write(&file, HTPASSWD).unwrap();
    let auth = format!("auth: {{ htpasswd: {{ realm: test, path: {} }} }}\n", file.display());
    let (address, _ended) = start(dir.path(), &auth).await;
    let registry = Registry::new(vec![address.clone()]).unwrap();
    let (name, host) = (format!("{address}/app:1"), address.parse().unwrap());
    registry.check(&host, &login("U*U")).await.unwrap();
    registry.resolve(&name, Some(&login("U*U"))).await.unwrap();
    let none = registry.resolve(&name, None).await.unwrap_err();
    assert!(matches!(none, RegistryError::Denied { .. }), "{none}");
    let wrong = registry.check(&host, &login("U*V")).await.unwrap_err();
    assert!(matches!(wrong, RegistryError::LoginRefused { .. }), "{wrong}");
}

fn reqwest_client() -> reqwest::Client {
    Registry::new(Vec::new()).unwrap().http
}

/// Pushes one layer of five bytes as Docker would.
async fn push(http: &reqwest::Client, address: &str) {
    let layer = b"layer".to_vec();
    let config = serde_json::json!({ "architecture": "amd64", "os": "linux", "rootfs": { "type": "layers", "diff_ids": ["sha256:1"] } });
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
