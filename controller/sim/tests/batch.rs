//! Batch experiments, small.

use edgeloom_sim::SimError;
use edgeloom_sim::batch::{Experiment, Mix, Scenario, Settings, dump, frontier, run_batch};
use edgeloom_sim::plot::batch_svg;
use edgeloom_sim::streaming::Execution;
use serde::Deserialize;

fn settings(scenario: Scenario) -> Settings {
    Settings { scenario, seeds: 2, containers: 120, span_s: 2000.0, load: 1.3, ..Settings::default() }
}

fn run(settings: &Settings) -> Result<Experiment, SimError> {
    run_batch(settings, None, &Execution { threads: 2, progress: &|_| () })
}

fn row<'a>(experiment: &'a Experiment, name: &str) -> &'a edgeloom_sim::batch::Row {
    experiment.rows.iter().find(|row| row.profile == name).unwrap()
}

#[test]
fn the_same_seeds_give_the_same_bytes() {
    let bytes = |seed_base: u64| {
        let mut experiment = run(&Settings { seed_base, ..settings(Scenario::Online) }).unwrap();
        experiment.timing.clear();
        serde_json::to_string(&experiment).unwrap()
    };
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(3));
}

#[test]
fn every_scenario_has_a_row_for_every_profile_with_the_keys_that_machines_read() {
    for scenario in [Scenario::OneShot, Scenario::Online, Scenario::Drain] {
        let json = serde_json::to_value(run(&settings(scenario)).unwrap()).unwrap();
        assert_eq!(json["experiment"], "batch");
        for (row, timing) in json["rows"].as_array().unwrap().iter().zip(json["timing"].as_array().unwrap()) {
            let flow = row["profile"].as_str().unwrap().starts_with("ecsched");
            let once = scenario == Scenario::OneShot;
            assert!(row["scheduled"].is_f64() && row["utilisation"].as_f64().is_some_and(|part| part <= 1.0));
            assert_eq!(row["cost"].is_f64(), once && flow, "{row}");
            assert_eq!(timing["build_ms"].is_f64() && timing["solve_ms"].is_f64(), once && flow);
            for key in ["completion_s_mean", "completion_s_p99", "improvement", "completion_mean_to_kube"] {
                assert_eq!(row[key].is_null(), once, "{key}: {row}");
            }
        }
    }
}

#[test]
fn over_time_everything_is_done_and_who_goes_round_what_does_not_fit_is_done_sooner() {
    let experiment = run(&settings(Scenario::Online)).unwrap();
    assert!(experiment.rows.iter().all(|row| row.scheduled == 120.0));
    let mean = |name: &str| row(&experiment, name).completion_s_mean.unwrap();
    assert!(mean("kube") < mean("kube-blocking") && mean("edgeloom") < mean("kube-blocking"));
    let own = row(&experiment, "kube").completion_mean_to_kube.as_ref().unwrap();
    assert_eq!((own.mean, own.ci95), (1.0, Some(0.0)));
}

#[test]
fn the_frontier_marks_those_that_nobody_beats_in_both_figures() {
    let names = frontier();
    assert!(names.contains(&"edgeloom@10/21600".to_owned()) && names.contains(&"kube".to_owned()));
    let some = ["kube-blocking", "kube", "edgeloom", "edgeloom@1/3600", "edgeloom@1000000/1000000000"];
    let profiles = some.map(str::to_owned).to_vec();
    let experiment = run(&Settings { profiles, containers: 400, ..settings(Scenario::Online) }).unwrap();
    let figures =
        |row: &edgeloom_sim::batch::Row| (row.completion_s_mean.unwrap(), row.completion_s_p99.unwrap());
    let unbeaten = |row: &&edgeloom_sim::batch::Row| row.unbeaten == Some(true);
    let front: Vec<_> = experiment.rows.iter().filter(unbeaten).map(figures).collect();
    assert!(!front.is_empty() && !unbeaten(&row(&experiment, "kube-blocking")));
    for row in &experiment.rows {
        let (mean, p99) = figures(row);
        let beaten = experiment.rows.iter().map(figures).any(|other| other.0 < mean && other.1 < p99);
        assert_eq!(row.unbeaten, Some(!beaten), "{}", row.profile);
    }
    let profiles = ["kube", "edgeloom@1/3600", "edgeloom@1/7200"].map(str::to_owned).to_vec();
    let svg = batch_svg(&run(&Settings { profiles, ..settings(Scenario::Online) }).unwrap());
    assert!(svg.contains("points by patience") && svg.contains("ageing 1 s") && !svg.contains("NaN"));
}

/// What CP-SAT proved of the first seeds of the default settings, by `compare/most_placed.py`.
#[derive(Deserialize)]
struct MostPlaced {
    bounds: Vec<Bound>,
}

