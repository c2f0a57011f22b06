//! Predicted bytes against nodes that pull what their document lists, in its order.

use super::world::{World, inventory, observed};
use crate::known;
use crate::missing::{Blob, Layers};
use crate::model::Image;
use crate::nodes::NodeMessage;
use crate::owner::Order;
use edgeloom_common::desired::{DesiredState, ImageRef};
use edgeloom_common::ids::NodeId;
use edgeloom_common::report::{ImageStore, LayerInventory, PullState};
use edgeloom_common::units::Bytes;
use edgeloom_common::view::JobView;
use edgeloom_sched::pull::Held;
use std::collections::BTreeMap;

const CONFIG: u64 = 5;

/// Layers `base:1000 l1:200`: the number is the size.
fn image(name: &str) -> Image {
    let layers: &[(&str, u64)] = match name {
        "z" => &[("base", 1_000), ("l1", 200)],
        "a" => &[("base", 1_000), ("l1", 200), ("l2", 30)],
        "m" => &[("other", 7_000), ("l1", 200)],
        _ => &[("base", 1_000), ("l1", 200), ("l3", 4)],
    };
    let blob = |(name, size): &(&str, u64)| Blob { digest: format!("blob-{name}"), size: Bytes(*size) };
    let layers = Layers {
        config: Blob { digest: format!("config-{name}"), size: Bytes(CONFIG) },
        layers: layers.iter().map(blob).collect(),
        diff_ids: layers.iter().map(|(name, _)| format!("diff-{name}")).collect(),
    };
    let reference = ImageRef { repository: name.into(), digest: format!("sha256:{name}"), name: name.into() };
    Image { reference, platforms: BTreeMap::from([("amd64".to_owned(), layers)]) }
}

/// A job whose tasks `t0`, `t1`, ... run these images in a chain on n1.
fn order(name: &str, images: &[&str]) -> Order {
    let mut text = format!("kind: Job\nname: {name}\nsource: {{ node: n1, item: 1KB }}\ntasks:\n");
    for (index, image) in images.iter().enumerate() {
        let input = if index == 0 { "    inputs: [source]\n" } else { "" };
        let next = index + 1;
        let output =
            if next < images.len() { format!("    outputs: {{ t{next}: 1KB }}\n") } else { String::new() };
        text += &format!(
            "  t{index}:\n    image: {image}\n    resources: {{ cpu: 10m, memory: 16MiB }}\n    work: 1ms\n    \
             constraints: [\"node.name == n1\"]\n{input}{output}"
        );
    }
    let job = edgeloom_common::job::parse(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems:?}"));
    let images = job.tasks.iter().map(|(task, it)| (task.clone(), image(&it.program.image))).collect();
    Order { job, images }
}

/// A node's image store, which pulls what documents list.
struct Puller {
    held: Held,
    fetched: Vec<PullState>,
}

impl Puller {
    fn new(store: ImageStore) -> Self {
        Self { held: Held::new(store, &LayerInventory::default()), fetched: Vec::new() }
    }

    fn pull(&mut self, document: &DesiredState) {
        for listed in &document.images {
            let image = image(&listed.name);
            let layers = image.layers("x86_64").unwrap().image();
            if self.fetched.iter().all(|pull| pull.image != listed.name) {
                let bytes_fetched = self.held.fetch(&layers).bytes();
                let image = listed.name.clone();
                self.held.add(&layers);
                self.fetched.push(PullState {
                    image,
                    bytes_fetched,
                    bytes_total: None,
                    layers: 1,
                    took_ms: Some(1_000),
                    bytes_elsewhere: Bytes(0),
                    done: true,
                    error: String::new(),
                });
            }
        }
    }
}

fn predicted(view: &JobView) -> Vec<u64> {
    view.tasks.iter().map(|task| task.bytes_predicted).collect()
}

fn fetched(view: &JobView) -> Vec<u64> {
    view.tasks.iter().map(|task| task.bytes_fetched).collect()
}

