//! The example jobs: the good ones are read, each wrong one is refused for what its first line says.

use edgeloom_common::job::{Job, parse};
use edgeloom_examples::images::application_images;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The names of the documents in a folder, and their texts.
fn documents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap()))
        .collect()
}

fn good() -> Vec<Job> {
    let read = |(name, text): (String, Vec<u8>)| {
        let job = parse(&text).unwrap_or_else(|problems| panic!("{name}: {problems:#?}"));
        assert_eq!(job.name.as_str(), name, "a job is named like its file");
        job
    };
    documents(&folder("jobs")).into_iter().map(read).collect()
}

fn wrong(name: &str) -> Vec<u8> {
    std::fs::read(folder("jobs/wrong").join(name).with_extension("yaml")).unwrap()
}

#[test]
fn every_example_is_read_and_names_images_that_are_built() {
    let built: BTreeSet<String> = application_images(b"program")
        .iter()
        .map(|image| format!("10.60.0.1:5000/{}:{}", image.repository, image.tag))
        .collect();
    let jobs = good();
    assert!(jobs.len() >= 4);
    for job in &jobs {
        let source = job.source.iter().filter_map(|source| source.container.as_ref());
        for program in job.tasks.values().map(|task| &task.program).chain(source) {
            assert!(built.contains(&program.image), "{}: {}", job.name, program.image);
        }
    }
}

#[test]
fn the_object_attribute_job_has_the_papers_shape() {
    let job = good().into_iter().find(|job| job.name.as_str() == "object-attributes").unwrap();
    assert_eq!(job.tasks.len(), 10);
    assert_eq!(job.edges().count(), 1 + 1 + 7 + 7);
    let inputs = |name: &str| job.tasks[&name.parse().unwrap()].inputs.len();
    assert_eq!((inputs("detect"), inputs("reid"), inputs("track")), (1, 1, 7));
    let cpu: u32 = job.tasks.values().map(|task| task.program.resources.cpu.0).sum();
    assert!(cpu <= 1500, "the laboratory has 1.6 cores, {cpu}m are asked for");
}

#[test]
fn the_four_functions_are_one_image_and_share_a_total() {
    let job = good().into_iter().find(|job| job.name.as_str() == "four-functions").unwrap();
    let programs: Vec<_> = job.tasks.values().map(|task| &task.program).collect();
    let images: BTreeSet<&str> = programs.iter().map(|program| program.image.as_str()).collect();
    let commands: BTreeSet<&[String]> = programs.iter().map(|program| program.command.as_slice()).collect();
    assert_eq!((images.len(), commands.len(), programs.len()), (1, 4, 4));
    let outputs = |name: &str| job.tasks[&name.parse().unwrap()].outputs.len();
    assert_eq!(["task0", "task1", "task2", "task3"].map(outputs), [2, 1, 1, 0], "the paper's graph");
    assert!(programs.iter().all(|program| !program.resources.memory_sized), "the total binds");
}

#[test]
fn the_papers_own_sum_is_refused_with_the_remedy() {
    let problems = parse(&wrong("over-total")).unwrap_err();
    assert_eq!(
        problems[0].problem,
        "the tasks ask for 8 GB together (task0 2 GB, task1 2 GB, task2 2 GB, task3 2 GB), over the total of 4 GB"
    );
    assert_eq!(problems[0].remedy, "write at least `7630MiB`, or lower the tasks' memory");
}

#[test]
fn each_wrong_example_starts_with_what_is_wrong() {
    for (name, text) in documents(&folder("jobs/wrong")) {
        assert!(text.starts_with(b"# Wrong: "), "{name}");
    }
}

#[test]
fn wrong_documents_are_refused_at_the_line_where_they_are_wrong() {
    let cases: [(&str, &[(usize, &str)]); 8] = [
        ("no-job", &[(2, "kind"), (2, "services"), (2, "name"), (2, "tasks")]),
        ("unknown-field", &[(7, "tasks.camera.devices"), (9, "tasks.camera.resources.memroy")]),
        ("cycle", &[(13, "tasks.right.outputs.left")]),
        ("rate-without-unit", &[(8, "source.rate")]),
        ("duplicate-name", &[(9, "tasks.left")]),
        ("over-total", &[(4, "resources.memory")]),
        ("copies-with-edges", &[(4, "sla.resources"), (4, "sla.redundancy")]),
        ("measure-without-items", &[(7, "tasks.camera.measure.items")]),
    ];
    for (name, wanted) in cases {
        let problems = parse(&wrong(name)).expect_err(name);
        let found: Vec<_> = problems.iter().map(|item| (item.line, item.field.as_str())).collect();
        assert_eq!(found, wanted, "{name}: {problems:#?}");
        assert!(problems.iter().all(|item| !item.remedy.is_empty()), "{name}: {problems:#?}");
    }
}

#[test]
fn wrong_demands_are_well_written_and_left_to_the_controller() {
    for name in ["fits-nowhere", "measure-never-ends", "unknown-image"] {
        assert!(parse(&wrong(name)).is_ok(), "{name}");
    }
}

/// A field that there is nowhere, wherever there are fields.
const UNKNOWN: [&str; 2] = [
    "kind: Job\nzzzzzz: 1\nresources: { zzzzzz: 1 }\nsla: { zzzzzz: 1 }\ndisconnect: { zzzzzz: 1 }\n\
     source: { zzzzzz: 1 }\ntasks:\n  t:\n    zzzzzz: 1\n    image: a\n    resources: { zzzzzz: 1 }\n    \
     measure: { zzzzzz: 1 }\n    affinity: { zzzzzz: 1 }\n    spread: { zzzzzz: 1 }\n    preferences: { zzzzzz: 1 }\n    \
     ports: [{ zzzzzz: 1 }]\n    volumes: [{ zzzzzz: 1 }]\n",
    "kind: Batch\nzzzzzz: 1\ntasks: { t: { zzzzzz: 1, image: a } }\n",
];

#[test]
fn the_readme_names_every_field() {
    let readme = std::fs::read_to_string(folder("README.md")).unwrap();
    let words: BTreeSet<&str> = readme
        .split('`')
        .skip(1)
        .step_by(2)
        .flat_map(|code| code.split(|c: char| !c.is_ascii_lowercase() && c != '_'))
        .collect();
    let problems = UNKNOWN.map(|document| parse(document.as_bytes()).unwrap_err());
    let known: Vec<&str> = problems
        .iter()
        .flatten()
        .filter_map(|item| item.remedy.strip_prefix("remove it; known here: "))
        .collect();
    assert_eq!(known.len(), 15, "{known:?}");
    let missing: Vec<&str> =
        known.iter().flat_map(|all| all.split(", ")).filter(|it| !words.contains(it)).collect();
    assert!(missing.is_empty(), "README.md says nothing of {missing:?}");
}

#[test]
fn the_document_in_the_readme_is_read() {
    let readme = std::fs::read_to_string(folder("README.md")).unwrap();
    let document = readme.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let job = parse(document.as_bytes()).unwrap_or_else(|problems| panic!("{problems:#?}"));
    assert_eq!((job.tasks.len(), job.edges().count()), (3, 4));
}
