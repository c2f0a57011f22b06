//! Tokens, scopes and joining, straight into the router.

use super::super::{Guard, Joining, router};
use super::{Fixture, fixture};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use edgeloom_cluster::NodeMessage;
use edgeloom_common::desired::Version;
use edgeloom_common::ids::NodeId;
use edgeloom_common::join::{
    IdentityAnswer, JoinRequest, Scope, TokenCreated, TokenList, TokenPurpose, TokenRequest,
};
use edgeloom_common::report::Status;
use edgeloom_common::samples;
use edgeloom_common::secret::Secret;
use edgeloom_common::view::{ForgottenView, Problem, StrayView};
use http_body_util::BodyExt;
use rcgen::{CertificateParams, KeyPair};
use serde::de::DeserializeOwned;
use tower::ServiceExt;

fn guarded() -> Fixture {
    let mut fixture = fixture();
    fixture.api.guard = Guard::Tokens;
    fixture.router = router(fixture.api.clone());
    fixture
}

impl Fixture {
    pub(super) fn token(&self, scope: Scope) -> Secret {
        let purpose = TokenPurpose::Api { scope };
        let request = TokenRequest { purpose, note: String::new(), lifetime_s: None };
        self.api.identity.create_token(request).unwrap().text
    }

    fn join_token(&self, purpose: TokenPurpose, lifetime_s: u64) -> Secret {
        let request = TokenRequest { purpose, note: String::new(), lifetime_s: Some(lifetime_s) };
        self.api.identity.create_token(request).unwrap().text
    }

    async fn with_token(&self, method: Method, path: &str, token: &str) -> StatusCode {
        let request = Request::builder().method(method).uri(path).header("authorization", token);
        let request = request.body(Body::empty()).unwrap();
        self.router.clone().oneshot(request).await.unwrap().status()
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: String) -> T {
        let request = Request::post(path).body(Body::from(body)).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}: {bytes:?}"))
    }

    async fn refused_join(&self, token: &Secret, node: &str) -> String {
        let problem: Problem = self.post("/v1/join", request(token, node, &key())).await;
        assert!(problem.detail.contains("; "), "a remedy in {:?}", problem.detail);
        assert!(!problem.detail.contains(token.expose()), "no secret in {:?}", problem.detail);
        problem.code
    }

    async fn joins(&self, token: &Secret, node: &str, key: &KeyPair) -> IdentityAnswer {
        self.post("/v1/join", request(token, node, key)).await
    }
}

fn key() -> KeyPair {
    KeyPair::generate().unwrap()
}

fn request(token: &Secret, node: &str, key: &KeyPair) -> String {
    let request = CertificateParams::default().serialize_request(key).unwrap().pem().unwrap();
    let (token, node) = (token.clone(), node.parse().unwrap());
    serde_json::to_string(&JoinRequest { token, node, request }).unwrap()
}

fn any_node(uses: u32) -> TokenPurpose {
    TokenPurpose::Join { nodes: Vec::new(), uses, replace: false }
}

#[tokio::test]
async fn every_scope_reaches_what_it_may_and_nothing_else() {
    let fixture = guarded();
    let asked = [
        (Method::GET, "/v1/jobs", Scope::Read),
        (Method::GET, "/v1/nowhere", Scope::Read),
        (Method::DELETE, "/v1/jobs/ghost", Scope::Deploy),
        (Method::GET, "/v1/tokens", Scope::Admin),
        (Method::PUT, "/v1/jobs", Scope::Admin),
        (Method::DELETE, "/v1/nodes/ghost", Scope::Admin),
        (Method::POST, "/v1/nodes/ghost/drain", Scope::Admin),
        (Method::POST, "/v1/nodes/ghost/uncordon", Scope::Admin),
        (Method::GET, "/v1/consolidation", Scope::Read),
        (Method::DELETE, "/v1/nodes/ghost/certificate", Scope::Admin),
    ];
    for has in [Scope::Read, Scope::Deploy, Scope::Admin] {
        let token = format!("Bearer {}", fixture.token(has).expose());
        for (method, path, needed) in &asked {
            let status = fixture.with_token(method.clone(), path, &token).await;
            assert_eq!(status == StatusCode::FORBIDDEN, has < *needed, "{path} with {has:?}: {status}");
            assert_ne!(status, StatusCode::UNAUTHORIZED, "{path}");
        }
    }
}

