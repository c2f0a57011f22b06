//! The job's stated total of memory against what its containers ask for.

use super::{accepted, task, wants};
use crate::job::MEMORY_DEFAULT;
use crate::units::Bytes;

/// Two tasks, one of 100 MiB and one that names no memory, under the given total on line 3.
fn with_total(total: &str) -> String {
    format!(
        "kind: Job\nname: j\nresources: {total}\ntasks:\n  a: {{ image: i, resources: {{ memory: 100MiB }} }}\n  b: {{ image: i }}\n"
    )
}

#[test]
fn a_total_that_the_tasks_just_reach_is_kept_to() {
    let job = accepted(&with_total("{ memory: 164MiB }"));
    let left_open = job.tasks[&task("b")].program.resources;
    assert_eq!(left_open.memory, MEMORY_DEFAULT);
    assert!(!left_open.memory_sized, "a measured peak could lift the sum over the total");
    let free = accepted(&with_total("{ memory: 164MiB }").replace("resources: { memory: 164MiB }\n", ""));
    assert!(free.tasks[&task("b")].program.resources.memory_sized);
    assert_eq!(free.tasks[&task("a")].program.resources.memory, Bytes(100 << 20));
}

#[test]
fn a_total_below_the_tasks_sum_is_refused_with_what_would_do() {
    let text = with_total("{ memory: 171.9MB }");
    wants(
        &text,
        &[(3, "resources.memory", "together (a 104.86 MB, b 67.11 MB), over the total of 171.9 MB")],
    );
    wants(&text, &[(3, "resources.memory", "write at least `164MiB`, or lower the tasks' memory")]);
    accepted(&with_total("{ memory: 164MiB }"));
}

#[test]
fn the_source_counts_and_other_problems_are_told_beside() {
    let text = "kind: Job\nname: j\nresources:\n  memory: 100MiB\nsource: { node: n, image: i, item: 1KB, resources: { memory: 50MiB } }\n\
                tasks:\n  a: { image: i, inputs: [source], wrk: 1ms }\n";
    wants(
        text,
        &[(4, "resources.memory", "write at least `114MiB`"), (7, "tasks.a.wrk", "did you mean `work`?")],
    );
}

#[test]
fn a_total_says_memory_and_nothing_else() {
    wants(
        &with_total("{ cpu: 1 }"),
        &[(3, "resources.cpu", "no known field"), (3, "resources.memory", "is missing")],
    );
    wants(&with_total("4GiB"), &[(3, "resources", "a mapping is wanted")]);
    wants(&with_total("{ memory: 4 }"), &[(3, "resources.memory", "needs a unit")]);
}
