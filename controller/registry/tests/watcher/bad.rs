//! What registries do wrong: the image has the reason, a job that needs it would be refused with it, and the others
//! are as they should be.

use super::site::{Fault, Site, Watcher, manifest, until, whole};
use super::{PERIOD, current, image, names};
use edgeloom_common::confidential::Login;
use edgeloom_common::images::ImageState;
use edgeloom_registry::Digest;
use serde_json::{Value, json};

const BAD: &str = "team/app-1";

/// The manifest of the bad image with this change, served by tag and by the digest that it then has.
fn serve(site: &Site, change: impl FnOnce(&mut Value)) {
    let mut document: Value = serde_json::from_str(&manifest(BAD, 0)).unwrap();
    change(&mut document);
    let text = document.to_string();
    let digest = Digest::of(text.as_bytes());
    for version in ["1".to_owned(), digest.to_string()] {
        let answer = Fault::of(200, text.clone()).with("docker-content-digest", digest.to_string());
        site.fault(format!("/v2/{BAD}/manifests/{version}"), answer);
    }
}

/// The bad image has this reason, the others are current, and no request leads to anything else.
async fn broken(spoil: impl FnOnce(&Site), reason: &str) {
    let site = Site::start(names(3)).await;
    spoil(&site);
    let watcher = Watcher::start(&whole(&[&site.host]), None, PERIOD);
    let bad = image(&watcher.registry, "app-1:1", |image| image.state == ImageState::Broken).await;
    assert!(bad.reason.contains(reason), "{:?} in {:?}", reason, bad.reason);
    image(&watcher.registry, "app-0:1", current).await;
    image(&watcher.registry, "app-2:1", current).await;
    let name = format!("{}/{BAD}:1", site.host);
    let refused = watcher.registry.resolve(&name, None).await.unwrap_err().to_string();
    assert!(refused.contains(reason), "{refused}");
    // It heals once the registry does.
    site.content.lock().unwrap().faults.clear();
    image(&watcher.registry, "app-1:1", current).await;
    watcher.registry.resolve(&name, None).await.unwrap();
}

fn tag() -> String {
    format!("/v2/{BAD}/manifests/1")
}

#[tokio::test]
async fn a_manifest_that_does_not_read() {
    let garbage = |site: &Site| {
        site.fault(tag(), Fault::of(200, "<html>"));
    };
    broken(garbage, "expected value").await;
}

#[tokio::test]
async fn a_manifest_that_is_none() {
    broken(|site| serve(site, |it| *it = json!({ "schemaVersion": 2 })), "neither an image nor an index")
        .await;
}

#[tokio::test]
async fn a_layer_whose_digest_is_none() {
    broken(|site| serve(site, |it| it["layers"][1]["digest"] = json!("sha256:../../etc")), "is no digest")
        .await;
}

#[tokio::test]
async fn layers_and_their_contents_that_do_not_match() {
    let fewer = |it: &mut Value| drop(it["layers"].as_array_mut().unwrap().pop());
    broken(|site| serve(site, fewer), "count different layers: 7 and 8").await;
}

#[tokio::test]
async fn too_many_layers() {
    let many = |it: &mut Value| it["layers"] = json!(vec![it["layers"][0].clone(); 5000]);
    broken(|site| serve(site, many), "5000 layers, at most 512").await;
}

#[tokio::test]
async fn a_manifest_that_is_not_the_one_promised() {
    let wrong = |site: &Site| {
        let digest = site.digest_of(&format!("{BAD}:1"));
        site.fault(format!("/v2/{BAD}/manifests/{digest}"), Fault::of(200, manifest(BAD, 1)));
    };
    broken(wrong, "it sends sha256:").await;
}

#[tokio::test]
async fn a_configuration_that_is_not_the_one_promised() {
    let wrong = |site: &Site| {
        let document: Value = serde_json::from_str(&manifest(BAD, 0)).unwrap();
        let digest = document["config"]["digest"].as_str().unwrap();
        site.fault(format!("/v2/{BAD}/blobs/{digest}"), Fault::of(200, "{}"));
    };
    broken(wrong, "it sends sha256:").await;
}

#[tokio::test]
async fn a_tag_that_is_never_answered() {
    broken(|site| site.fault(tag(), Fault::silence()), "timed out").await;
}

#[tokio::test]
async fn a_tag_that_always_fails_is_no_fault_of_the_others() {
    broken(|site| site.fault(tag(), Fault::of(500, "oops")), "it answers 500").await;
}

