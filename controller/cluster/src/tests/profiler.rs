//! What is surveyed, what is kept, and that every decision sees it.

use super::world::{NODES, World, inventory, with_images};
use crate::nodes::NodeMessage;
use crate::owner::Order;
use crate::profiler::{Run, SurveyRequest, Trial, Verdict, profiles};
use edgeloom_common::ids::NodeId;
use edgeloom_common::measure::Measured;
use edgeloom_common::units::{Bytes, MilliCores};

const ONCE: SurveyRequest = SurveyRequest { again: false, timeout_s: 60 };
const AGAIN: SurveyRequest = SurveyRequest { again: true, timeout_s: 60 };
const FIGURES: Measured = Measured { wall_s: 0.08, cpu_s: 0.02, memory_peak: Bytes(5_000_000) };

fn order(task: &str) -> Order {
    let text = format!(
        "kind: Job\nname: m\nsource: {{ node: n1, item: 10KB }}\ntasks:\n  detect:\n    image: r/app:1\n    \
         inputs: [source]\n    work: 10ms\n    measure: {{ command: [measure], items: 20 }}\n    {task}\n"
    );
    with_images(
        edgeloom_common::job::parse(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems:?}")),
    )
}

const LIMITED: &str = "resources: { cpu: 250m, memory: 32MiB }";

/// n1 and n2 are of one class, n3 computes twice as fast.
fn world() -> World {
    let mut world = World::new();
    for (name, class, core_speed) in [(NODES[0], "pi4", 1.0), (NODES[1], "pi4", 1.0), (NODES[2], "nano", 2.0)]
    {
        let inventory =
            edgeloom_common::report::Inventory { class: class.to_owned(), core_speed, ..inventory() };
        world.owner.observe(&name.parse().unwrap(), NodeMessage::Inventory(Box::new(inventory)));
    }
    world.settle();
    world
}

fn runs(trials: &[Trial]) -> Vec<(&str, &str)> {
    let run = |trial: &Trial| match &trial.verdict {
        Verdict::Run(_) => "run",
        Verdict::Kept(_) => "kept",
        Verdict::Refused(_) => "refused",
    };
    trials.iter().map(|trial| (trial.class.as_str(), run(trial))).collect()
}

fn run(trials: &[Trial], class: &str) -> Run {
    match &trials.iter().find(|trial| trial.class == class).unwrap().verdict {
        Verdict::Run(run) => (**run).clone(),
        other => panic!("{other:?}"),
    }
}