#[tokio::test]
async fn strangers_reach_only_what_tells_nothing() {
    let fixture = guarded();
    let join = fixture.join_token(any_node(1), 60);
    let read = fixture.token(Scope::Read);
    let (cut, last) = read.expose().split_at(read.expose().len() - 1);
    let altered = format!("{cut}{}", if last == "A" { "B" } else { "A" });
    for token in [
        "Bearer ",
        "Basic YTpi",
        "",
        join.expose(),
        &format!("Bearer {}", join.expose()),
        &format!("Bearer {altered}"),
        &format!("Basic {}", read.expose()),
    ] {
        let status = fixture.with_token(Method::GET, "/v1/jobs", token).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
    }
    for path in ["/v1/jobs", "/v1/nodes", "/v1/nowhere", "/v1/tokens"] {
        assert_eq!(fixture.refused(Method::GET, path, Body::empty()).await.code, "token.missing", "{path}");
    }
    for path in ["/livez", "/readyz"] {
        assert_eq!(fixture.ask(Method::GET, path, Body::empty()).await.0, StatusCode::OK);
    }
    assert_eq!(fixture.refused(Method::GET, "/v1/identity", Body::empty()).await.code, "certificate.missing");
    let id = fixture
        .api
        .identity
        .tokens()
        .iter()
        .find(|it| it.purpose == TokenPurpose::Api { scope: Scope::Read })
        .unwrap()
        .id
        .clone();
    fixture.api.identity.revoke_token(&id).unwrap();
    let status = fixture.with_token(Method::GET, "/v1/jobs", &format!("Bearer {}", read.expose())).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "a revoked token is of no use");
}

#[tokio::test]
async fn tokens_are_told_once_and_listed_without_their_secret() {
    let fixture = fixture();
    let body = r#"{"purpose":{"join":{"uses":2}},"note":"the shed"}"#;
    let created: TokenCreated = fixture.post("/v1/tokens", body.to_owned()).await;
    let secret = created.text.expose().rsplit('.').next().unwrap().to_owned();
    let (_, list) = fixture.ask(Method::GET, "/v1/tokens", Body::empty()).await;
    assert!(!String::from_utf8(list.clone()).unwrap().contains(&secret));
    let list: TokenList = serde_json::from_slice(&list).unwrap();
    assert!(list.tokens.contains(&created.token));
    for bad in [
        r#"{"purpose":{"join":{"uses":0}}}"#,
        r#"{"purpose":{"join":{"uses":1,"replace":true}}}"#,
        r#"{"purpose":{"join":{"uses":1}},"lifetime_s":0}"#,
        r#"{"purpose":{"join":{"uses":1}},"note":"a\nb"}"#,
    ] {
        assert_eq!(fixture.refused(Method::POST, "/v1/tokens", bad).await.code, "token.invalid", "{bad}");
    }
    let path = format!("/v1/tokens/{}", created.token.id);
    assert_eq!(fixture.ask(Method::DELETE, &path, Body::empty()).await.0, StatusCode::NO_CONTENT);
    assert_eq!(fixture.refused(Method::DELETE, &path, Body::empty()).await.code, "token.unknown");
    assert_eq!(fixture.refused_join(&created.text, "n1").await, "join.unknown");
}

#[tokio::test]
async fn used_expired_foreign_and_misdirected_tokens_are_refused_and_change_nothing() {
    let (fixture, elsewhere) = (fixture(), fixture());
    let once = fixture.join_token(any_node(1), 60);
    let first = key();
    let answer = fixture.joins(&once, "n1", &first).await;
    assert_eq!((answer.node.as_str(), answer.mqtt_port), ("n1", 8883));
    // The answer got lost: the same node with the same key asks again.
    assert_eq!(fixture.joins(&once, "n1", &first).await.node.as_str(), "n1");

    let before = fixture.api.identity.tokens();
    assert_eq!(fixture.refused_join(&once, "n2").await, "join.used");
    assert_eq!(fixture.refused_join(&elsewhere.join_token(any_node(1), 60), "n2").await, "join.foreign");
    assert_eq!(fixture.refused_join(&fixture.token(Scope::Admin), "n2").await, "join.unreadable");
    assert_eq!(fixture.api.identity.tokens().len(), before.len() + 1, "the one just made");

    let named = TokenPurpose::Join { nodes: vec!["n3".parse().unwrap()], uses: 5, replace: false };
    let named = fixture.join_token(named, 60);
    assert_eq!(fixture.refused_join(&named, "n2").await, "join.other-node");
    let many = fixture.join_token(any_node(9), 60);
    assert_eq!(fixture.refused_join(&many, "n1").await, "join.name-taken");
    let unsigned = serde_json::to_string(&JoinRequest {
        token: many.clone(),
        node: "n2".parse().unwrap(),
        request: "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n".to_owned(),
    });
    let problem: Problem = fixture.post("/v1/join", unsigned.unwrap()).await;
    assert_eq!(problem.code, "join.request");
    let used: usize = fixture.api.identity.tokens().iter().map(|token| token.used_by.len()).sum();
    assert_eq!(used, 1, "refusals used nothing up");
}