/// A registry that answers the bad tag with this, and wants to be asked again after so many seconds.
async fn busy(status: u16, seconds: &str) -> (Site, Watcher) {
    let site = Site::start(names(3)).await;
    let watcher = Watcher::start(&whole(&[&site.host]), None, PERIOD);
    for name in ["app-0:1", "app-1:1", "app-2:1"] {
        image(&watcher.registry, name, current).await;
    }
    site.fault(tag(), Fault::of(status, "").with("retry-after", seconds));
    let standing = || watcher.registry.images("").registries[0].clone();
    let busy = until(|| Some(standing()).filter(|it| it.away_since_ms.is_some())).await;
    assert!(busy.reason.contains(&format!("it answers {status}")), "{}", busy.reason);
    (site, watcher)
}

#[tokio::test]
async fn a_registry_that_has_had_enough_is_left_alone_and_its_images_are_as_they_were() {
    for status in [429, 503] {
        let (site, watcher) = busy(status, "3600").await;
        let before = site.content.lock().unwrap().asked.len();
        let name = format!("{}/{BAD}:1", site.host);
        let stale = watcher.registry.resolve(&name, None).await.unwrap().stale;
        assert!(stale.unwrap().to_string().contains(&status.to_string()));
        // What was under way when it said so, and the one just made.
        assert!(site.content.lock().unwrap().asked.len() <= before + 4);
        let states = watcher.registry.images("").images.into_iter().map(|image| image.state);
        assert_eq!(states.collect::<Vec<_>>(), [ImageState::Stale; 3]);
    }
}

#[tokio::test]
async fn a_registry_that_had_enough_is_asked_again_when_it_wants() {
    let (site, watcher) = busy(429, "1").await;
    site.content.lock().unwrap().faults.clear();
    until(|| watcher.registry.images("").registries[0].away_since_ms.is_none().then_some(())).await;
    image(&watcher.registry, "app-1:1", current).await;
}

#[tokio::test]
async fn an_enormous_manifest() {
    let enormous = |site: &Site| {
        let answer = Fault::of(200, vec![b' '; 5 * 1024 * 1024]);
        site.fault(tag(), answer);
    };
    broken(enormous, "over 4194304 bytes").await;
}

#[tokio::test]
async fn a_configuration_and_a_layer_that_are_missing() {
    for kind in ["configuration", "layer"] {
        let missing = |site: &Site| {
            let document: Value = serde_json::from_str(&manifest(BAD, 0)).unwrap();
            let blob = if kind == "layer" { &document["layers"][7] } else { &document["config"] };
            let digest = blob["digest"].as_str().unwrap();
            site.fault(format!("/v2/{BAD}/blobs/{digest}"), Fault::of(404, "{}"));
        };
        broken(missing, &format!("its {kind} sha256:")).await;
    }
}

#[tokio::test]
async fn an_index_of_which_one_platform_is_broken_serves_the_others() {
    let site = Site::start(names(2)).await;
    let (good, bad) = (site.digest_of("team/app-1:1"), Digest::of(b"nothing"));
    let entry = |digest: Digest, architecture: &str| json!({ "digest": digest.to_string(), "platform": { "architecture": architecture, "os": "linux" } });
    let index = json!({ "schemaVersion": 2, "manifests": [entry(bad, "arm64"), entry(good, "amd64")] });
    site.fault(tag(), Fault::of(200, index.to_string()));
    let watcher = Watcher::start(&whole(&[&site.host]), None, PERIOD);
    let found = image(&watcher.registry, "app-1:1", |image| !image.platforms.is_empty()).await;
    assert_eq!((found.platforms.len(), found.platforms[0].architecture.as_str()), (1, "amd64"));
    assert!(found.reason.contains(&format!("its manifest {bad} is missing")), "{}", found.reason);
    watcher.registry.resolve(&format!("{}/{BAD}:1", site.host), None).await.unwrap();
}

#[tokio::test]
async fn redirects_to_elsewhere_are_followed_for_blobs_alone() {
    let elsewhere = Site::start(names(2)).await;
    let place = |path: &str| format!("http://{}{path}", elsewhere.host);
    let moved = |site: &Site| {
        site.fault(tag(), Fault::of(307, "").with("location", place(&tag())));
    };
    broken(moved, "which is not followed").await;
    assert_eq!(elsewhere.content.lock().unwrap().asked.len(), 0);
    let site = Site::start(names(2)).await;
    let document: Value = serde_json::from_str(&manifest(BAD, 0)).unwrap();
    let config = format!("/v2/{BAD}/blobs/{}", document["config"]["digest"].as_str().unwrap());
    site.fault(config.clone(), Fault::of(307, "").with("location", place(&config)));
    let watcher = Watcher::start(&whole(&[&site.host]), None, PERIOD);
    image(&watcher.registry, "app-1:1", current).await;
    assert_eq!(elsewhere.content.lock().unwrap().asked.len(), 1);
}

