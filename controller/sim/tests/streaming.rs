//! The streaming experiment, small.

use edgeloom_sim::SimError;
use edgeloom_sim::streaming::{Execution, Experiment, Mix, Settings, run_streaming};
use std::sync::atomic::{AtomicUsize, Ordering};

const PROFILES: [&str; 5] = ["lr", "br", "tp", "otfs", "edgeloom"];

fn settings(seed_base: u64) -> Settings {
    let profiles = PROFILES.map(str::to_owned).to_vec();
    Settings { seeds: 2, seed_base, nodes: 8, jobs: 8, profiles, ..Settings::default() }
}

fn run(settings: &Settings) -> Result<Experiment, SimError> {
    run_streaming(settings, &Execution { threads: 2, progress: &|_| () })
}

fn without_timing(mut experiment: Experiment) -> String {
    experiment.timing.clear();
    serde_json::to_string(&experiment).unwrap()
}

#[test]
fn the_same_seeds_give_the_same_bytes_and_others_give_others() {
    let once = without_timing(run(&settings(1)).unwrap());
    let alone = run_streaming(&settings(1), &Execution { threads: 1, progress: &|_| () }).unwrap();
    assert_eq!(once, without_timing(alone));
    assert_ne!(once, without_timing(run(&settings(5)).unwrap()));
}

#[test]
fn every_profile_has_a_row_that_adds_up() {
    let experiment = run(&settings(1)).unwrap();
    let names: Vec<&str> = experiment.rows.iter().map(|row| row.profile.as_str()).collect();
    assert_eq!(names, PROFILES);
    assert_eq!(experiment.timing.len(), PROFILES.len());
    for row in &experiment.rows {
        assert!(row.items_per_s_mean > 0.0, "{row:?}");
        assert!(row.items_per_s_worst5 <= row.items_per_s_mean, "{row:?}");
        assert!(row.items_per_s_geomean <= row.items_per_s_mean, "{row:?}");
        assert!(row.ci95.values().all(Option::is_some), "{row:?}");
    }
}

#[test]
fn the_json_has_the_keys_that_machines_read() {
    let json = serde_json::to_value(run(&settings(1)).unwrap()).unwrap();
    for key in ["experiment", "seeds", "settings", "rows", "timing"] {
        assert!(json.get(key).is_some(), "{key}");
    }
    let means =
        ["items_per_s_mean", "items_per_s_geomean", "items_per_s_worst5", "wait_s_mean", "waiting_jobs"];
    for key in means.into_iter().chain(["migrations", "reroutes"]) {
        assert!(json["rows"][0][key].is_f64() && json["rows"][0]["ci95"][key].is_f64(), "{key}");
    }
    for key in ["mean", "geomean", "worst5", "wait"] {
        assert!(json["rows"][0]["ratio_to_otfs"][key]["mean"].is_f64(), "{key}");
    }
    assert!(json["timing"][0]["decision_ms_mean"].is_f64() && json["timing"][0]["decision_ms_max"].is_f64());
}

#[test]
fn placing_by_prediction_beats_one_node_for_all_on_slow_links() {
    let experiment = run(&settings(1)).unwrap();
    let mean = |name: &str| experiment.rows.iter().find(|row| row.profile == name).unwrap().items_per_s_mean;
    assert!(mean("edgeloom") > mean("lr"), "{} against {}", mean("edgeloom"), mean("lr"));
}

#[test]
fn ratios_are_those_of_single_seeds() {
    let both = run(&settings(1)).unwrap();
    let single = |seed: u64| run(&Settings { seeds: 1, ..settings(seed) }).unwrap();
    let ratio = |experiment: &Experiment| {
        let mean = |name: &str| experiment.rows.iter().find(|r| r.profile == name).unwrap().items_per_s_mean;
        mean("edgeloom") / mean("otfs")
    };
    let expected = f64::midpoint(ratio(&single(1)), ratio(&single(2)));
    let edgeloom = both.rows.last().unwrap().ratio_to_otfs.as_ref().unwrap();
    assert!((edgeloom.mean.mean - expected).abs() < 1e-9, "{edgeloom:?}, not {expected}");
    let otfs = both.rows[3].ratio_to_otfs.as_ref().unwrap();
    assert_eq!((otfs.mean.mean, otfs.wait.mean, otfs.mean.ci95), (1.0, 1.0, Some(0.0)));
}

#[test]
fn a_sweep_is_one_experiment_with_the_rows_of_each_point() {
    let sweep = Settings { sweep: Some("nodes=4,8".parse().unwrap()), ..settings(1) };
    let experiment = run(&sweep).unwrap();
    let points: Vec<Option<f64>> = experiment.rows.iter().map(|row| row.sweep).collect();
    assert_eq!(points, [[Some(4.0); 5], [Some(8.0); 5]].concat());
    let mut alone = run(&settings(1)).unwrap().rows;
    alone.iter_mut().for_each(|row| row.sweep = Some(8.0));
    assert_eq!(experiment.rows[5..], alone);
}

#[test]
fn progress_tells_of_every_run() {
    let told = AtomicUsize::new(0);
    let progress = |_: edgeloom_sim::streaming::Progress<'_>| {
        told.fetch_add(1, Ordering::Relaxed);
    };
    run_streaming(&settings(1), &Execution { threads: 2, progress: &progress }).unwrap();
    assert_eq!(told.into_inner(), 2 * PROFILES.len());
}

#[test]
fn the_papers_devices_have_room_for_more() {
    let equal = run(&Settings { nodes: 10, ..settings(1) }).unwrap();
    let table1 = run(&Settings { nodes: 10, mix: Mix::Table1, ..settings(1) }).unwrap();
    assert_ne!(equal.rows, table1.rows);
    assert!(table1.rows.iter().all(|row| row.waiting_jobs == 0.0));
}

#[test]
fn what_is_out_of_bounds_or_unknown_is_refused() {
    let refused = run(&Settings { seeds: 0, ..settings(1) });
    assert_eq!(refused, Err(SimError::Setting { setting: "seeds", value: 0.0, least: 1.0, most: 10_000.0 }));
    for bad in [f64::NAN, -1.0, 1.5, f64::INFINITY] {
        let refused = run(&Settings { floor: bad, ..settings(1) });
        assert!(matches!(refused, Err(SimError::Setting { setting: "floor", .. })), "{bad}");
    }
    let swept = Settings { sweep: Some("nodes=4,1".parse().unwrap()), ..settings(1) };
    assert!(matches!(run(&swept), Err(SimError::Setting { setting: "nodes", .. })));
    let named = |names: &[&str]| {
        let profiles = names.iter().map(|name| (*name).to_owned()).collect();
        run(&Settings { profiles, ..settings(1) }).unwrap_err().to_string()
    };
    assert!(named(&["chess"]).contains("one of: edgeloom"), "{}", named(&["chess"]));
    assert!(named(&["lr", "lr"]).contains("twice"));
    assert!(named(&[]).contains("at least one"));
}
