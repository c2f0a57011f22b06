//! Registries and disks that are not as they should be: a reason each time, and the pull works after the remedy.

use super::super::private::{DaemonNetwork, PrivateDocker};
use super::super::samples::{LAYER_BYTES, Sample, sample};
use super::*;
use crate::engine::ContainerEngine;
use crate::engine::fake::owner;
use crate::engine::registry::Registry;
use edgeloom_blobs::{Digest, Proxy, Sources, Store};
use edgeloom_common::units::Bytes;
use hyper::body::Bytes as Body;
use std::path::{Path, PathBuf};
use std::process::Command;
use tokio::net::TcpListener;

/// Many times what a daemon needs on a slow disk: a bound for one that never answers.
const TRIAL_MAX: Duration = Duration::from_secs(300);

struct Trial {
    registry: Registry,
    /// With a layer store, and without.
    engines: [Docker; 2],
}

/// An engine that pulls through a layer store in this folder.
async fn storing(docker: &PrivateDocker, folder: &Path) -> Docker {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let store = Store::open(folder, Bytes(64 << 20)).unwrap();
    let sources = Sources::new("n1".parse().unwrap(), None);
    let proxy = Proxy::new(store, sources, listener.local_addr().unwrap());
    tokio::spawn(proxy.clone().serve(listener));
    let engine = Docker::new(docker.socket(), owner());
    engine.pull_through(proxy);
    engine
}

impl Trial {
    async fn pull(&self, engine: &Docker, image: &ImageRef) -> Result<(), EngineError> {
        let (progress, _seen) = watch::channel(PullProgress::default());
        engine.pull(image, None, &progress).await
    }

    /// Both engines say this of the image.
    async fn is_refused(&self, image: &ImageRef, reasons: [&str; 2]) {
        for (engine, reason) in self.engines.iter().zip(reasons) {
            let Err(error) = self.pull(engine, image).await else {
                panic!("{reason:?} is not said of {image:?}")
            };
            let said = error.to_string();
            assert!(said.contains(&image.name) && said.contains(reason), "{reason:?} is not in {said:?}");
        }
    }

    /// Another blob, or none, under this digest.
    fn spoil(&self, digest: &Digest, bytes: Option<&[u8]>) -> Option<Body> {
        let mut state = self.registry.state.lock().unwrap();
        match bytes {
            Some(bytes) => state.blobs.insert(digest.to_string(), Body::copy_from_slice(bytes)),
            None => state.blobs.remove(&digest.to_string()),
        }
    }

    fn sample(&self, name: &str) -> Sample {
        let layers = [format!("{name}-0"), format!("{name}-1")];
        sample(&self.registry, name, &[&layers[0], &layers[1]], 0)
    }

    /// The same image but for the description of its second layer.
    fn described(&self, sample: &Sample, description: serde_json::Value) -> ImageRef {
        let mut manifest: serde_json::Value = serde_json::from_slice(&sample.manifest).unwrap();
        let layer = manifest["layers"][1].as_object_mut().unwrap();
        layer.extend(description.as_object().unwrap().clone());
        let digest = self.registry.hold(manifest.to_string().as_bytes()).to_string();
        ImageRef { digest, ..sample.image.clone() }
    }

    async fn broken_manifests(&self) {
        let lost = self.sample("lost");
        self.spoil(&lost.image.digest.parse().unwrap(), None);
        self.is_refused(&lost.image, ["with status 404"; 2]).await;
        self.spoil(&lost.image.digest.parse().unwrap(), Some(b"{]"));
        self.is_refused(&lost.image, ["something else than manifest sha256:"; 2]).await;
        let digest = self.registry.hold(b"{]").to_string();
        let garbage = ImageRef { digest, ..lost.image.clone() };
        self.is_refused(&garbage, ["cannot be read: "; 2]).await;
    }

    async fn a_missing_blob(&self) {
        let missing = self.sample("missing");
        let taken = self.spoil(&missing.blob(1), None).unwrap();
        self.is_refused(&missing.image, ["with status 404", "unknown blob"]).await;
        self.spoil(&missing.blob(1), Some(&taken));
        for engine in &self.engines {
            self.pull(engine, &missing.image).await.unwrap();
        }
    }

    /// Docker would fetch such a blob five times, with growing pauses.
    async fn a_wrong_blob(&self) {
        let wrong = self.sample("wrong");
        let right = self.spoil(&wrong.blob(1), Some(&[0; LAYER_BYTES])).unwrap();
        self.is_refused(&wrong.image, ["has another digest", "verification failed"]).await;
        let sent = self.registry.sent(&wrong.blob(1));
        assert!(sent <= 2 * LAYER_BYTES, "each engine fetches it once: {sent}");
        self.spoil(&wrong.blob(1), Some(&right));
        self.pull(&self.engines[0], &wrong.image).await.unwrap();
        let unset = self.sample("unset");
        let config = Digest::of(&unset.config);
        self.spoil(&config, Some(b"{}"));
        self.is_refused(&unset.image, ["has another digest", "verification failed"]).await;
    }

