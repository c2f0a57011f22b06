//! The `sla` block: its words, what it makes of the tasks, and all of its problems at once.

use super::{accepted, task, wants};
use crate::job::{Service, Sla};

fn with(block: &str, tasks: &str) -> String {
    format!("kind: Job\nname: j\nsla:\n{block}tasks: {{ {tasks} }}\n")
}

#[test]
fn a_job_that_says_nothing_has_no_class_and_one_container_a_task() {
    let job = accepted("kind: Job\nname: j\ntasks: { a: { image: i } }\n");
    assert_eq!((job.sla, job.tasks.len()), (Sla::default(), 1));
    let text = serde_json::to_string(&job).unwrap();
    assert!(!text.contains("sla") && !text.contains("copy_of"), "what is left out is not written: {text}");
}

#[test]
fn classes_become_constraints_and_copies() {
    let block =
        "  satisfaction: best-effort\n  reputation: premium\n  resources: advanced\n  redundancy: premium\n";
    let job = accepted(&with(block, "a: { image: i }, b: { image: i, constraints: [\"node.name != n1\"] }"));
    assert_eq!(job.sla.satisfaction, Some(Service::BestEffort));
    assert_eq!(job.sla.resources, Some(Service::Advanced));
    let names: Vec<&str> = job.tasks.keys().map(crate::ids::TaskName::as_str).collect();
    assert_eq!(names, ["a", "a-2", "a-3", "b", "b-2", "b-3"]);
    assert_eq!(job.tasks[&task("b")].copy_of, None);
    assert_eq!(job.tasks[&task("b-3")].copy_of, Some(task("b")));
    assert_eq!(job.tasks[&task("b")].constraints, job.tasks[&task("b-3")].constraints);
    let text = serde_json::to_string(&job).unwrap();
    assert_eq!(serde_json::from_str::<crate::job::Job>(&text).unwrap(), job);
}

#[test]
fn a_node_without_a_word_on_its_reputation_is_average() {
    let holds = |service: Service, label: Option<&str>| {
        let job = accepted(&with(&format!("  reputation: {}\n", service.name()), "a: { image: i }"));
        let labels = label.map(|value| ("reputation".to_owned(), value.to_owned())).into_iter().collect();
        let node = "n1".parse().unwrap();
        let suits = crate::job::reputation(&labels) == service;
        let mut constraints = job.tasks[&task("a")].constraints.iter();
        assert_eq!(constraints.all(|constraint| constraint.holds(&node, &labels)), suits);
        suits
    };
    for label in [None, Some("average"), Some("high"), Some("low")] {
        let of = Service::ALL.map(|service| holds(service, label));
        let wanted = match label {
            Some("high") => [true, false, false],
            Some("low") => [false, false, true],
            _ => [false, true, false],
        };
        assert_eq!(of, wanted, "{label:?}");
    }
}

#[test]
fn every_problem_of_the_block_is_told_with_its_line() {
    let block = "  satisfaction: gold\n  reputation: [premium]\n  resources: premium\n  speed: premium\n";
    wants(
        &with(block, "a: { image: i, resources: { cpu: 1 } }"),
        &[
            (4, "sla.satisfaction", "\"gold\" is no service; write `premium`, `advanced` or `best-effort`"),
            (5, "sla.reputation", "is a list"),
            (6, "sla.resources", "every task names one; remove it"),
            (7, "sla.speed", "is no known field"),
        ],
    );
}

#[test]
fn copies_contradict_edges_a_total_and_names_that_are_taken() {
    let block = "  redundancy: advanced\n";
    let edges = "a: { image: i, outputs: { b: 1KB } }, b: { image: i }";
    wants(&with(block, edges), &[(4, "sla.redundancy", "would double the items")]);
    wants(
        &with(block, "a: { image: i }, a-2: { image: i }"),
        &[(4, "sla.redundancy", "a copy of a is named a-2")],
    );
    let long = format!("{}: {{ image: i }}", "a".repeat(62));
    wants(&with(block, &long), &[(4, "sla.redundancy", "too long for copies")]);
    let total = "kind: Job\nname: j\nresources: { memory: 100MiB }\nsla: { redundancy: advanced }\ntasks: { a: { image: i } }\n";
    wants(total, &[(3, "resources.memory", "ask for 134.22 MB together")]);
}
