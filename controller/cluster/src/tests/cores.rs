//! Limits of containers over simulated nodes, the real scheduler deciding: they follow class, company and use,
//! without a restart and without flapping.

use super::world::{NODES, World, with_images};
use crate::nodes::NodeMessage;
use crate::owner::Order;
use edgeloom_common::ids::JobName;
use edgeloom_common::report::{Report, TaskUse};
use edgeloom_common::units::{BitRate, Bytes, MilliCores};
use std::collections::BTreeMap;

/// Jobs of one task on n2, which has 1000m, with what each would use if it could.
struct Shop {
    world: World,
    wish: BTreeMap<&'static str, u32>,
}

fn order(name: &str, (profile, resources): (&str, &str)) -> Order {
    let text = format!(
        "kind: Job\nname: {name}\nprofile: {profile}\nsla: {{ resources: {resources} }}\n\
         tasks:\n  work:\n    image: r/app:1\n    resources: {{ memory: 16MiB }}\n    constraints: [\"node.name == n2\"]\n"
    );
    with_images(
        edgeloom_common::job::parse(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems:?}")),
    )
}

impl Shop {
    fn new() -> Self {
        Self { world: World::new(), wish: BTreeMap::new() }
    }

    fn add(&mut self, name: &'static str, terms: (&str, &str)) {
        self.world.owner.submit(order(name, terms)).unwrap();
        self.world.settle();
        self.wish.insert(name, 1000);
    }

    fn remove(&mut self, name: &str) {
        self.wish.remove(name);
        self.world.owner.stop(&name.parse().unwrap()).unwrap();
        self.world.settle();
    }

    fn cores(&self, name: &str) -> u32 {
        let view = self.world.owner.job(&name.parse().unwrap()).unwrap();
        view.tasks.iter().map(|task| task.cpu_millicores).sum()
    }

    /// The limit that n2 was told.
    fn told(&self, name: &str) -> u32 {
        let document = &self.world.held[&"n2".parse().unwrap()];
        document.containers.iter().find(|spec| spec.job.as_str() == name).unwrap().cpu.0
    }

    /// Seconds pass; containers use what they wish and may.
    fn pass(&mut self, seconds: u64) {
        for second in 0..u32::try_from(seconds).unwrap() {
            let one = |(name, wish): (&&'static str, &u32)| TaskUse {
                job: name.parse().unwrap(),
                task: "work".parse().unwrap(),
                // A little less than the limit at times, as a kernel counts.
                cpu: MilliCores((*wish).min(self.cores(name) - self.cores(name) * (second % 3) / 100)),
                memory: Bytes(0),
                received: BitRate(0),
                sent: BitRate(0),
            };
            let busy = Report { tasks: self.wish.iter().map(one).collect(), ..Report::default() };
            for name in NODES {
                let report = if name == "n2" { busy.clone() } else { Report::default() };
                self.world.owner.observe(&name.parse().unwrap(), NodeMessage::Report(report));
            }
            self.world.pass(1_000);
            self.world.settle();
        }
    }

    fn events(&self, name: &str, kind: &str) -> Vec<String> {
        let job: JobName = name.parse().unwrap();
        let all = self.world.owner.events.after(0, Some(&job));
        all.into_iter().filter(|event| event.kind == kind).map(|event| event.text).collect()
    }
}

#[test]
fn a_container_that_uses_little_gives_and_gets_it_back_when_it_is_held_by_its_limit() {
    let mut shop = Shop::new();
    shop.add("a", ("sla", "premium"));
    assert_eq!(shop.cores("a"), 1000);
    let hash = |shop: &Shop| shop.world.held[&"n2".parse().unwrap()].containers[0].spec_hash.clone();
    let before = hash(&shop);
    shop.wish.insert("a", 600);
    shop.pass(90);
    assert_eq!((shop.cores("a"), shop.told("a")), (750, 750));
    assert_eq!(
        shop.events("a", "resized"),
        ["work on n2 gets 750m CPU instead of 1000m: it used 0.60 of 1.00 cores"]
    );
    shop.wish.insert("a", 1000);
    shop.pass(30);
    assert_eq!((shop.cores("a"), shop.told("a")), (1000, 1000));
    let told = shop.events("a", "resized").pop().unwrap();
    assert!(told.starts_with("work on n2 gets 1000m CPU instead of 750m: it used 0.7"), "{told}");
    assert_eq!(hash(&shop), before, "limits are no part of what a container is");
}

#[test]
fn others_that_come_and_go_change_limits_at_once() {
    let mut shop = Shop::new();
    shop.add("a", ("sla", "advanced"));
    assert_eq!(shop.cores("a"), 666);
    shop.add("b", ("sla", "advanced"));
    assert_eq!((shop.cores("a"), shop.cores("b")), (500, 500), "{:?}", shop.events("a", "changed"));
    assert!(shop.events("a", "changed")[0].contains("work gets 500m CPU instead of 666m"));
    assert!(shop.events("b", "waiting").is_empty());
    shop.remove("b");
    shop.pass(1);
    assert_eq!((shop.cores("a"), shop.told("a")), (666, 666));
}

#[test]
fn a_class_counts_under_other_profiles_and_idle_cores_go_to_it() {
    for profile in ["edgeloom", "kube", "otfs"] {
        let mut shop = Shop::new();
        shop.add("a", (profile, "best-effort"));
        shop.pass(20);
        assert_eq!(shop.cores("a"), 333, "{profile}");
        shop.wish.insert("a", 40);
        shop.pass(90);
        assert_eq!(shop.cores("a"), 100, "{profile}: never below what it asks for");
    }
}

#[test]
fn what_one_gives_another_gets() {
    let mut shop = Shop::new();
    shop.add("a", ("sla", "advanced"));
    shop.add("b", ("sla", "advanced"));
    shop.wish.insert("a", 200);
    shop.pass(100);
    assert_eq!((shop.cores("a"), shop.cores("b")), (334, 666));
}

#[test]
fn ten_minutes_of_noise_change_no_limit() {
    let mut shop = Shop::new();
    shop.add("a", ("sla", "premium"));
    shop.wish.insert("a", 600);
    shop.pass(90);
    let (limit, told) = (shop.cores("a"), shop.world.arrivals.len());
    for second in 0..600_u32 {
        shop.wish.insert("a", 560 + (second % 7 + second % 11) * 5);
        shop.pass(1);
    }
    assert_eq!((shop.cores("a"), shop.world.arrivals.len()), (limit, told));
}

#[test]
fn bursts_do_not_flap() {
    let mut shop = Shop::new();
    shop.add("a", ("sla", "premium"));
    for turn in 0..40 {
        shop.wish.insert("a", if turn % 2 == 0 { 300 } else { 1000 });
        shop.pass(90);
    }
    let changes = shop.events("a", "resized").len();
    assert!((2..=4).contains(&changes), "{changes} in an hour");
}

#[test]
fn a_controller_that_starts_again_changes_no_limit() {
    let mut shop = Shop::new();
    shop.add("a", ("sla", "premium"));
    shop.wish.insert("a", 600);
    shop.pass(90);
    let mut world = shop.world.restart();
    world.owner.tick();
    world.connect();
    world.settle();
    let mut shop = Shop { world, ..shop };
    shop.pass(200);
    assert_eq!((shop.cores("a"), shop.events("a", "resized").len()), (750, 0));
    shop.wish.insert("a", 1000);
    shop.pass(30);
    assert_eq!(shop.cores("a"), 1000);
}