#[tokio::test]
async fn a_token_that_replaces_revokes_what_the_node_had() {
    let fixture = fixture();
    let revoked = fixture.api.identity.revoked();
    fixture.joins(&fixture.join_token(any_node(1), 60), "n1", &key()).await;
    assert!(revoked.borrow().is_empty());
    let again = TokenPurpose::Join { nodes: vec!["n1".parse().unwrap()], uses: 1, replace: true };
    fixture.joins(&fixture.join_token(again, 60), "n1", &key()).await;
    assert_eq!(revoked.borrow().len(), 1);
    let (status, _) = fixture.ask(Method::DELETE, "/v1/nodes/n1/certificate", Body::empty()).await;
    assert_eq!((status, revoked.borrow().len()), (StatusCode::OK, 2));
    let problem = fixture.refused(Method::DELETE, "/v1/nodes/n1/certificate", Body::empty()).await;
    assert_eq!(problem.code, "node.unknown");
}

#[tokio::test]
async fn a_node_that_will_not_come_back_is_forgotten_with_its_certificates() {
    let fixture = fixture();
    let revoked = fixture.api.identity.revoked();
    fixture.joins(&fixture.join_token(any_node(1), 60), "n1", &key()).await;
    let n1: NodeId = "n1".parse().unwrap();
    fixture.cluster.observe(n1.clone(), NodeMessage::Status(Status::new(true, 1))).await;
    let problem = fixture.refused(Method::DELETE, "/v1/nodes/n1", Body::empty()).await;
    assert_eq!((problem.code.as_str(), revoked.borrow().len()), ("node.online", 0));
    let (job, task) = ("j".parse().unwrap(), "t".parse().unwrap());
    let shown = samples::observed(Version::default(), vec![samples::running((&job, &task), "h")]);
    fixture.cluster.observe(n1.clone(), NodeMessage::Observed(shown)).await;
    fixture.cluster.observe(n1.clone(), NodeMessage::Status(Status::new(false, 1))).await;
    let (status, body) = fixture.ask(Method::DELETE, "/v1/nodes/n1", Body::empty()).await;
    let view: ForgottenView = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, &view.node, view.serials.len()), (StatusCode::OK, &n1, 1));
    assert_eq!(view.may_run, [StrayView { job, task }]);
    assert_eq!(revoked.borrow().len(), 1);
    assert!(fixture.cluster.nodes().await.is_empty());
    assert_eq!(fixture.refused(Method::DELETE, "/v1/nodes/n1", Body::empty()).await.code, "node.unknown");
    // One that joined and was never heard of has certificates alone.
    fixture.joins(&fixture.join_token(any_node(1), 60), "n2", &key()).await;
    assert_eq!(fixture.ask(Method::DELETE, "/v1/nodes/n2", Body::empty()).await.0, StatusCode::OK);
}

#[tokio::test]
async fn with_certificates_from_outside_nobody_joins_here() {
    let mut fixture = fixture();
    fixture.api.joining = Joining::Elsewhere;
    fixture.router = router(fixture.api.clone());
    let body = r#"{"purpose":{"join":{"uses":1}}}"#;
    assert_eq!(fixture.refused(Method::POST, "/v1/tokens", body).await.code, "join.elsewhere");
    assert_eq!(fixture.refused(Method::POST, "/v1/join", "{}").await.code, "join.elsewhere");
}
