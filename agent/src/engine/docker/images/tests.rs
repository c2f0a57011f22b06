//! What is known of layers foretells what a real daemon fetches from a registry of the test's own.

use super::super::private::{DaemonNetwork, PrivateDocker};
use super::super::samples::{LAYER_BYTES, Sample, sample};
use super::*;
use crate::engine::fake::owner;
use crate::engine::registry::Registry;
use crate::engine::{Changes, ContainerEngine, PullProgress};
use bollard::body_full;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    CreateContainerOptions, ImportImageOptions, RemoveContainerOptions, RemoveImageOptionsBuilder,
};
use edgeloom_blobs::Digest;
use edgeloom_common::desired::ImageRef;
use futures_util::StreamExt;
use std::process::Command;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Many times what a daemon needs on a slow disk: a bound for one that never answers.
const TRIAL_MAX: Duration = Duration::from_secs(300);

struct Site {
    registry: Registry,
    engine: Docker,
}

impl Site {
    async fn stored(&self) -> Stored {
        self.engine.version().await.unwrap().read_layers().unwrap()
    }

    async fn held(&self) -> LayerInventory {
        self.stored().await.layers
    }

    async fn pull(&self, image: &ImageRef) {
        let (progress, _seen) = watch::channel(PullProgress::default());
        self.engine.pull(image, None, &progress).await.unwrap();
    }

    /// Pulls it: so many of its layers arrive, and their bytes were foretold.
    async fn arrives(&self, sample: &Sample, layers: usize) {
        let (foretold, before) = (sample.missing(&self.held().await), sample.sent(&self.registry));
        self.pull(&sample.image).await;
        let came = sample.sent(&self.registry) - before;
        assert_eq!(foretold, came, "{}", sample.image.name);
        assert_eq!(came / LAYER_BYTES, layers, "{}: {came} bytes", sample.image.name);
        assert_eq!(sample.missing(&self.held().await), 0);
    }

    fn sample(&self, repository: &str, layers: &[&str]) -> Sample {
        sample(&self.registry, repository, layers, 0)
    }

    async fn remove(&self, name: &str) {
        let options = RemoveImageOptionsBuilder::new().force(true).build();
        self.engine.client().await.unwrap().remove_image(name, Some(options), None).await.unwrap();
    }
}

async fn shared_layers_come_only_above_the_first_missing_one(site: &Site) {
    site.arrives(&site.sample("a", &["base", "1", "2"]), 3).await;
    site.arrives(&site.sample("b", &["base", "1", "3"]), 1).await;
    site.arrives(&site.sample("c", &["base2", "2", "4"]), 3).await;
    site.arrives(&site.sample("d", &["base", "2", "5"]), 2).await;
    site.arrives(&site.sample("e", &["base2", "base", "1"]), 2).await;
    site.arrives(&sample(&site.registry, "packed", &["base", "1", "2"], 7), 3).await;
}

/// By its tag, as people pull.
async fn a_tag_that_was_pushed_anew_is_another_image(site: &Site) {
    let (old, new) = (site.sample("tag", &["base", "6"]), site.sample("tag", &["base", "7"]));
    let tagged = ImageRef { digest: "latest".to_owned(), ..old.image.clone() };
    let name = format!("{}:latest", tagged.repository);
    for sample in [&old, &new] {
        let manifest = sample.manifest.clone().into();
        site.registry.state.lock().unwrap().blobs.insert("latest".to_owned(), manifest);
        let before = sample.sent(&site.registry);
        let foretold = sample.missing(&site.held().await);
        let (progress, _seen) = watch::channel(PullProgress::default());
        super::super::streams::fetch(&site.engine, (&name, None), &progress).await.unwrap();
        assert_eq!(sample.sent(&site.registry) - before, foretold);
    }
    site.arrives(&old, 0).await;
}

async fn a_loaded_image_is_here_though_its_layers_come_again_with_others(site: &Site) {
    let (loaded, other) = (site.sample("loaded", &["8", "9"]), site.sample("other", &["8", "10"]));
    let body = body_full(loaded.archive().into());
    let client = site.engine.client().await.unwrap();
    let options = ImportImageOptions::default();
    client.import_image(options, body, None).for_each(|line| async move { drop(line.unwrap()) }).await;
    site.arrives(&loaded, 0).await;
    site.arrives(&other, 2).await;
}

