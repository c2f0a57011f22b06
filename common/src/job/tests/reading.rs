//! What is read, and what is no job at all.

use super::{GOOD, accepted, task, wants};
use crate::ids::TaskName;
use crate::job::{Attribute, CPU_DEFAULT, DOCUMENT_MAX_BYTES, MEMORY_DEFAULT, parse};
use crate::units::{Bytes, MilliCores, Work};

#[test]
fn a_whole_document_is_read_with_every_field() {
    let job = accepted(GOOD);
    let source = job.source.as_ref().unwrap();
    assert_eq!((source.item, source.rate_per_s), (Bytes(600_000), Some(30.0)));
    assert_eq!(source.container.as_ref().unwrap().image, "reg:5000/src:1");
    let detect = &job.tasks[&task("detect")];
    assert_eq!(detect.program.command, ["/app", "detect"]);
    assert_eq!(detect.program.environment["MODEL"], "small");
    assert_eq!(detect.program.resources.cpu, MilliCores(500));
    assert_eq!(detect.work, Some(Work(40_000_000)));
    assert_eq!(detect.inputs, [TaskName::source()]);
    assert_eq!(detect.constraints[0].attribute, Attribute::Label("gpu".to_owned()));
    let track = &job.tasks[&task("track")];
    assert_eq!(track.inputs, [task("detect")], "implied by the output of detect");
    let resources = track.program.resources;
    assert_eq!((resources.cpu, resources.memory, resources.storage), (CPU_DEFAULT, MEMORY_DEFAULT, Bytes(0)));
    assert_eq!(job.edges().count(), 2);
}

#[test]
fn json_is_read_like_yaml() {
    let json = "{\n\t\"kind\": \"Job\", \"name\": \"j\",\n\t\"tasks\": {\"a\": {\"image\": \"i\", \"resources\": {\"cpu\": 0.5}}}\n}";
    assert_eq!(accepted(json).tasks[&task("a")].program.resources.cpu, MilliCores(500));
    wants(
        "{\"kind\": \"Job\",\n \"name\": \"j\",\n \"tasks\": {\"a\": {\"imag\": \"i\"}}}",
        &[(3, "tasks.a.imag", "did you mean `image`?"), (3, "tasks.a.image", "is missing")],
    );
}

#[test]
fn characters_that_json_writes_as_two_escapes_are_read() {
    let json = r#"{"kind": "Job", "name": "j", "tasks": {"a": {"image": "i\/k",
        "environment": {"SMILE": "\ud83d\ude00", "PATHS": "c:\\ud83d\\ude00", "E": "\u00e9"}}}}"#;
    let program = &accepted(json).tasks[&task("a")].program;
    assert_eq!(program.image, "i/k");
    assert_eq!(program.environment["SMILE"], "\u{1f600}");
    assert_eq!(program.environment["PATHS"], r"c:\ud83d\ude00");
    assert_eq!(program.environment["E"], "\u{e9}");
    let lone = json.replace(r"\ude00", "");
    wants(&lone, &[(2, "", "not readable as YAML")]);
}

#[test]
fn a_source_without_from_runs_a_container_if_it_has_an_image() {
    let plain = GOOD.replace(", from: task, image: reg:5000/src:1", "");
    assert!(accepted(&plain).source.unwrap().container.is_none());
    let with_image = GOOD.replace(", from: task", "");
    assert!(accepted(&with_image).source.unwrap().container.is_some());
    let from_host = GOOD.replace("from: task", "from: host");
    wants(&from_host, &[(3, "source.image", "runs no container")]);
    let no_image = GOOD.replace(", image: reg:5000/src:1", "");
    wants(&no_image, &[(3, "source.image", "is missing")]);
    wants(&GOOD.replace("from: task", "from: camera"), &[(3, "source.from", "no kind of source")]);
}

#[test]
fn what_is_no_job_is_told_so() {
    wants("- eggs\n- milk\n", &[(1, "", "the document is a list, not a job")]);
    wants("hello", &[(1, "", "is a single value, not a job")]);
    wants("", &[(1, "", "the document is empty")]);
    wants("# nothing\n~\n", &[(2, "", "is empty, not a job")]);
    wants("kind: Service\nreplicas: 3", &[(1, "kind", "not supported by this version")]);
    wants("kind: Deployment\nspec: {}", &[(1, "kind", "write `kind: Job`")]);
    wants(
        "services:\n  web: { image: i }\n",
        &[
            (1, "kind", "is missing"),
            (1, "services", "is no known field"),
            (1, "name", "is missing"),
            (1, "tasks", "is missing"),
        ],
    );
}

#[test]
fn a_text_that_is_no_single_plain_document_is_refused() {
    wants("kind: Job\nname: [a\n", &[(3, "", "not readable as YAML")]);
    wants("kind: Job\n---\nkind: Job\n", &[(2, "", "a second document")]);
    wants("a: &x 1\nb: *x\n", &[(1, "", "anchor")]);
    wants("a: 1\nb: !!str 2\n", &[(2, "", "tag")]);
    wants("? [a]\n: 1\n", &[(1, "", "a key is a list")]);
    let deep = format!("a: 1\nb: {}1{}", "[".repeat(40), "]".repeat(40));
    wants(&deep, &[(2, "", "nest deeper than 16")]);
    let problems = parse(b"kind: Job\nname: \xff\n").unwrap_err();
    assert_eq!((problems[0].line, problems[0].problem.as_str()), (2, "the document is not UTF-8 text"));
    let large = vec![b'#'; DOCUMENT_MAX_BYTES + 1];
    assert!(parse(&large).unwrap_err()[0].problem.contains("at most 1048576"));
}

#[test]
fn every_problem_is_told_at_once_in_line_order() {
    let text = "kind: Job\nname: Bad Name\nnmae: x\ntasks:\n  a:\n    image: i\n    work: 5\n    outputs: { b: 1KB }\n";
    wants(
        text,
        &[
            (2, "name", "may hold only"),
            (3, "nmae", "did you mean `name`?"),
            (7, "tasks.a.work", "needs a unit"),
            (8, "tasks.a.outputs.b", "there is no task b"),
        ],
    );
}
