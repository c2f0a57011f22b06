//! Batches posted to a cluster of one simulated node with a core and 1 GiB: good ones, and what is wrong with others.

use super::jobs::{Posts, posts};
use axum::body::Body;
use axum::http::{Method, StatusCode};
use edgeloom_common::view::JobView;

impl Posts {
    /// The kind's name and the rest of the document.
    fn document(&self, kind: &str, rest: &str) -> String {
        let image = format!("image: {}/app:1", self.registry);
        format!("kind: {kind}\nname: b\n{}", rest.replace("IMAGE", &image))
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_batch_is_told_and_the_others_are_placed() {
    let posts = posts().await;
    let small = "resources: { cpu: 100m, memory: 16MiB }";
    let cases = [
        ("no tasks", "tasks: {}".to_owned(), "there are 0 tasks"),
        ("no container", format!("tasks:\n  a: {{ IMAGE, {small}, count: 0 }}"), "no number from 1"),
        ("nothing asked", "tasks:\n  a: { IMAGE, resources: { cpu: 0 } }".to_owned(), "below the least limit"),
        ("huge", "tasks:\n  a: { IMAGE, resources: { cpu: 4000 } }".to_owned(), "cpu 4000000m requested"),
        ("beyond", "tasks:\n  a: { IMAGE, resources: { cpu: 4000000 } }".to_owned(), "too large"),
        (
            "two places",
            format!("tasks:\n  a: {{ IMAGE, {small}, constraints: [\"node.name == n1\", \"node.name == n2\"] }}"),
            "n2",
        ),
        (
            "together and apart",
            format!(
                "gang: true\ntasks:\n  a: {{ IMAGE, {small}, affinity: {{ with: [c] }} }}\n  c: {{ IMAGE, {small}, anti_affinity: {{ with: [a] }} }}"
            ),
            "both together with a task and apart",
        ),
        (
            "a group that fits nowhere",
            "gang: true\ntasks:\n  a: { IMAGE, resources: { cpu: 600m }, affinity: { with: [c] } }\n  c: { IMAGE, resources: { cpu: 600m } }"
                .to_owned(),
            "all that have to be together",
        ),
    ];
    for (what, rest, expected) in &cases {
        let problem = posts.refused(posts.document("Batch", rest)).await;
        assert_eq!(problem.status, 422, "{what}: {problem:?}");
        let told = problem.problems.iter().any(|one| one.problem.contains(expected));
        assert!(told, "{what}: {problem:?}");
    }
    let copies = format!("sla: {{ redundancy: premium }}\ntasks:\n  a: {{ IMAGE, {small} }}");
    let problem = posts.refused(posts.document("Job", &copies)).await;
    assert_eq!((problem.status, problem.code.as_str()), (422, "job.unplaceable"), "three copies on one node");
    assert_eq!(posts.fixture.job_count().await, 0);
    let good = posts.document("Batch", &format!("tasks:\n  a: {{ IMAGE, {small}, count: 3 }}"));
    let (status, body) = posts.fixture.ask(Method::POST, "/v1/jobs", good).await;
    let view: JobView = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, view.tasks.len()), (StatusCode::CREATED, 3));
    let (_, body) = posts.fixture.ask(Method::GET, "/v1/jobs/b", Body::empty()).await;
    assert_eq!(serde_json::from_slice::<JobView>(&body).unwrap().tasks.len(), 3);
}
