//! A real daemon pulls through the store from a registry of the test's own.

#[path = "../../../../blobs/tests/pulls/registry.rs"]
mod registry;

use super::super::private::{DaemonNetwork, PrivateDocker};
use super::*;
use crate::engine::ContainerEngine;
use crate::engine::fake::owner;
use bollard::query_parameters::ListImagesOptions;
use edgeloom_blobs::{Sources, Store};
use edgeloom_common::units::Bytes;
use registry::Registry;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tokio::net::TcpListener;

const LAYERS: usize = 4;
const LAYER_BYTES: usize = 600_000;
/// Many times what a daemon needs on a slow disk: a bound for one that never answers.
const TRIAL_MAX: Duration = Duration::from_secs(300);

/// What the registry has.
struct Image {
    image: ImageRef,
    layers: Vec<Digest>,
}

impl Image {
    /// Bytes of its layers that the registry sent so far.
    fn sent(&self, registry: &Registry) -> usize {
        self.layers.iter().map(|layer| registry.sent(layer)).sum()
    }
}

/// An image of layers that no other one has.
fn image(registry: &Registry, repository: &str) -> Image {
    let mut layers = Vec::new();
    for at in 0..LAYERS {
        let name = Digest::of(format!("{repository} {at}").as_bytes()).to_string();
        let mut seed = u64::from_str_radix(&name[7..23], 16).unwrap();
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as u8
        };
        let data: Vec<u8> = (0..LAYER_BYTES).map(|_| random()).collect();
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, format!("data-{at}"), data.as_slice()).unwrap();
        layers.push(archive.into_inner().unwrap());
    }
    let digests: Vec<Digest> = layers.iter().map(|layer| registry.hold(layer)).collect();
    let config = serde_json::json!({
        "architecture": "amd64", "os": "linux", "config": { "Cmd": ["/app"] },
        "rootfs": { "type": "layers", "diff_ids": digests.iter().map(ToString::to_string).collect::<Vec<_>>() },
    });
    let config = config.to_string();
    let named = |kind: &str, digest: &Digest, size: usize| serde_json::json!({ "mediaType": kind, "digest": digest.to_string(), "size": size });
    const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
    let layers: Vec<_> =
        digests.iter().zip(&layers).map(|(digest, layer)| named(LAYER, digest, layer.len())).collect();
    let manifest = serde_json::json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": named("application/vnd.oci.image.config.v1+json", &registry.hold(config.as_bytes()), config.len()),
        "layers": layers,
    });
    let digest = registry.hold(manifest.to_string().as_bytes());
    let repository = format!("{}/{repository}", registry.address);
    let image = ImageRef { name: format!("{repository}:1"), repository, digest: digest.to_string() };
    Image { image, layers: digests }
}

/// One life of the agent's side.
async fn engine(docker: &PrivateDocker, folder: &Path) -> Docker {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let store = Store::open(folder, Bytes(64 << 20)).unwrap();
    let sources = Sources::new("n1".parse().unwrap(), None);
    let proxy = Proxy::new(store, sources, listener.local_addr().unwrap());
    tokio::spawn(proxy.clone().serve(listener));
    let engine = Docker::new(docker.socket(), owner());
    engine.pull_through(proxy);
    engine
}

async fn names(engine: &Docker) -> Vec<String> {
    let images = engine.client().await.unwrap().list_images(None::<ListImagesOptions>).await.unwrap();
    images.into_iter().flat_map(|image| [image.repo_tags, image.repo_digests].concat()).collect()
}

