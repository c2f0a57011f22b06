//! `kind: Batch`.

use super::{accepted, refused, task, wants};
use crate::ids::TaskName;
use crate::job::{Kind, RETRIES_DEFAULT, Until};

/// A batch whose tasks begin on line 4.
fn batch(tasks: &str) -> String {
    format!("kind: Batch\nname: sweep\ntasks:\n{tasks}")
}

const TWO: &str = "  prepare: { image: i, retries: 1 }
  work:
    image: i
    command: [\"/app\"]
    environment: { LEVEL: info }
    count: 3
    depends_on: { prepare: succeeded }
";

#[test]
fn a_count_becomes_tasks_that_know_their_number() {
    let job = accepted(&batch(TWO));
    let names: Vec<&str> = job.tasks.keys().map(TaskName::as_str).collect();
    assert_eq!(names, ["prepare", "work-1", "work-2", "work-3"]);
    assert_eq!((job.kind, job.source.is_none()), (Kind::Bag, true));
    let first = job.tasks[&task("prepare")].run.clone().unwrap();
    assert_eq!((first.of, first.retries, first.depends_on.len()), (task("prepare"), 1, 0));
    let last = &job.tasks[&task("work-3")];
    let told = |name: &str| last.program.environment.get(name).map(String::as_str);
    assert_eq!(
        (told("EDGELOOM_INDEX"), told("EDGELOOM_COUNT"), told("LEVEL")),
        (Some("3"), Some("3"), Some("info"))
    );
    let run = last.run.clone().unwrap();
    assert_eq!((run.of, run.retries), (task("work"), RETRIES_DEFAULT));
    assert_eq!(run.depends_on.into_iter().collect::<Vec<_>>(), [(task("prepare"), Until::Succeeded)]);
}

#[test]
fn a_gang_starts_together_and_keeps_its_rules() {
    let text = "kind: Batch\nname: g\ngang: true\ntasks:\n  a: { image: i, affinity: { with: [b] } }\n  b: { image: i }\n";
    let job = accepted(text);
    assert_eq!(job.kind, Kind::Batch);
    assert_eq!(job.tasks[&task("a")].placement.affinity.required.len(), 1);
}

#[test]
fn what_makes_a_pipeline_is_no_field_of_a_batch() {
    let text = batch("  a:\n    image: i\n    inputs: [source]\n    outputs: { b: 1KB }\n    work: 1ms\n");
    let wanted = ["inputs", "outputs", "work"].map(|name| format!("tasks.a.{name}"));
    let wanted: Vec<_> =
        (6..).zip(&wanted).map(|(line, field)| (line, field.as_str(), "no known field")).collect();
    wants(&text, &wanted);
    let text = "kind: Batch\nname: s\nsource: { node: n1, item: 1KB }\ntasks:\n  a: { image: i }\n";
    wants(text, &[(3, "source", "no known field")]);
    let text = "kind: Job\nname: s\ntasks:\n  a: { image: i, count: 3 }\n";
    wants(text, &[(4, "tasks.a.count", "no known field")]);
}

#[test]
fn numbers_are_bounded() {
    let text =
        batch("  a:\n    image: i\n    count: 0\n    retries: 101\n  b:\n    image: i\n    count: many\n");
    wants(
        &text,
        &[
            (6, "tasks.a.count", "no number from 1 to 1000"),
            (7, "tasks.a.retries", "no number from 0 to 100"),
            (10, "tasks.b.count", "write a whole number"),
        ],
    );
    let text = batch("  a:\n    image: i\n    count: 600\n  b:\n    image: i\n    count: 401\n");
    wants(&text, &[(6, "tasks.a.count", "there are 1001 containers")]);
}

#[test]
fn every_container_has_a_name_of_its_own() {
    let text = batch("  a:\n    image: i\n    count: 2\n  a-2: { image: i }\n");
    wants(&text, &[(6, "tasks.a.count", "container 2 is named a-2, as another task is")]);
    let long = "a".repeat(60);
    let text = batch(&format!("  {long}:\n    image: i\n    count: 1000\n"));
    wants(&text, &[(6, &format!("tasks.{long}.count"), "too long for numbers")]);
}

#[test]
fn conditions_name_other_tasks_and_form_no_cycle() {
    let text = batch(
        "  a:\n    image: i\n    depends_on: { b: succeeded, a: started, c: finished }\n  b:\n    image: i\n    depends_on: { a: healthy }\n",
    );
    let problems = refused(&text);
    let said: Vec<String> = problems.iter().map(|item| format!("{} {}", item.field, item.problem)).collect();
    assert!(said.contains(&"tasks.a.depends_on.a the task depends on itself".to_owned()), "{said:?}");
    assert!(said.contains(&"tasks.a.depends_on.c there is no task c".to_owned()), "{said:?}");
    assert!(said.contains(&"tasks.b.depends_on.a \"healthy\" is no condition".to_owned()), "{said:?}");
    let text = batch(
        "  a:\n    image: i\n    depends_on: { b: succeeded }\n  b:\n    image: i\n    depends_on: { a: finished }\n",
    );
    wants(&text, &[(6, "tasks.a.depends_on.b", "the tasks wait for each other: a -> b -> a")]);
}

#[test]
fn an_order_contradicts_a_gang_and_names_contradict_tasks_of_their_own() {
    let text = "kind: Batch\nname: g\ngang: true\ntasks:\n  a: { image: i, depends_on: { b: started } }\n  b: { image: i }\n";
    wants(text, &[(5, "tasks.a.depends_on.b", "all tasks start together")]);
    let text = batch("  a: { image: i, anti_affinity: { with: [b] } }\n  b: { image: i }\n");
    wants(&text, &[(4, "tasks.a.anti_affinity.with[0]", "write `gang: true`")]);
    let text = "kind: Batch\nname: g\ngang: true\ntasks:\n  a: { image: i, affinity: { with: [b] } }\n  b: { image: i, count: 2 }\n";
    wants(text, &[(5, "tasks.a.affinity.with[0]", "several containers")]);
}

#[test]
fn a_batch_runs_once() {
    let text = format!("{}sla: {{ redundancy: premium }}\n", batch("  a: { image: i }\n"));
    wants(&text, &[(5, "sla.redundancy", "a batch runs it once")]);
    let text = format!("{}sla: {{ reputation: premium }}\n", batch("  a: { image: i }\n"));
    assert_eq!(accepted(&text).tasks[&task("a")].constraints.len(), 1);
}
