//! A real daemon pulls through the store from a registry of the test's own.

use super::super::private::{DaemonNetwork, PrivateDocker};
use super::super::samples::{LAYER_BYTES, Sample, sample};
use super::*;
use crate::engine::ContainerEngine;
use crate::engine::fake::owner;
use crate::engine::registry::Registry;
use bollard::query_parameters::ListImagesOptions;
use edgeloom_blobs::{Sources, Store};
use edgeloom_common::units::Bytes;

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tokio::net::TcpListener;

const LAYERS: usize = 4;
/// Many times what a daemon needs on a slow disk: a bound for one that never answers.
const TRIAL_MAX: Duration = Duration::from_secs(300);

/// Of layers that no other image has.
fn image(registry: &Registry, repository: &str) -> Sample {
    let names: Vec<String> = (0..LAYERS).map(|at| format!("{repository}-{at}")).collect();
    sample(registry, repository, &names.iter().map(String::as_str).collect::<Vec<_>>(), 0)
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