#[tokio::test]
async fn a_redirect_to_itself_ends() {
    broken(
        |site| site.fault(tag(), Fault::of(307, "").with("location", tag())),
        "redirects more than 3 times",
    )
    .await;
}

/// A list that goes wrong this way: what it had is watched, and the registry has the reason.
async fn limited(path: &str, fault: impl FnOnce(&Site) -> Fault, reason: &str) {
    let site = Site::start(names(3)).await;
    let answer = fault(&site);
    site.fault(path, answer);
    let watcher = Watcher::start(&whole(&[&site.host]), None, PERIOD);
    let told =
        || watcher.registry.images("").registries.first().map(|it| it.reason.clone()).unwrap_or_default();
    until(|| told().contains(reason).then_some(())).await;
    image(&watcher.registry, "app-0:1", current).await;
    site.content.lock().unwrap().faults.clear();
    until(|| told().is_empty().then_some(())).await;
    image(&watcher.registry, "app-2:1", current).await;
}

#[tokio::test]
async fn lists_that_go_round_in_a_circle_or_lead_elsewhere_end() {
    let list = json!({ "repositories": ["team/app-0"] }).to_string();
    let link = |target: &str| Fault::of(200, list.clone()).with("link", format!("<{target}>; rel=\"next\""));
    limited("/v2/_catalog", |_| link("/v2/_catalog"), "in a circle").await;
    let tags = json!({ "tags": ["1"] }).to_string();
    let circle = Fault::of(200, tags).with("link", "</v2/team/app-0/tags/list>; rel=\"next\"");
    limited("/v2/team/app-0/tags/list", |_| circle, "in a circle").await;
}

#[tokio::test]
async fn a_list_that_does_not_read_leaves_what_was_known() {
    let site = Site::start(names(3)).await;
    let watcher = Watcher::start(&whole(&[&site.host]), None, PERIOD);
    image(&watcher.registry, "app-2:1", current).await;
    let link = "<http://127.0.0.1:9/v2/_catalog>; rel=\"next\"";
    let told = || watcher.registry.images("").registries[0].reason.clone();
    for (fault, reason) in [
        (Fault::of(200, vec![b'['; 1_000_000]), "invalid type"),
        (Fault::of(200, vec![b' '; 5 * 1024 * 1024]), "over 4194304 bytes"),
        (Fault::of(200, "{}").with("link", link), "which is not followed"),
    ] {
        site.fault("/v2/_catalog", fault);
        until(|| told().contains(reason).then_some(())).await;
        assert_eq!(watcher.registry.images("").images.len(), 3);
    }
    // Names that could lead a path astray are no names.
    let names = json!({ "repositories": ["team/app-0", "../admin", "a b", "team/app-0/../x", null] });
    site.fault("/v2/_catalog", Fault::of(200, names.to_string()));
    until(|| told().contains("does not read").then_some(())).await;
    let names = json!({ "repositories": ["team/app-0", "../admin", "a b", "team/app-0/../x", "A"] });
    site.fault("/v2/_catalog", Fault::of(200, names.to_string()));
    until(|| (watcher.registry.images("").images.len() == 1).then_some(())).await;
}

#[tokio::test]
async fn a_place_that_a_redirect_leads_to_gets_no_login() {
    let elsewhere = Site::start(names(1)).await;
    let site = Site::start(names(2)).await;
    let document: Value = serde_json::from_str(&manifest(BAD, 0)).unwrap();
    let config = format!("/v2/{BAD}/blobs/{}", document["config"]["digest"].as_str().unwrap());
    let place = format!("http://{}", elsewhere.host);
    site.fault(config.clone(), Fault::of(307, "").with("location", format!("{place}{config}")));
    let challenge = format!("Bearer realm=\"{place}/token\",service=\"x\"");
    elsewhere.fault(config.clone(), Fault::of(401, "{}").with("www-authenticate", challenge));
    let wanted = whole(&[&site.host]);
    let login = Login { username: "user".to_owned(), password: "hunter2".to_owned().into() };
    wanted.lock().unwrap().get_mut(&site.host).unwrap().login = Some(login);
    let watcher = Watcher::start(&wanted, None, PERIOD);
    let bad = image(&watcher.registry, "app-1:1", |image| image.state == ImageState::Broken).await;
    assert!(bad.reason.contains("denies"), "{}", bad.reason);
    image(&watcher.registry, "app-0:1", current).await;
    let asked = std::mem::take(&mut elsewhere.content.lock().unwrap().asked);
    assert!(!asked.is_empty() && asked.iter().all(|(_, path)| *path == config), "{asked:?}");
}