async fn layers_that_only_a_container_holds_are_seen(site: &Site) {
    let (gone, other) = (site.sample("gone", &["11", "12"]), site.sample("heir", &["11", "13"]));
    site.arrives(&gone, 2).await;
    let client = site.engine.client().await.unwrap();
    let id = Digest::of(&gone.config).to_string();
    let body = ContainerCreateBody { image: Some(id.clone()), ..ContainerCreateBody::default() };
    let made = client.create_container(None::<CreateContainerOptions>, body).await.unwrap();
    site.remove(&id).await;
    site.arrives(&other, 1).await;
    client.remove_container(&made.id, None::<RemoveContainerOptions>).await.unwrap();
    site.remove(&Digest::of(&other.config).to_string()).await;
    site.arrives(&gone, 2).await;
}

/// Nothing is held here but by images.
async fn docker_tells_the_same_but_for_the_names_of_blobs(site: &Site) {
    let Stored { layers: read, bytes: on_disk } = site.stored().await;
    let told = site.engine.layers(ImageStore::Graphdriver).await.unwrap();
    let Stored { layers: told, bytes } = told;
    assert_eq!((&told.image_ids, &told.chain_ids), (&read.image_ids, &read.chain_ids));
    assert!(told.known_digests.is_empty() && told.manifests.len() > 5);
    assert!(bytes >= on_disk && on_disk > Bytes(0));
}

/// Pulled, removed, and freed by the end of a container that is not ours.
async fn changes_are_signalled(site: &Site) {
    let (containers, _signals) = mpsc::channel(1);
    let (images, mut changed) = watch::channel(0);
    let new = site.sample("signalled", &["14"]);
    let trial = async {
        changed.changed().await.unwrap();
        let before = site.held().await;
        site.pull(&new.image).await;
        changed.changed().await.unwrap();
        assert_eq!(site.held().await.image_ids.len(), before.image_ids.len() + 1);
        site.remove(&Digest::of(&new.config).to_string()).await;
        while site.held().await != before {
            changed.changed().await.unwrap();
        }
    };
    tokio::select! {
        () = trial => {}
        ended = site.engine.events(Changes { containers, images }) => panic!("the events ended: {ended:?}"),
    }
}

/// The daemon and the registry have a loopback interface of their own.
#[tokio::test]
async fn what_is_held_foretells_what_docker_fetches() {
    if !edgeloom_prepare::lab_allowed(&["ip"]) {
        return;
    }
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
    assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
    let trial = async {
        let network = DaemonNetwork { enter: ["nice", "-n0"], tables: "--iptables=false" };
        let Some(mut docker) = PrivateDocker::start(network) else { return };
        docker.client().await;
        let engine = Docker::new(docker.socket(), owner());
        let site = Site { registry: Registry::start().await, engine };
        shared_layers_come_only_above_the_first_missing_one(&site).await;
        a_tag_that_was_pushed_anew_is_another_image(&site).await;
        a_loaded_image_is_here_though_its_layers_come_again_with_others(&site).await;
        layers_that_only_a_container_holds_are_seen(&site).await;
        docker_tells_the_same_but_for_the_names_of_blobs(&site).await;
        changes_are_signalled(&site).await;
    };
    tokio::time::timeout(TRIAL_MAX, trial).await.expect("a daemon that hangs fails the test");
}

#[test]
fn images_are_counted_by_chain_and_by_the_digest_they_came_by() {
    let image = |id: &str, digests: &[&str]| ImageSummary {
        id: id.to_owned(),
        repo_digests: digests.iter().map(ToString::to_string).collect(),
        size: 10,
        ..ImageSummary::default()
    };
    let mut found = Gathered::default();
    let contents = ["sha256:a".to_owned(), "sha256:b".to_owned()];
    found.add(&image("sha256:1", &["r/x@sha256:m", "<none>@<none>"]), &contents, ImageStore::Graphdriver);
    found.add(&image("sha256:2", &[]), &contents[..1], ImageStore::Graphdriver);
    let Stored { layers: found, bytes } = found.stored();
    assert_eq!(found.image_ids, ["sha256:1", "sha256:2"]);
    assert_eq!(found.chain_ids.len(), 2);
    assert!(found.chain_ids.contains(&chain_id(Some("sha256:a"), "sha256:b")));
    assert!(found.known_digests.is_empty() && found.manifests.contains(&"sha256:m".to_owned()));
    assert_eq!(bytes, Bytes(20));
}

#[test]
fn content_is_where_the_containerd_in_use_keeps_it() {
    let root = Path::new("/srv/docker");
    let own = root.join("containerd/daemon");
    assert_eq!(content_dir(root, Some("/var/run/docker/containerd/containerd.sock")), own);
    assert_eq!(content_dir(root, Some("/run/containerd/containerd.sock")), Path::new(CONTAINERD));
}
