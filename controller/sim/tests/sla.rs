//! The experiment of the SLA classes: what the paper says of its figures and table.

use edgeloom_common::job::Service;
use edgeloom_sim::SimError;
use edgeloom_sim::sla::{Experiment, Pattern, Row, Settings, run_sla};
use std::sync::OnceLock;

/// Two seeds of everything, once for all tests.
fn whole() -> &'static Experiment {
    static WHOLE: OnceLock<Experiment> = OnceLock::new();
    WHOLE.get_or_init(|| run_sla(&Settings { seeds: 2, ..Settings::default() }, 2).unwrap())
}

fn row<'a>(experiment: &'a Experiment, pattern: Pattern, profile: &str) -> &'a Row {
    experiment.rows.iter().find(|row| row.pattern == pattern && row.profile == profile).unwrap()
}

#[test]
fn better_classes_get_more_cores_in_every_run() {
    let experiment = whole();
    for pattern in Pattern::ALL {
        let row = row(experiment, pattern, "sla");
        let [premium, advanced] = [row.mean_cores_premium, row.mean_cores_advanced].map(Option::unwrap);
        assert!(premium > advanced, "{pattern:?}: {premium} and {advanced}");
        let least = row.mean_cores_best_effort;
        assert_eq!(least.is_none(), pattern == Pattern::Google);
        assert!(least.is_none_or(|least| advanced > least), "{pattern:?}: {advanced} and {least:?}");
    }
}

#[test]
fn everything_is_executed_once_whoever_serves() {
    for row in &whole().rows {
        assert_eq!((row.never, row.order.len()), (0.0, 90), "{} {:?}", row.profile, row.pattern);
        let mut numbers: Vec<usize> = row.order.iter().map(|one| one.container).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 90);
        for one in &row.order {
            assert!(one.submitted_s <= one.started_s && one.started_s < one.ends_s, "{one:?}");
            assert_eq!(one.copies, one.service.level() as usize);
        }
    }
}

#[test]
fn all_at_once_the_better_class_is_first_and_lower_ones_fill_the_gaps() {
    let experiment = whole();
    let own = row(experiment, Pattern::AtOnce, "sla");
    let services: Vec<Service> = own.order.iter().map(|one| one.service).collect();
    assert_eq!(services[0], Service::Premium);
    let last = services.iter().rposition(|service| *service == Service::Premium).unwrap();
    assert!(services[..last].contains(&Service::BestEffort), "premium containers wait for their nodes");
    let first = |service: Service| services.iter().position(|other| *other == service).unwrap();
    assert!(first(Service::Premium) < first(Service::Advanced));
    assert!(first(Service::Advanced) < first(Service::BestEffort));
    let blocking = row(experiment, Pattern::AtOnce, "sla-blocking");
    let started: Vec<Service> = blocking.order.iter().map(|one| one.service).collect();
    assert!(started.is_sorted_by(|x, y| x >= y), "nobody passes the first one: {started:?}");
    assert!(own.makespan_s < blocking.makespan_s);
}

#[test]
fn the_same_seeds_give_the_same_bytes() {
    let bytes = |threads: usize| {
        let settings = Settings { seeds: 2, patterns: vec![Pattern::Google], ..Settings::default() };
        let mut experiment = run_sla(&settings, threads).unwrap();
        experiment.timing.clear();
        serde_json::to_string(&experiment).unwrap()
    };
    assert_eq!(bytes(1), bytes(2));
}

#[test]
fn the_json_has_the_keys_that_machines_read() {
    let json = serde_json::to_value(whole()).unwrap();
    assert_eq!(
        (json["experiment"].as_str(), json["rows"][0]["pattern"].as_str()),
        (Some("sla"), Some("at-once"))
    );
    for key in ["mean_cores_premium", "mean_cores_advanced", "mean_cores_best_effort"] {
        assert!(json["rows"][0][key].is_f64() && json["rows"][8]["ci95"].get(key).is_some(), "{key}");
    }
    assert_eq!(json["rows"][0]["order"][0]["service"].as_str(), Some("premium"));
    assert!(json["timing"][0]["decision_ms_max"].is_f64());
}

#[test]
fn what_is_out_of_bounds_is_refused() {
    let refused = |settings: Settings| run_sla(&settings, 1).unwrap_err();
    let setting = |error: SimError| match error {
        SimError::Setting { setting, .. } => setting,
        other => panic!("{other}"),
    };
    assert_eq!(setting(refused(Settings { seeds: 0, ..Settings::default() })), "seeds");
    assert_eq!(setting(refused(Settings { patterns: vec![], ..Settings::default() })), "patterns");
    let arrivals_s = Some(vec![1.0; 89]);
    assert_eq!(setting(refused(Settings { arrivals_s, ..Settings::default() })), "arrivals");
    let arrivals_s = Some(vec![f64::NAN; 90]);
    assert_eq!(setting(refused(Settings { arrivals_s, ..Settings::default() })), "arrival in seconds");
}
