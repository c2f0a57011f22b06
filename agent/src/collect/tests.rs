//! A real daemon with a small budget for images.

use super::*;
use crate::config::{Bound, Scope};
use crate::engine::fake::{document, owner, spec};
use crate::engine::private::{DaemonNetwork, PrivateDocker};
use crate::engine::registry::Registry;
use crate::engine::samples::{LAYER_BYTES, sample};
use crate::engine::{ContainerEngine, NetworkSpec, PullProgress};
use bollard::Docker as Client;
use bollard::body_full;
use bollard::query_parameters::{CreateImageOptionsBuilder, TagImageOptionsBuilder};
use choose::DANGLING_MAX;
use edgeloom_common::desired::Prefetch;
use edgeloom_common::units::Bytes;
use futures_util::StreamExt;
use std::process::Command as Program;
use tempfile::TempDir;

/// Many times what a daemon needs on a slow disk: a bound for one that never answers.
const TRIAL_MAX: Duration = Duration::from_secs(300);
const BRIDGE: &str = "edgeloom-test";

struct Site {
    registry: Registry,
    engine: Arc<Docker>,
    client: Client,
    state: TempDir,
}

impl Site {
    /// Of images of one layer each, so many fit.
    fn collector(&self, high: usize, low: usize, scope: Scope) -> Collector {
        let layers = |count: usize| Bound::Bytes(Bytes((count * LAYER_BYTES + LAYER_BYTES / 2) as u64));
        let images = ImageSettings { high: layers(high), low: layers(low), scope };
        let state_dir = self.state.path().to_owned();
        Collector::new(Settings { engine: Arc::clone(&self.engine), state_dir, images, age_min_s: 0 })
    }

    async fn pull(&self, name: &str) -> ImageRef {
        let image = sample(&self.registry, name, &[name], 0).image;
        let (progress, _seen) = watch::channel(PullProgress::default());
        self.engine.pull(&image, None, &progress).await.unwrap();
        image
    }

    async fn here(&self, images: &[&ImageRef]) -> Vec<bool> {
        let mut here = Vec::new();
        for image in images {
            here.push(self.engine.image_present(image).await.unwrap());
        }
        here
    }

    async fn run(&self, image: &ImageRef) {
        let pool = document(1, vec![]).pool;
        self.engine.ensure_network(&NetworkSpec { bridge: BRIDGE.to_owned(), pool }).await.unwrap();
        let mut container = spec("runs", "h");
        container.image = image.clone();
        self.engine.create(&container, BRIDGE).await.unwrap();
    }
}

/// Times of last use count in seconds.
async fn a_second_later() {
    sleep(Duration::from_millis(1100)).await;
}

async fn the_least_used_go_and_what_is_needed_stays(site: &Site) {
    let [runs, assigned, pinned] =
        [site.pull("runs").await, site.pull("assigned").await, site.pull("pinned").await];
    let named = site.pull("named").await;
    let tag = TagImageOptionsBuilder::new().repo("mine").tag("1").build();
    let reference = format!("{}@{}", named.repository, named.digest);
    site.client.tag_image(&reference, Some(tag)).await.unwrap();
    site.run(&runs).await;
    let mut wanted = document(1, vec![]);
    wanted.images = vec![assigned.clone()];
    let [old, ahead] = [site.pull("old").await, sample(&site.registry, "ahead", &["ahead"], 0).image];
    wanted.prefetch = vec![
        Prefetch { image: pinned.clone(), pinned: true },
        Prefetch { image: ahead.clone(), pinned: false },
    ];
    let (in_force, document) = watch::channel(None);
    let mut collector = site.collector(6, 4, Scope::Own);
    assert_eq!(
        collector.pass(&document).await.unwrap(),
        Collection::default(),
        "nothing is known to be needless"
    );
    in_force.send_replace(Some(Arc::new(wanted)));
    assert!(collector.pass(&document).await.unwrap().is_tight);
    a_second_later().await;
    site.pull("ahead").await;
    assert!(collector.pass(&document).await.unwrap().removed.is_empty(), "it is not full yet");
    a_second_later().await;
    let young = site.pull("young").await;

    let (changed, images) = watch::channel(0);
    let (commands, mut told) = mpsc::channel(8);
    let running = tokio::spawn(collector.run(document.clone(), images, commands));
    changed.send_replace(1);
    let collection = loop {
        match told.recv().await.unwrap() {
            Command::Collected(collection) if !collection.removed.is_empty() => break *collection,
            _ => {}
        }
    };
    running.abort();
    let names: Vec<&str> = collection.removed.iter().map(|it| it.image.rsplit_once('@').unwrap().0).collect();
    assert_eq!(names, [&old, &ahead, &young].map(|image| image.repository.as_str()));
    assert!(collection.removed.iter().all(|it| it.freed == Bytes(LAYER_BYTES as u64)), "{collection:?}");
    assert!(collection.removed[0].why.contains("not used for"), "{collection:?}");
    assert_eq!((collection.let_go, collection.problem.as_str()), (vec![ahead.clone()], ""));
    assert!(!collection.is_tight);
    assert_eq!(site.here(&[&runs, &assigned, &pinned, &named]).await, [true; 4]);
    assert_eq!(site.here(&[&old, &ahead, &young]).await, [false; 3]);
    where_nothing_can_go_that_is_said_and_tried_no_more(site, &document, &named).await;
}

