//! Jobs posted to a cluster of one simulated node, images from a registry in the process.

use super::{Fixture, with_registries};
use axum::body::Body;
use axum::http::{Method, StatusCode};
use edgeloom_cluster::{NodeMessage, fake};
use edgeloom_common::ids::NodeId;
use edgeloom_common::report::{Inventory, Links, Status};
use edgeloom_common::samples;
use edgeloom_common::view::{JobState, JobView, Problem};

pub(super) struct Posts {
    pub(super) fixture: Fixture,
    pub(super) registry: String,
}

pub(super) fn inventory() -> Inventory {
    samples::inventory("test")
}

/// A link to a node that never speaks: the one node is all there is to place on.
pub(super) fn links() -> Links {
    Links { schema: 1, links: vec![samples::link("n2", [10, 61, 0, 1].into())] }
}

pub(super) async fn posts() -> Posts {
    let registry = fake::serve(fake::image(&[30, 20])).await;
    let fixture = with_registries(vec![registry.clone()]);
    let node: NodeId = "n1".parse().unwrap();
    for message in [
        NodeMessage::Status(Status::new(true, 1)),
        NodeMessage::Inventory(Box::new(inventory())),
        NodeMessage::Links(links()),
    ] {
        fixture.cluster.observe(node.clone(), message).await;
    }
    Posts { fixture, registry }
}

impl Posts {
    fn text(&self) -> String {
        let registry = &self.registry;
        format!(
            "kind: Job\nname: one\nsource: {{ node: n1, item: 10KB }}\ntasks:\n  detect:\n    \
             image: {registry}/app:1\n    resources: {{ cpu: 100m, memory: 16MiB }}\n    work: 1ms\n    inputs: [source]\n"
        )
    }

    /// The refusal, which a dry run gives word for word too.
    pub(super) async fn refused(&self, text: String) -> Problem {
        let dry = self.fixture.refused(Method::POST, "/v1/jobs?dry_run=true", text.clone()).await;
        let problem = self.fixture.refused(Method::POST, "/v1/jobs", text).await;
        assert_eq!(dry, problem);
        problem
    }
}

#[tokio::test]
async fn a_task_that_fits_nowhere_is_refused_with_the_reason_of_the_node() {
    let posts = posts().await;
    let problem = posts.refused(posts.text().replace("memory: 16MiB", "memory: 4GiB")).await;
    assert_eq!((problem.status, problem.code.as_str()), (422, "job.unplaceable"));
    assert_eq!(problem.problems.iter().map(|it| it.field.as_str()).collect::<Vec<_>>(), ["n1"]);
    assert!(problem.problems[0].problem.contains("memory"), "{problem:?}");
    assert_eq!(posts.fixture.job_count().await, 0);
}

#[tokio::test]
async fn an_image_that_its_registry_lacks_is_refused_with_its_field_and_line() {
    let posts = posts().await;
    let problem = posts.refused(posts.text().replace("app:1", "app:2")).await;
    assert_eq!((problem.status, problem.code.as_str()), (422, "image.unknown"));
    let found: Vec<_> = problem.problems.iter().map(|it| (it.field.as_str(), it.line)).collect();
    assert_eq!(found, [("tasks.detect.image", 6)]);
    assert!(problem.problems[0].problem.contains("app:2"), "{problem:?}");
    assert_eq!(posts.fixture.job_count().await, 0);
}

#[tokio::test]
async fn a_profile_or_a_source_node_that_is_not_there_is_refused_with_its_line() {
    let posts = posts().await;
    let cases = [
        (posts.text().replace("name: one", "name: one\nprofile: ghost"), "profile", 3),
        (posts.text().replace("node: n1", "node: n9"), "source.node", 3),
    ];
    for (text, field, line) in cases {
        let problem = posts.refused(text).await;
        assert_eq!((problem.status, problem.code.as_str()), (422, "job.invalid"));
        let found: Vec<_> = problem.problems.iter().map(|it| (it.field.as_str(), it.line)).collect();
        assert_eq!(found, [(field, line)]);
    }
    assert_eq!(posts.fixture.job_count().await, 0);
}

#[tokio::test]
async fn a_name_in_use_is_refused_and_its_job_stays_as_it_is() {
    let posts = posts().await;
    let (status, body) = posts.fixture.ask(Method::POST, "/v1/jobs", posts.text()).await;
    let posted: JobView = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, posted.state), (StatusCode::CREATED, JobState::Starting));
    let problem = posts.refused(posts.text().replace("cpu: 100m", "cpu: 200m")).await;
    assert_eq!((problem.status, problem.code.as_str()), (409, "job.exists"));
    let (_, body) = posts.fixture.ask(Method::GET, "/v1/jobs/one", Body::empty()).await;
    assert_eq!(serde_json::from_slice::<JobView>(&body).unwrap(), posted);
}
