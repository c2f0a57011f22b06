//! The document's promises: what is read, and every refusal with its line, field and words.

mod batch;
mod disconnect;
mod fields;
mod graph;
mod hostile;
mod hosting;
mod reading;
mod rules;
mod sla;
mod total;

use super::{Job, parse};
use crate::ids::TaskName;
use crate::view::ProblemItem;

const GOOD: &str = "\
kind: Job
name: pipes
source: { node: cam-1, item: 600KB, rate: 30/s, from: task, image: reg:5000/src:1 }
tasks:
  detect:
    image: reg:5000/detect:1.2
    command: [\"/app\", \"detect\"]
    environment: { MODEL: small }
    resources: { cpu: 500m, memory: 256MiB, storage: 1GiB }
    work: 40ms
    inputs: [source]
    outputs: { track: 4KB }
    constraints: [\"node.labels.gpu != true\"]
  track:
    image: track
";

fn task(text: &str) -> TaskName {
    text.parse().unwrap()
}

fn accepted(text: &str) -> Job {
    parse(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

fn refused(text: &str) -> Vec<ProblemItem> {
    let problems = parse(text.as_bytes()).expect_err("accepted");
    for item in &problems {
        assert!(!item.problem.is_empty() && !item.remedy.is_empty(), "{item:?}");
    }
    problems
}

/// Wants exactly the problems given, each as (line, field, a part of what is said).
#[track_caller]
fn wants(text: &str, wanted: &[(usize, &str, &str)]) {
    let problems = refused(text);
    assert_eq!(problems.len(), wanted.len(), "{problems:#?}");
    for (item, (line, field, part)) in problems.iter().zip(wanted) {
        assert_eq!((item.line, item.field.as_str()), (*line, *field), "{item:?}");
        let said = format!("{}; {}", item.problem, item.remedy);
        assert!(said.contains(part), "{said:?} lacks {part:?}");
    }
}

/// A job whose task `a` has the given lines, the first of which is line 6.
fn with_task_lines(lines: &str) -> String {
    format!("kind: Job\nname: j\ntasks:\n  a:\n    image: i\n{lines}\n")
}