#[test]
fn every_pull_fetches_what_was_predicted_for_it() {
    // Of `z` and `a` the one pulled first fetches the base; by name that would be `a`.
    let cases = [
        (ImageStore::Graphdriver, [1_205, 35, 7_205, 0], [9, 0]),
        (ImageStore::Containerd, [1_205, 35, 7_005, 0], [9, 0]),
    ];
    let n1: NodeId = "n1".parse().unwrap();
    for (store, first, second) in cases {
        let mut world = World::new();
        world.owner.observe(
            &n1,
            NodeMessage::Inventory(Box::new(edgeloom_common::report::Inventory { store, ..inventory() })),
        );
        let mut puller = Puller::new(store);
        let a = world.owner.submit(order("late-name", &["z", "a", "m", "z"])).unwrap();
        assert_eq!(predicted(&a), first, "{store:?}");
        // The second job comes while the first one's pulls run: the inventory does not show them yet.
        let b = world.owner.submit(order("early-name", &["n", "a"])).unwrap();
        assert_eq!(predicted(&b), second, "{store:?}");
        world.settle();
        for document in world.arrivals.iter().filter(|document| document.node == n1) {
            puller.pull(document);
        }
        let mut seen = observed(&world.held[&n1]);
        seen.pulls = puller.fetched;
        world.owner.observe(&n1, NodeMessage::Observed(seen));
        for (name, predicted) in [("late-name", first.as_slice()), ("early-name", second.as_slice())] {
            assert_eq!(fetched(&world.owner.job(&name.parse().unwrap()).unwrap()), predicted, "{store:?}");
        }
    }
}

#[test]
fn a_restart_keeps_the_order_of_pulls() {
    let mut world = World::new();
    world.owner.submit(order("late-name", &["z", "a"])).unwrap();
    world.owner.submit(order("early-name", &["n", "a"])).unwrap();
    let listed = |world: &World| -> Vec<String> {
        let wanted = world.owner.goal().documents;
        wanted[&"n1".parse::<NodeId>().unwrap()].images.iter().map(|image| image.name.clone()).collect()
    };
    assert_eq!(listed(&world), ["z", "a", "n"]);
    assert_eq!(listed(&world.restart()), ["z", "a", "n"]);
}

#[test]
fn blobs_of_a_manifest_that_a_node_pulled_are_known_there() {
    let mut world = World::new();
    world.owner.submit(order("some", &["z", "m"])).unwrap();
    let mut node = inventory();
    assert!(known::layers(world.owner.model(), &node).known_digests.is_empty());
    node.layers.manifests = vec!["sha256:z".to_owned(), "sha256:foreign".to_owned()];
    let known = known::layers(world.owner.model(), &node);
    assert_eq!(known.known_digests, ["blob-base", "blob-l1", "config-z"]);
}

#[test]
fn finished_pulls_are_held_against_their_predictions() {
    let n1: NodeId = "n1".parse().unwrap();
    let mut world = World::new();
    let job = world.owner.submit(order("job", &["z"])).unwrap();
    world.settle();
    let mut seen = observed(&world.held[&n1]);
    seen.pulls = vec![PullState {
        image: "z".to_owned(),
        bytes_fetched: Bytes(predicted(&job)[0] - CONFIG),
        bytes_total: None,
        layers: 2,
        took_ms: Some(1_500),
        bytes_elsewhere: Bytes(0),
        done: true,
        error: String::new(),
    }];
    for _ in 0..2 {
        world.owner.observe(&n1, NodeMessage::Observed(seen.clone()));
    }
    let view = world.owner.node(&n1, &world.owner.nodes.table[&n1]);
    assert_eq!((view.pulls.finished, view.pulls.exact), (1, 1));
    assert_eq!(world.owner.job(&"job".parse().unwrap()).unwrap().tasks[0].pull_s, Some(1.5));
    let lines = world.owner.question(&"job".parse().unwrap()).unwrap().answer().lines;
    let told = |line: &String| line.contains("image of task t0") && line.ends_with("came in 1.5 s");
    assert!(lines.iter().any(told), "{lines:?}");
}

#[test]
fn a_containerd_has_an_image_when_it_has_its_last_blob() {
    let (image, mut node) = (image("z"), inventory());
    let layers = image.layers(&node.architecture).unwrap();
    node.layers.known_digests = vec!["config-z".to_owned(), "blob-base".to_owned()];
    node.store = ImageStore::Containerd;
    assert!(!known::has_image(&node, layers));
    node.layers.known_digests.push("blob-l1".to_owned());
    assert!(known::has_image(&node, layers));
    node.store = ImageStore::Graphdriver;
    assert!(!known::has_image(&node, layers), "known blobs may have lost their layers");
    node.layers.image_ids.push("config-z".to_owned());
    assert!(known::has_image(&node, layers));
}