#[derive(Deserialize)]
struct Bound {
    /// Of all containers, in parts of 65536 of the largest machine.
    demand: [i64; 3],
    placed: u32,
    most: u32,
}

#[test]
fn the_default_places_within_four_percent_of_what_can_be_placed_at_all() {
    let MostPlaced { bounds } = serde_json::from_str(include_str!("data/most_placed.json")).unwrap();
    for (seed_base, bound) in (1..).zip(&bounds) {
        let one = Settings { seed_base, profiles: vec!["ecsched-dp".to_owned()], ..Settings::default() };
        let demand = dump(&one, None).unwrap().demand;
        let sum: [i64; 3] = std::array::from_fn(|at| demand.iter().map(|parts| parts[at]).sum());
        assert_eq!(sum, bound.demand, "the bound of seed {seed_base} is that of other containers");
        assert!(bound.placed <= bound.most);
    }
    let most = bounds.iter().map(|bound| f64::from(bound.most)).sum::<f64>() / bounds.len() as f64;
    let experiment = run(&Settings::default()).unwrap();
    assert_eq!((experiment.settings.seed_base, bounds.len()), (1, 10));
    let placed = row(&experiment, "edgeloom").scheduled;
    assert!(placed <= most && placed >= most * 0.96, "{placed} of at most {most}");
    assert!(placed > row(&experiment, "kube").scheduled);
}

#[test]
fn a_dump_has_every_feasible_arc_and_an_optimum_that_they_can_make() {
    let profiles = vec!["edgeloom".to_owned(), "ecsched-dp".to_owned()];
    let small = Settings {
        machines: 12,
        containers: 9,
        mix: Mix::Ec2,
        affinity: 0.0,
        profiles,
        ..Settings::default()
    };
    let dump = dump(&small, None).unwrap();
    assert_eq!((dump.machines, dump.containers, dump.unscheduled_cost), (12, 9, 0));
    let cheapest =
        |container| dump.arcs.iter().filter(|arc| arc.0 == container).map(|arc| arc.2).min().unwrap_or(0);
    assert!(dump.optimum >= (0..9).map(cheapest).sum() && dump.optimum < 0);
    for (container, machine, cost) in &dump.arcs {
        let pairs = dump.demand[*container].iter().zip(dump.availability[*machine]);
        assert_eq!(*cost, -1 - pairs.map(|(demand, free)| demand * free).sum::<i64>());
    }
    let none = Settings { profiles: vec!["kube".to_owned()], ..small };
    assert_eq!(edgeloom_sim::batch::dump(&none, None), Err(SimError::NoFlow));
}

#[test]
fn a_trace_is_read_and_a_line_that_does_not_read_is_named() {
    let once = Settings { profiles: vec!["edgeloom".to_owned()], seeds: 1, ..settings(Scenario::Online) };
    let read = |text: &str| run_batch(&once, Some(text), &Execution { threads: 1, progress: &|_| () });
    let experiment = read("time,duration,cpu,memory\n0,10,0.5,0.5\n3,10,1,1\n").unwrap();
    assert_eq!(experiment.rows[0].scheduled, 2.0);
    for line in ["1,2,3", "1,2,0.5,1.5", "1,-2,0.5,0.5", "x,2,0.5,0.5", "nan,2,0.5,0.5"] {
        let refused = read(&format!("0,10,0.5,0.5\n{line}\n")).unwrap_err();
        assert!(matches!(refused, SimError::Trace { line: 2, .. }), "{line}: {refused}");
    }
    assert_eq!(read("").unwrap().rows[0].scheduled, 0.0);
}

#[test]
fn what_is_out_of_bounds_or_unknown_is_refused() {
    assert!(matches!(
        run(&Settings { load: f64::NAN, ..settings(Scenario::Online) }),
        Err(SimError::Setting { .. })
    ));
    let wrong = ["chess", "edgeloom@-1", "edgeloom@nan", "edgeloom@1/", "edgeloom@1/2/3", "edgeloom@1/inf"];
    for names in wrong.map(|name| vec![name]).into_iter().chain([vec!["kube", "kube"], vec![]]) {
        let profiles = names.iter().map(|name| (*name).to_owned()).collect();
        assert!(run(&Settings { profiles, ..settings(Scenario::OneShot) }).is_err(), "{names:?}");
    }
    let profiles = vec!["edgeloom@60".to_owned()];
    assert!(run(&Settings { profiles, ..settings(Scenario::OneShot) }).is_ok());
}

#[test]
fn figures_have_a_panel_a_metric() {
    for (scenario, word) in [(Scenario::OneShot, "found room"), (Scenario::Online, "99th percentile")] {
        let svg = batch_svg(&run(&settings(scenario)).unwrap());
        assert!(svg.contains(word) && svg.contains("edgeloom") && !svg.contains("NaN"), "{scenario:?}");
    }
}
