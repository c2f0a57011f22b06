//! The layers experiment, small.

use edgeloom_sim::SimError;
use edgeloom_sim::layers::{Choice, Experiment, Row, Settings, Store, run_layers};
use edgeloom_sim::streaming::Execution;

fn run(settings: &Settings) -> Result<Experiment, SimError> {
    run_layers(settings, &Execution { threads: 2, progress: &|_| () })
}

fn row<'e>(experiment: &'e Experiment, profile: &str) -> &'e Row {
    experiment.rows.iter().find(|row| row.profile == profile).unwrap()
}

#[test]
fn the_same_seeds_give_the_same_bytes_and_others_give_others() {
    let settings = Settings { seeds: 2, ..Settings::default() };
    let text = |settings: &Settings, threads: usize| {
        let mut experiment = run_layers(settings, &Execution { threads, progress: &|_| () }).unwrap();
        experiment.timing.clear();
        serde_json::to_string(&experiment).unwrap()
    };
    assert_eq!(text(&settings, 1), text(&settings, 2));
    assert_ne!(text(&settings, 2), text(&Settings { seed_base: 7, ..settings.clone() }, 2));
}

/// The order of the paper's Table I, and what this default promises.
#[test]
fn layers_save_bytes_and_the_balance_stays_between() {
    let experiment = run(&Settings::default()).unwrap();
    let [kube, layer, lrs, edgeloom] =
        ["kube", "layer", "lrs", "edgeloom"].map(|profile| row(&experiment, profile));
    assert!(lrs.bytes_fetched < 0.8 * kube.bytes_fetched, "{lrs:?} {kube:?}");
    assert!(layer.bytes_fetched <= lrs.bytes_fetched);
    assert!(lrs.seconds < kube.seconds && lrs.disk_bytes < kube.disk_bytes);
    assert!(kube.std <= lrs.std && lrs.std <= layer.std, "{} {} {}", kube.std, lrs.std, layer.std);
    // In so small a cluster `layer` is a hundredth above what a node with room for all would fetch.
    assert!(edgeloom.bytes_fetched <= 1.02 * layer.bytes_fetched, "{edgeloom:?} {layer:?}");
    assert!(edgeloom.std <= lrs.std, "{} {}", edgeloom.std, lrs.std);
    for row in &experiment.rows {
        assert_eq!((row.placed, row.evicted), (20.0, 0.0));
        assert_eq!(row.cumulative_bytes.last(), Some(&row.bytes_fetched));
        assert_eq!(row.bytes_fetched, row.disk_bytes);
    }
}

#[test]
fn with_more_nodes_and_containers_the_default_fetches_least() {
    let experiment = run(&Settings { nodes: 8, containers: 40, ..Settings::default() }).unwrap();
    let [layer, lrs, edgeloom] = ["layer", "lrs", "edgeloom"].map(|profile| row(&experiment, profile));
    assert!(edgeloom.bytes_fetched <= layer.bytes_fetched, "{edgeloom:?} {layer:?}");
    assert!(edgeloom.std <= lrs.std, "{} {}", edgeloom.std, lrs.std);
}

#[test]
fn nodes_that_share_layers_fetch_each_once() {
    let experiment = run(&Settings { images: Choice::Named, ..Settings::default() }).unwrap();
    for row in &experiment.rows {
        assert_eq!(row.bytes_shared, row.bytes_least);
        assert!(row.bytes_shared <= row.bytes_fetched);
        let ratios = row.ratio_to_kube.as_ref().unwrap();
        assert_eq!(ratios["bytes_shared"], ratios["bytes_least"]);
    }
}

/// The more nodes pull an image by themselves, the more of it they can have from each other.
#[test]
fn sharing_saves_more_the_more_nodes_there_are() {
    let shared = |nodes| {
        let profiles = vec!["kube".to_owned()];
        let settings = Settings { nodes, containers: 5 * nodes, seeds: 3, profiles, ..Settings::default() };
        let experiment = run(&settings).unwrap();
        row(&experiment, "kube").ratio_to_kube.as_ref().unwrap()["bytes_shared"].mean
    };
    let (few, many) = (shared(4), shared(40));
    assert!(many < 0.2 && many < few, "{few} {many}");
}

#[test]
fn a_small_disk_evicts_what_only_some_profiles_foresee() {
    let profiles = ["kube", "lrs"].map(str::to_owned).to_vec();
    let settings = Settings { containers: 60, disk_factor: 0.03, profiles, ..Settings::default() };
    let experiment = run(&settings).unwrap();
    let (kube, lrs) = (row(&experiment, "kube"), row(&experiment, "lrs"));
    assert!(kube.evicted > 0.0);
    assert_eq!(lrs.evicted, 0.0);
    assert!(kube.bytes_shared <= kube.bytes_least && kube.bytes_least == lrs.bytes_least);
    assert!(lrs.placed > kube.placed, "{} {}", lrs.placed, kube.placed);
}

#[test]
fn a_graph_driver_fetches_no_less_than_a_set_of_blobs() {
    let bytes = |store| run(&Settings { store, ..Settings::default() }).unwrap().rows[0].bytes_fetched;
    assert!(bytes(Store::Graphdriver) >= bytes(Store::Containerd));
}

#[test]
fn settings_out_of_bounds_are_refused() {
    let refused = |settings: Settings| matches!(run(&settings), Err(SimError::Setting { .. }));
    assert!(refused(Settings { nodes: 0, ..Settings::default() }));
    assert!(refused(Settings { containers: 0, ..Settings::default() }));
    assert!(refused(Settings { bandwidth_bps: f64::NAN, ..Settings::default() }));
    assert!(refused(Settings { sweep: Some("nodes=4,5000".parse().unwrap()), ..Settings::default() }));
}
