//! The streaming experiment, small.

use edgeloom_sim::streaming::{Experiment, Settings, run_streaming};
use edgeloom_sim::{SimError, run};

fn small(seed_base: u64) -> Experiment {
    let settings = Settings { seeds: 2, seed_base, nodes: 8, jobs: 8, ..Settings::default() };
    run_streaming(&settings).unwrap()
}

fn without_timing(mut experiment: Experiment) -> String {
    experiment.timing.clear();
    serde_json::to_string(&experiment).unwrap()
}

#[test]
fn the_same_seeds_give_the_same_bytes_and_others_give_others() {
    let once = without_timing(small(1));
    assert_eq!(once, without_timing(small(1)));
    assert_ne!(once, without_timing(small(5)));
}

#[test]
fn every_profile_has_a_row_that_adds_up() {
    let experiment = small(1);
    let names: Vec<&str> = experiment.rows.iter().map(|row| row.profile.as_str()).collect();
    assert_eq!(names, ["edgeloom", "otfs", "tp", "br", "lr"]);
    for row in &experiment.rows {
        assert!(row.items_per_s_mean > 0.0, "{row:?}");
        assert!(row.items_per_s_worst5 <= row.items_per_s_mean, "{row:?}");
        assert!(row.items_per_s_geomean <= row.items_per_s_mean, "{row:?}");
    }
}

#[test]
fn placing_by_prediction_beats_one_node_for_all_on_slow_links() {
    let experiment = small(1);
    let mean = |name: &str| experiment.rows.iter().find(|row| row.profile == name).unwrap().items_per_s_mean;
    assert!(mean("edgeloom") > mean("lr"), "{} against {}", mean("edgeloom"), mean("lr"));
}

#[test]
fn unknown_experiments_and_no_seeds_are_refused() {
    assert_eq!(run("chess", 1, 1), Err(SimError::Kind { kind: "chess".to_owned() }));
    let refused = run("streaming", 0, 1);
    assert_eq!(refused, Err(SimError::Setting { setting: "seeds", value: 0, least: 1, most: 10_000 }));
}