fn reason(trials: &[Trial]) -> &str {
    match &trials {
        [Trial { verdict: Verdict::Refused(reason), .. }] => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_class_is_measured_once_and_kept_until_the_image_changes() {
    let mut world = world();
    let mut job = order(LIMITED);
    let trials = world.owner.survey(&job, ONCE);
    assert_eq!(runs(&trials), [("nano", "run"), ("pi4", "run")]);
    let pi = run(&trials, "pi4");
    assert_eq!((pi.command.cpu, pi.command.memory), (MilliCores(250), Bytes(32 << 20)));
    assert_eq!((pi.command.items, pi.command.timeout_s), (20, 60));
    assert_eq!(pi.command.environment["EDGELOOM_WORK_NS"], "10000000");
    world.owner.keep_profile(&pi, &FIGURES).unwrap();
    assert_eq!(runs(&world.owner.survey(&job, ONCE)), [("nano", "run"), ("pi4", "kept")]);
    assert_eq!(runs(&world.owner.survey(&job, AGAIN)), [("nano", "run"), ("pi4", "run")]);
    let mut world = world.restart();
    world.connect();
    assert_eq!(world.owner.model().profiles.all().count(), 1, "it is in the journal");
    for image in job.images.values_mut() {
        image.reference.digest = "sha256:other".to_owned();
    }
    assert!(
        world
            .owner
            .survey(&job, ONCE)
            .iter()
            .all(|trial| matches!(trial.verdict, Verdict::Run(_) | Verdict::Refused(_)))
    );
}

#[test]
fn another_command_limit_or_declared_work_is_another_program() {
    let mut world = world();
    let trials = world.owner.survey(&order(LIMITED), ONCE);
    world.owner.keep_profile(&run(&trials, "pi4"), &FIGURES).unwrap();
    for other in [
        "resources: { cpu: 500m, memory: 32MiB }",
        "resources: { cpu: 250m, memory: 32MiB }\n    command: [other]",
        "resources: { cpu: 250m, memory: 32MiB }\n    environment: { MODEL: small }",
    ] {
        assert_eq!(
            runs(&world.owner.survey(&order(other), ONCE)),
            [("nano", "run"), ("pi4", "run")],
            "{other}"
        );
    }
}

#[test]
fn what_the_document_leaves_open_is_measured_without_its_limit() {
    let trials = world().owner.survey(&order("command: [app]"), ONCE);
    let command = run(&trials, "nano").command;
    assert_eq!((command.cpu, command.memory), (MilliCores(0), Bytes(1 << 29)));
}

#[test]
fn decisions_are_made_with_what_was_measured() {
    let mut world = world();
    let job = order(LIMITED);
    let trials = world.owner.survey(&job, ONCE);
    for class in ["nano", "pi4"] {
        world.owner.keep_profile(&run(&trials, class), &FIGURES).unwrap();
    }
    let items_per_s =
        |view: &edgeloom_common::view::JobView| view.prediction.as_ref().unwrap().items_per_s_predicted;
    let view = world.owner.submit(job).unwrap();
    // Declared: 10 ms of one core, a quarter of which it has. Measured: 80 ms.
    assert!(items_per_s(&view) < 13.0, "{}", items_per_s(&view));
    let record = &world.owner.model().jobs[&view.name];
    let found = &profiles(world.owner.model(), record)[&"detect".parse().unwrap()];
    let nano = found["nano"];
    assert!((nano.work_s - 0.04).abs() < 1e-12 && (nano.core_speed - 2.0).abs() < 1e-12, "{nano:?}");
    assert_eq!(found.len(), 2);
}

#[test]
fn where_nothing_can_be_measured_there_is_a_reason() {
    let mut world = world();
    let asked = |task: &str| world.owner.survey(&order(task), ONCE);
    let nowhere = asked("constraints: [\"node.name == n9\"]");
    assert_eq!(reason(&nowhere).matches("a constraint does not hold").count(), 3, "{nowhere:?}");
    let large = asked("resources: { cpu: 8, memory: 32MiB }");
    assert!(reason(&large).contains("n1: has 1000m CPU, 8000m wanted"), "{large:?}");
    let one = asked("constraints: [\"node.name == n2\"]");
    assert_eq!(runs(&one), [("pi4", "run")]);
    let mut other = order(LIMITED);
    for image in other.images.values_mut() {
        image.platforms =
            image.platforms.values().map(|layers| ("arm64".to_owned(), layers.clone())).collect();
    }
    assert!(reason(&world.owner.survey(&other, ONCE)).contains("no variant for x86_64"));
    world.owner.now_ms += 60_000;
    world.owner.tick();
    assert!(reason(&world.owner.survey(&order(LIMITED), ONCE)).contains("n1: node is not ready"));
}

#[test]
fn a_full_class_is_told_and_the_others_are_measured() {
    let mut world = world();
    let filled = order("resources: { cpu: 900m, memory: 32MiB }\n    constraints: [\"node.name == n3\"]");
    world.owner.submit(filled).unwrap();
    world.settle();
    let trials = world.owner.survey(&order(LIMITED), ONCE);
    assert_eq!(runs(&trials), [("nano", "refused"), ("pi4", "run")]);
    assert!(reason(&trials[..1]).contains("no room now: n3 has 100m CPU"), "{trials:?}");
}

#[test]
fn figures_without_sense_are_not_kept() {
    let mut world = world();
    let run = run(&world.owner.survey(&order(LIMITED), ONCE), "pi4");
    for (wall_s, cpu_s) in [(0.0, 1.0), (-1.0, 1.0), (f64::NAN, 1.0), (1.0, 0.0), (1.0, f64::INFINITY)] {
        assert_eq!(world.owner.keep_profile(&run, &Measured { wall_s, cpu_s, ..FIGURES }), None);
    }
    let gone = Run { node: "n9".parse::<NodeId>().unwrap(), ..run };
    assert_eq!(world.owner.keep_profile(&gone, &FIGURES), None);
}
