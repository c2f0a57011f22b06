//! Values go in and never out.

use super::*;
use edgeloom_cluster::fake::{Guard, image, serve_to};
use edgeloom_common::confidential::{RegistryList, SecretList, VALUE_MAX};

impl Fixture {
    async fn read<T: serde::de::DeserializeOwned>(&self, path: &str) -> T {
        let (status, body) = self.ask(Method::GET, path, Body::empty()).await;
        assert_eq!(status, StatusCode::OK);
        serde_json::from_slice(&body).unwrap()
    }
}

#[tokio::test]
async fn a_secret_of_any_bytes_is_kept_listed_replaced_and_removed() {
    let fixture = fixture();
    let value: Vec<u8> = (0..=255).collect();
    let (status, _) = fixture.ask(Method::PUT, "/v1/secrets/key", value.clone()).await;
    assert_eq!(status, StatusCode::CREATED);
    let list: SecretList = fixture.read("/v1/secrets").await;
    assert_eq!((list.secrets.len(), list.secrets[0].bytes), (1, 256));
    let problem = fixture.refused(Method::PUT, "/v1/secrets/key", value.clone()).await;
    assert_eq!((problem.status, problem.code.as_str()), (409, "secret.exists"));
    let (status, _) = fixture.ask(Method::PUT, "/v1/secrets/key?replace=true", vec![b'x'; VALUE_MAX]).await;
    assert_eq!(status, StatusCode::CREATED);
    let (status, _) = fixture.ask(Method::DELETE, "/v1/secrets/key", Body::empty()).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(fixture.read::<SecretList>("/v1/secrets").await.secrets, []);
}

#[tokio::test]
async fn what_is_no_secret_is_refused() {
    let fixture = fixture();
    for (path, value, status, code) in [
        ("/v1/secrets/Key", vec![b'x'], 400, "path.unreadable"),
        ("/v1/secrets/..%2Fkey", vec![b'x'], 400, "path.unreadable"),
        ("/v1/secrets/key", vec![], 422, "secret.invalid"),
        ("/v1/secrets/key", vec![b'x'; VALUE_MAX + 1], 413, "body.too-large"),
        ("/v1/secrets/key?force=true", vec![b'x'], 400, "query.invalid"),
    ] {
        let problem = fixture.refused(Method::PUT, path, value).await;
        assert_eq!((problem.status, problem.code.as_str()), (status, code), "{path}");
    }
    let problem = fixture.refused(Method::DELETE, "/v1/secrets/key", Body::empty()).await;
    assert_eq!((problem.status, problem.code.as_str()), (404, "secret.unknown"));
    assert_eq!(fixture.read::<SecretList>("/v1/secrets").await.secrets, []);
}

#[tokio::test]
async fn a_login_is_kept_if_its_registry_honours_it() {
    // user:hunter2
    let registry = serve_to(Guard::Token("dXNlcjpodW50ZXIy"), image(&[1])).await;
    let fixture = with_registries(vec![registry.clone()]);
    let path = format!("/v1/registries/{registry}");
    let login = |password: &str| format!("{{\"username\":\"user\",\"password\":\"{password}\"}}");
    let problem = fixture.refused(Method::PUT, &path, login("hunter3")).await;
    assert_eq!((problem.status, problem.code.as_str()), (422, "login.refused"));
    assert!(!problem.detail.contains("hunter"), "{problem:?}");
    let (status, _) = fixture.ask(Method::PUT, &path, login("hunter2")).await;
    assert_eq!(status, StatusCode::CREATED);
    let list: RegistryList = fixture.read("/v1/registries").await;
    assert_eq!((list.registries.len(), list.registries[0].username.as_str()), (1, "user"));
    let (status, _) = fixture.ask(Method::DELETE, &path, Body::empty()).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let problem = fixture.refused(Method::DELETE, &path, Body::empty()).await;
    assert_eq!((problem.status, problem.code.as_str()), (404, "login.unknown"));
    for (path, body, status, code) in [
        ("/v1/registries/https:%2F%2Freg.lan", login("x"), 400, "path.unreadable"),
        ("/v1/registries/reg.lan", login(""), 422, "login.invalid"),
        ("/v1/registries/reg.lan", login("a\\u0007b"), 422, "login.invalid"),
        ("/v1/registries/reg.lan", "{}".to_owned(), 400, "body.unreadable"),
        ("/v1/registries/127.0.0.1:9", login("x"), 503, "registry.unreachable"),
    ] {
        let problem = fixture.refused(Method::PUT, path, body).await;
        assert_eq!((problem.status, problem.code.as_str()), (status, code), "{path}");
    }
}