    async fn zstd_layers(&self, major: u32) {
        let kind = serde_json::json!({ "mediaType": "application/vnd.oci.image.layer.v1.tar+zstd" });
        let mislabelled = self.described(&self.sample("mislabelled"), kind.clone());
        for engine in &self.engines {
            self.pull(engine, &mislabelled).await.unwrap();
        }
        if major >= 23 {
            return;
        }
        let packed = self.registry.hold(&[&[0x28, 0xb5, 0x2f, 0xfd][..], &[0; LAYER_BYTES]].concat());
        let sample = self.sample("zstd");
        let mut description = kind;
        description["digest"] = packed.to_string().into();
        let image = self.described(&sample, description);
        self.is_refused(&image, ["packed with zstd, which Docker "; 2]).await;
        assert_eq!(self.registry.sent(&sample.blob(0)), 0, "nothing is fetched in vain");
    }

    async fn foreign_layers(&self) {
        let sample = self.sample("foreign");
        self.spoil(&sample.blob(1), None);
        let kind = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip";
        let urls = ["https://elsewhere.example/layer"];
        let image = self.described(&sample, serde_json::json!({ "mediaType": kind, "urls": urls }));
        self.is_refused(&image, ["is a foreign one, which its registry need not have"; 2]).await;
    }

    /// The layer store's disk is full: Docker pulls without it.
    async fn a_full_layer_store(&self, docker: &PrivateDocker, folder: &Path) {
        let disk = Disk::mount(folder, "400k");
        let engine = storing(docker, &disk.0).await;
        self.pull(&engine, &self.sample("without").image).await.unwrap();
        let kept = Store::open(&disk.0, Bytes(64 << 20)).unwrap().bytes().0;
        assert!(kept < LAYER_BYTES as u64 / 2, "what filled the disk does not stay: {kept}");
    }
}

/// A disk of its own, in the test's mount namespace.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path, size: &str) -> Self {
        std::fs::create_dir_all(at).unwrap();
        run(&["mount", "-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", at.to_str().unwrap()]);
        Self(at.to_owned())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn run(words: &[&str]) {
    assert!(Command::new(words[0]).args(&words[1..]).status().unwrap().success(), "{words:?}");
}

/// Docker's own disk is full until there is room again.
async fn a_full_disk_of_docker(docker: &mut PrivateDocker, network: DaemonNetwork<'_>, folder: &Path) {
    docker.end("-KILL");
    let data = docker.data_root();
    std::fs::remove_dir_all(&data).unwrap();
    let disk = Disk::mount(&data, "1m");
    docker.resume(network);
    docker.client().await;
    let engines = [storing(docker, folder).await, Docker::new(docker.socket(), owner())];
    let trial = Trial { registry: Registry::start().await, engines };
    let large = trial.sample("large");
    trial.is_refused(&large.image, ["no space left on device; free some on the node's disk"; 2]).await;
    let fetched = large.sent(&trial.registry);
    let at = disk.0.display().to_string();
    run(&["mount", "-o", "remount,size=64m", &at]);
    trial.pull(&trial.engines[0], &large.image).await.unwrap();
    let again = large.sent(&trial.registry) - fetched;
    assert!(again < LAYER_BYTES, "the layer store kept what came: {again}");
    docker.end("-KILL");
}

#[tokio::test]
async fn what_is_wrong_with_images_and_disks_is_told_and_mended_by_the_next_pull() {
    if !edgeloom_prepare::lab_allowed(&["ip", "mount"]) {
        return;
    }
    use nix::sched::CloneFlags;
    nix::sched::unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).unwrap();
    run(&["mount", "--make-rprivate", "/"]);
    run(&["ip", "link", "set", "lo", "up"]);
    let trial = async {
        let network = DaemonNetwork { enter: ["nice", "-n0"], tables: "--iptables=false" };
        let Some(mut docker) = PrivateDocker::start(network) else { return };
        docker.client().await;
        let folder = tempfile::tempdir().unwrap();
        let engines =
            [storing(&docker, &folder.path().join("a")).await, Docker::new(docker.socket(), owner())];
        let trial = Trial { registry: Registry::start().await, engines };
        let version = trial.engines[0].version().await.unwrap().version;
        trial.broken_manifests().await;
        trial.a_missing_blob().await;
        trial.a_wrong_blob().await;
        trial.zstd_layers(version.split('.').next().unwrap().parse().unwrap()).await;
        trial.foreign_layers().await;
        trial.a_full_layer_store(&docker, &folder.path().join("b")).await;
        a_full_disk_of_docker(&mut docker, network, &folder.path().join("c")).await;
    };
    tokio::time::timeout(TRIAL_MAX, trial).await.expect("a daemon that hangs fails the test");
}

#[test]
fn a_line_in_pieces_has_one_time() {
    let mut lines = Lines::default();
    let out = |text: &str| LogOutput::StdOut { message: text.to_owned().into() };
    let err = |text: &str| LogOutput::StdErr { message: text.to_owned().into() };
    let pieces = [out("T1 a b"), err("T2 other\n"), out("T3 c\n"), out("T4 d\n"), err("T5 e\n")];
    let said: Vec<_> =
        pieces.into_iter().map(|piece| String::from_utf8(lines.once(piece)).unwrap()).collect();
    assert_eq!(said, ["T1 a b", "T2 other\n", "c\n", "T4 d\n", "T5 e\n"]);
}