async fn where_nothing_can_go_that_is_said_and_tried_no_more(
    site: &Site,
    document: &InForce,
    named: &ImageRef,
) {
    let mut collector = site.collector(1, 0, Scope::Own);
    for _ in 0..2 {
        let collection = collector.pass(document).await.unwrap();
        assert!(collection.removed.is_empty() && collection.is_tight);
        assert!(collection.problem.contains("no image can go"), "{collection:?}");
    }
    assert_eq!(site.here(&[named]).await, [true]);
    let collection = site.collector(1, 0, Scope::All).pass(document).await.unwrap();
    assert_eq!(collection.removed.len(), 1);
    assert_eq!(site.here(&[named]).await, [false]);
    assert!(!collection.problem.is_empty());
}

async fn images_without_a_name_are_bounded(site: &Site) {
    let mut wanted = document(1, vec![spec("kept", "h")]);
    for at in 0..DANGLING_MAX + 2 {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        archive.append_data(&mut header, format!("file-{at}"), std::io::empty()).unwrap();
        let options = CreateImageOptionsBuilder::new().from_src("-").build();
        let body = body_full(archive.into_inner().unwrap().into());
        let lines: Vec<_> = site.client.create_image(Some(options), Some(body), None).collect().await;
        let id = lines.into_iter().find_map(|line| line.unwrap().status).unwrap();
        if at == 0 {
            wanted.containers[0].image =
                ImageRef { repository: String::new(), digest: id, name: String::new() };
        }
    }
    let kept = wanted.containers[0].image.clone();
    let (_in_force, document) = watch::channel(Some(Arc::new(wanted)));
    let mut collector = site.collector(1000, 999, Scope::Own);
    let collection = collector.pass(&document).await.unwrap();
    assert_eq!(collection.removed.len(), 2, "{collection:?}");
    assert!(collection.removed.iter().all(|it| it.why.contains("no name")));
    assert_eq!(site.here(&[&kept]).await, [true]);
    assert!(collector.pass(&document).await.unwrap().removed.is_empty());
}

/// The daemon and the registry have a loopback interface of their own.
#[tokio::test]
async fn images_go_when_the_disk_gets_full() {
    if !edgeloom_prepare::lab_allowed(&["ip"]) {
        return;
    }
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
    assert!(Program::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
    let trial = async {
        let network = DaemonNetwork { enter: ["nice", "-n0"], tables: "--iptables=false" };
        let Some(mut docker) = PrivateDocker::start(network) else { return };
        let client = docker.client().await;
        let engine = Arc::new(Docker::new(docker.socket(), owner()));
        let (registry, state) = (Registry::start().await, tempfile::tempdir().unwrap());
        let site = Site { registry, engine, client, state };
        the_least_used_go_and_what_is_needed_stays(&site).await;
        images_without_a_name_are_bounded(&site).await;
    };
    tokio::time::timeout(TRIAL_MAX, trial).await.expect("a daemon that hangs fails the test");
}
