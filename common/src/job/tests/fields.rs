//! Fields one by one: unknown, doubled, empty, or of no sense.

use super::{GOOD, accepted, task, wants, with_task_lines};
use crate::ids::SecretName;
use crate::job::Measure;

#[test]
fn what_this_version_does_not_carry_out_is_refused_not_ignored() {
    for field in ["gpu: 1", "devices: [a]", "depends_on: [b]", "restart: always"] {
        let name = field.split(':').next().unwrap();
        let text = with_task_lines(&format!("    {field}"));
        wants(&text, &[(6, &format!("tasks.a.{name}"), "not supported by this version; remove it")]);
    }
}

#[test]
fn a_doubled_name_is_refused_with_both_lines() {
    let text = "kind: Job\nname: j\ntasks:\n  a: { image: i }\n  b: { image: i }\n  a: { image: k }\n";
    wants(text, &[(6, "tasks.a", "first on line 4")]);
    let text = with_task_lines("    image: k");
    wants(&text, &[(6, "tasks.a.image", "is written twice, first on line 5")]);
}

#[test]
fn a_field_without_a_value_or_of_another_shape_is_told_once() {
    wants(&with_task_lines("    work:"), &[(6, "tasks.a.work", "has no value")]);
    wants("kind: Job\nname:\ntasks: { a: { image: i } }\n", &[(2, "name", "has no value")]);
    wants(&with_task_lines("    work: [1ms]"), &[(6, "tasks.a.work", "is a list, a single value is wanted")]);
    wants(&with_task_lines("    inputs: b"), &[(6, "tasks.a.inputs", "a list is wanted")]);
    wants("kind: Job\nname: j\ntasks:\n  a:\n", &[(4, "tasks.a", "is empty, a mapping is wanted")]);
    wants("kind: Job\nname: j\ntasks: {}\n", &[(3, "tasks", "there are 0 tasks")]);
}

#[test]
fn quantities_need_units_and_sense() {
    let cases = [
        ("cpu: 0", "below the least limit, 10m"),
        ("cpu: half", "positive number"),
        ("cpu: 1e9", "too large"),
        ("memory: 256", "needs a unit"),
        ("memory: 0MiB", "below the least limit"),
        ("storage: 1 gigabyte", "needs a unit"),
    ];
    for (line, part) in cases {
        let field = format!("tasks.a.resources.{}", line.split(':').next().unwrap());
        wants(&with_task_lines(&format!("    resources:\n      {line}")), &[(7, &field, part)]);
    }
    wants(
        &with_task_lines("    resources: { cpus: 1 }"),
        &[(6, "tasks.a.resources.cpus", "did you mean `cpu`?")],
    );
    wants(&GOOD.replace("30/s", "30"), &[(3, "source.rate", "it has to end in `/s`")]);
    wants(&GOOD.replace("600KB", "0B"), &[(3, "source.item", "at least one byte")]);
    wants(&GOOD.replace("track: 4KB", "track: 4"), &[(12, "tasks.detect.outputs.track", "needs a unit")]);
}

#[test]
fn command_and_environment_are_checked() {
    wants(&with_task_lines("    command: run it"), &[(6, "tasks.a.command", "a list is wanted")]);
    let long = format!("    command: [{}]", "x,".repeat(257));
    wants(&with_task_lines(&long), &[(6, "tasks.a.command", "at most 256")]);
    wants(&with_task_lines("    command: [\"a\\0b\"]"), &[(6, "tasks.a.command[0]", "NUL")]);
    let environment = "    environment:\n      EDGELOOM_JOB: x\n      2nd: x\n      EMPTY:\n      FINE: ''";
    wants(
        &with_task_lines(environment),
        &[
            (7, "tasks.a.environment.EDGELOOM_JOB", "set by the controller"),
            (8, "tasks.a.environment.2nd", "no name of a variable"),
            (9, "tasks.a.environment.EMPTY", "has no value"),
        ],
    );
    wants(&with_task_lines("    environment: [A=b]"), &[(6, "tasks.a.environment", "a mapping is wanted")]);
}

#[test]
fn a_measure_block_needs_a_command_and_a_number_of_items() {
    let text = with_task_lines("    measure: { command: [measure], items: 20 }");
    let measure = accepted(&text).tasks[&task("a")].measure.clone();
    assert_eq!(measure, Some(Measure { command: vec!["measure".to_owned()], items: 20 }));
    let cases = [
        ("{ items: 20 }", "command", "is missing"),
        ("{ command: [], items: 20 }", "command", "empty list"),
        ("{ command: run, items: 20 }", "command", "a list is wanted"),
        ("{ command: [run] }", "items", "is missing"),
        ("{ command: [run], items: 0 }", "items", "no number of items from 1 to 1000000"),
        ("{ command: [run], items: 1000001 }", "items", "no number of items"),
        ("{ command: [run], items: 2.5 }", "items", "no number of items"),
        ("{ command: [run], items: [20] }", "items", "a single value is wanted"),
        ("{ command: [run], items: 20, item: 1 }", "item", "did you mean `items`?"),
    ];
    for (block, field, part) in cases {
        let text = with_task_lines(&format!("    measure: {block}"));
        wants(&text, &[(6, &format!("tasks.a.measure.{field}"), part)]);
    }
}

#[test]
fn names_images_and_constraints_are_checked() {
    wants(
        "kind: Job\nname: j\ntasks:\n  source: { image: i }\n  A: { image: 'a b' }\n",
        &[
            (4, "tasks.source", "stands for the job's source"),
            (5, "tasks.A.image", "no image reference"),
            (5, "tasks.A", "may hold only"),
        ],
    );
    wants(
        &with_task_lines("    constraints:\n      - node.name == n1\n      - node.hostname == n1"),
        &[(8, "tasks.a.constraints[1]", "no attribute of a node")],
    );
    wants(&GOOD.replace("cam-1", "cam_1"), &[(3, "source.node", "may hold only")]);
}

#[test]
fn secrets_are_names_in_composes_short_form() {
    let job = accepted(&with_task_lines("    secrets: [camera-password, token]"));
    let names: Vec<&str> = job.tasks[&task("a")].program.secrets.iter().map(SecretName::as_str).collect();
    assert_eq!(names, ["camera-password", "token"]);
    wants(&with_task_lines("    secrets: password"), &[(6, "tasks.a.secrets", "a list is wanted")]);
    wants(&with_task_lines("    secrets: [a, a]"), &[(6, "tasks.a.secrets[1]", "listed twice")]);
    wants(&with_task_lines("    secrets: [../a]"), &[(6, "tasks.a.secrets[0]", "may hold only a-z")]);
    let long = with_task_lines("    secrets: [{ source: a, target: b }]");
    wants(&long, &[(6, "tasks.a.secrets[0]", "long form")]);
    let host = "kind: Job\nname: j\nsource: { node: n, item: 1KB, secrets: [a] }\ntasks: { a: { image: i, inputs: [source] } }\n";
    wants(host, &[(3, "source.secrets", "no container")]);
}
