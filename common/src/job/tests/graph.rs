//! The graph: edges, cycles and size.

use super::{GOOD, accepted, wants};
use crate::job::TASKS_MAX;
use std::fmt::Write;

#[test]
fn both_ends_of_an_edge_have_to_agree() {
    let text = "\
kind: Job
name: j
tasks:
  a: { image: i, outputs: { b: 1KB, a: 1KB, source: 1KB, tracc: 1KB } }
  b: { image: i, inputs: [track, a, a] }
  track: { image: i, inputs: [source], outputs: { c: 1KB } }
  c: { image: i, inputs: [] }
";
    wants(
        text,
        &[
            (4, "tasks.a.outputs.a", "sends to itself"),
            (4, "tasks.a.outputs.source", "takes no input"),
            (4, "tasks.a.outputs.tracc", "did you mean `track`?"),
            (5, "tasks.b.inputs[0]", "track has no output to b"),
            (5, "tasks.b.inputs[2]", "a is listed twice"),
            (6, "tasks.track.inputs", "reads `source`, but the job has none"),
            (7, "tasks.c.inputs", "track sends to c, but is not listed"),
        ],
    );
}

#[test]
fn with_a_source_every_first_task_has_to_read_it() {
    let text = GOOD.replace("    inputs: [source]\n", "");
    wants(&text, &[(5, "tasks.detect", "write `inputs: [source]`")]);
}

#[test]
fn each_cycle_is_named() {
    let text = "\
kind: Job
name: j
tasks:
  a: { image: i, outputs: { b: 1KB, z: 1B } }
  b: { image: i, outputs: { c: 1KB } }
  c: { image: i, outputs: { a: 1KB } }
  x: { image: i, outputs: { y: 1KB, a: 1KB } }
  y: { image: i, outputs: { x: 1KB } }
  z: { image: i }
";
    wants(
        text,
        &[
            (6, "tasks.c.outputs.a", "cycle: a -> b -> c -> a"),
            (8, "tasks.y.outputs.x", "cycle: x -> y -> x"),
        ],
    );
}

#[test]
fn a_thousand_tasks_are_read_and_one_more_is_refused() {
    let chain = |count: usize| {
        let mut text = String::from("kind: Job\nname: j\ntasks:\n");
        for index in 0..count {
            let next = (index + 1) % count;
            let outputs = if next > 0 { format!(", outputs: {{ t{next}: 1B }}") } else { String::new() };
            writeln!(text, "  t{index}: {{ image: i{outputs} }}").unwrap();
        }
        text
    };
    assert_eq!(accepted(&chain(TASKS_MAX)).tasks.len(), TASKS_MAX);
    wants(&chain(TASKS_MAX + 1), &[(3, "tasks", "there are 1001 tasks")]);
}