async fn an_image_is_pulled_named_and_kept(docker: &PrivateDocker, folder: &Path) {
    let registry = Registry::start().await;
    let (engine, kept) = (engine(docker, folder).await, image(&registry, "kept"));
    let image = kept.image.clone();
    let (progress, _seen) = watch::channel(PullProgress::default());
    assert!(!engine.image_present(&image).await.unwrap());
    engine.pull(&image, None, &progress).await.unwrap();
    assert!(engine.image_present(&image).await.unwrap());
    assert!(progress.borrow().bytes_fetched() > (LAYERS * LAYER_BYTES) as u64);
    assert_eq!(engine.name_to_run(&image).await.unwrap(), tagged(&image).unwrap());
    let names = names(&engine).await;
    assert!(names.iter().all(|name| !name.contains("/pull/")), "{names:?}");
    let once = kept.sent(&registry);
    let client = engine.client().await.unwrap();
    client.remove_image(&tagged(&image).unwrap(), None::<RemoveImageOptions>, None).await.unwrap();
    assert!(!engine.image_present(&image).await.unwrap());
    engine.pull(&image, None, &progress).await.unwrap();
    assert_eq!(kept.sent(&registry), once, "Docker threw it away, the store did not");
}

async fn an_agent_that_dies_in_a_pull_costs_next_to_nothing(docker: &PrivateDocker, folder: &Path) {
    let registry = Registry::start().await;
    let resumed = image(&registry, "resumed");
    let image = resumed.image.clone();
    registry.state.lock().unwrap().pause = Duration::from_millis(1);
    let first = engine(docker, folder).await;
    let (progress, mut seen) = watch::channel(PullProgress::default());
    let half = (LAYERS * LAYER_BYTES / 2) as u64;
    tokio::select! {
        ended = first.pull(&image, None, &progress) => panic!("too fast: {ended:?}"),
        _ = seen.wait_for(|progress| progress.bytes_fetched() > half) => {}
    }
    drop(first);
    // The registry notices at its next piece that nobody reads.
    tokio::time::sleep(Duration::from_millis(500)).await;
    registry.state.lock().unwrap().pause = Duration::ZERO;
    let kept = Store::open(folder, Bytes(64 << 20)).unwrap().bytes().0;
    assert!(kept >= half, "{kept} of {half} bytes are kept");
    let before = resumed.sent(&registry);
    let second = engine(docker, folder).await;
    second.pull(&image, None, &progress).await.unwrap();
    let whole = (LAYERS * LAYER_BYTES) as u64;
    let again = (resumed.sent(&registry) - before) as u64;
    assert!(again < whole - half + whole / 20, "{again} bytes came after {kept} were kept");
    assert!(second.image_present(&image).await.unwrap());
}

async fn without_the_store_the_registry_itself_is_asked(docker: &PrivateDocker, folder: &Path) {
    let registry = Registry::start().await;
    let image = image(&registry, "direct").image;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    // Nothing fits into it, so each blob is refused.
    let store = Store::open(&folder.join("small"), Bytes(1000)).unwrap();
    let sources = Sources::new("n1".parse().unwrap(), None);
    let proxy = Proxy::new(store, sources, listener.local_addr().unwrap());
    tokio::spawn(proxy.clone().serve(listener));
    let engine = Docker::new(docker.socket(), owner());
    engine.pull_through(proxy);
    let (progress, _seen) = watch::channel(PullProgress::default());
    engine.pull(&image, None, &progress).await.unwrap();
    let direct = format!("{}@{}", image.repository, image.digest);
    assert_eq!(engine.name_to_run(&image).await.unwrap(), direct);
}

/// The daemon, the registry and the store have a loopback interface of their own.
#[tokio::test]
async fn docker_pulls_through_the_store() {
    if !edgeloom_prepare::lab_allowed(&["ip"]) {
        return;
    }
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
    assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
    let trial = async {
        let network = DaemonNetwork { enter: ["nice", "-n0"], tables: "--iptables=false" };
        let Some(mut docker) = PrivateDocker::start(network) else { return };
        docker.client().await;
        let folder = tempfile::tempdir().unwrap();
        an_image_is_pulled_named_and_kept(&docker, folder.path()).await;
        an_agent_that_dies_in_a_pull_costs_next_to_nothing(&docker, folder.path()).await;
        without_the_store_the_registry_itself_is_asked(&docker, folder.path()).await;
    };
    tokio::time::timeout(TRIAL_MAX, trial).await.expect("a daemon that hangs fails the test");
}
