//! Images pushed to a real registry, in a process of its own on a loopback port.

use edgeloom_examples::images::{File, ImageSpec, Layer, MANIFEST_TYPE, PushError, digest, push};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

struct Registry {
    server: Child,
    directory: PathBuf,
    address: String,
}

impl Registry {
    fn start() -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let name = format!("edgeloom-registry-{}-{}", std::process::id(), address.replace(':', "-"));
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let config = format!(
            "version: 0.1\nlog: {{ level: error }}\nstorage: {{ filesystem: {{ rootdirectory: {} }} }}\nhttp: {{ addr: '{address}' }}\n",
            directory.display()
        );
        let config_path = directory.join("config.yml");
        std::fs::write(&config_path, config).unwrap();
        let server = Command::new("docker-registry")
            .arg("serve")
            .arg(config_path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("lab() has prepared docker-registry");
        let registry = Self { server, directory, address };
        while registry.status("").is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
        registry
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/v2/{path}", self.address)
    }

    fn status(&self, path: &str) -> Option<u16> {
        match ureq::get(self.url(path)).call() {
            Ok(answer) => Some(answer.status().as_u16()),
            Err(ureq::Error::StatusCode(status)) => Some(status),
            Err(_) => None,
        }
    }

    fn read(&self, path: &str) -> Vec<u8> {
        let mut answer = ureq::get(self.url(path)).header("Accept", MANIFEST_TYPE).call().unwrap();
        answer.body_mut().read_to_vec().unwrap()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
        std::fs::remove_dir_all(&self.directory).unwrap();
    }
}

/// Whether tests with the registry run.
#[track_caller]
fn lab() -> bool {
    edgeloom_prepare::lab_allowed(&["docker-registry"])
}

fn image() -> ImageSpec {
    ImageSpec {
        repository: "vision/detect".to_owned(),
        tag: "1.0".to_owned(),
        layers: vec![
            Layer::random("usr/lib/runtime.bin", 1, 300_000),
            Layer::files(&[File { path: "pipeline", mode: 0o755, content: b"program" }]),
        ],
        entrypoint: vec!["/pipeline".to_owned()],
    }
}

#[test]
fn a_pushed_image_reads_back_whole() {
    if !lab() {
        return;
    }
    let registry = Registry::start();
    let image = image();
    let pushed = push(&registry.address, &image).unwrap();
    assert_eq!(registry.read("vision/detect/manifests/1.0"), image.manifest());
    assert_eq!(registry.read(&format!("vision/detect/manifests/{}", pushed.digest)), image.manifest());
    let config = registry.read(&format!("vision/detect/blobs/{}", pushed.config_digest));
    assert_eq!((config.len() as u64, config), (pushed.config_bytes, image.config()));
    assert_eq!(pushed.layers.len(), 2);
    for (layer_digest, bytes) in &pushed.layers {
        let blob = registry.read(&format!("vision/detect/blobs/{layer_digest}"));
        assert_eq!((digest(&blob), blob.len() as u64), (layer_digest.clone(), *bytes));
    }
    assert_eq!(push(&registry.address, &image).unwrap(), pushed, "a second push changes nothing");
}

#[test]
fn what_the_registry_refuses_is_told_with_its_words() {
    if !lab() {
        return;
    }
    let registry = Registry::start();
    let refused = push(&registry.address, &ImageSpec { repository: "Vision/UPPER".to_owned(), ..image() });
    let Err(PushError::Status { status, url, .. }) = refused else { panic!("{refused:?}") };
    assert!(status >= 400 && url.contains("Vision/UPPER"), "{status} {url}");
}

#[test]
fn a_registry_that_is_away_is_an_error() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    assert!(matches!(push(&free.to_string(), &image()), Err(PushError::Request { .. })));
}
