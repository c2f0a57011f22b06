//! The watcher over registries on sockets: what it finds, what it costs them, and what they may do to it.

mod bad;
mod large;
mod real;
mod site;

use axum::http::Method;
use edgeloom_common::images::{ImageState, ImageView};
use edgeloom_registry::{Envelope, Interest, Registry, RegistryError};
use site::{OWN, SHARED, Site, Watcher, until, whole};
use std::time::Duration;

const PERIOD: Duration = Duration::from_millis(200);

/// The image of this tag, once it is as it should be.
async fn image(registry: &Registry, end: &str, is: impl Fn(&ImageView) -> bool) -> ImageView {
    until(|| registry.images(end).images.into_iter().find(|image| image.name.ends_with(end) && is(image)))
        .await
}

fn current(image: &ImageView) -> bool {
    image.state == ImageState::Current
}

fn names(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("team/app-{number}:1"))
}

#[tokio::test]
async fn every_page_of_every_list_is_found_with_its_layers() {
    let site = Site::start(names(250).chain((0..250).map(|tag| format!("many:{tag}")))).await;
    let watcher = Watcher::start(&whole(&[&site.host]), None, PERIOD);
    let all = || {
        let images = watcher.registry.images("").images;
        (images.len() == 500 && images.iter().all(current)).then_some(images)
    };
    for image in until(all).await {
        let tag = image.name.strip_prefix(&format!("{}/", site.host)).unwrap();
        assert_eq!(image.digest, Some(site.digest_of(tag).to_string()));
        let platform = &image.platforms[0];
        assert_eq!((platform.architecture.as_str(), platform.layers.len()), ("amd64", SHARED + OWN));
        assert!(platform.compressed_bytes > 8000 && image.seen_ms > 0);
    }
}

#[tokio::test]
async fn a_pushed_tag_a_new_and_a_removed_repository_are_seen() {
    let site = Site::start(names(2)).await;
    let watcher = Watcher::start(&whole(&[&site.host]), None, PERIOD);
    image(&watcher.registry, "app-1:1", current).await;
    site.push("team/app-1:1", 7);
    let pushed = Some(site.digest_of("team/app-1:1").to_string());
    image(&watcher.registry, "app-1:1", |image| image.digest == pushed).await;
    site.push("new:1", 0);
    image(&watcher.registry, "new:1", current).await;
    site.content.lock().unwrap().tags.remove("team/app-0:1");
    until(|| watcher.registry.images("app-0").images.is_empty().then_some(())).await;
    assert_eq!(watcher.registry.images("").images.len(), 2);
}

#[tokio::test]
async fn a_tag_that_did_not_change_costs_one_request_without_a_body() {
    let site = Site::start(names(1)).await;
    let watcher = Watcher::start(&whole(&[&site.host]), None, PERIOD);
    image(&watcher.registry, "app-0:1", current).await;
    until(|| (site.asked(&Method::HEAD, "/manifests/1") >= 4).then_some(())).await;
    let digest = site.digest_of("team/app-0:1");
    assert_eq!(site.asked(&Method::GET, "/manifests/1"), 0);
    assert_eq!(site.asked(&Method::GET, &format!("/manifests/{digest}")), 1);
    let name = format!("{}/team/app-0:1", site.host);
    let before = site.content.lock().unwrap().asked.len();
    let by_digest = format!("{}/team/app-0@{digest}", site.host);
    watcher.registry.resolve(&name, None).await.unwrap();
    watcher.registry.resolve(&by_digest, None).await.unwrap();
    let asked = site.content.lock().unwrap().asked.split_off(before);
    let elsewhere = watcher.registry.resolve(&format!("{}/other@{digest}", site.host), None).await;
    assert!(matches!(elsewhere, Err(RegistryError::Unknown { .. })), "{elsewhere:?}");
    assert!(
        asked.iter().all(|(method, path)| *method == Method::HEAD
            || path.ends_with("list")
            || path.ends_with("_catalog")),
        "{asked:?}"
    );
}

#[tokio::test]
async fn what_was_pushed_just_now_is_what_runs() {
    let site = Site::start(names(1)).await;
    let watcher = Watcher::start(&whole(&[&site.host]), None, PERIOD);
    image(&watcher.registry, "app-0:1", current).await;
    let name = format!("{}/team/app-0:1", site.host);
    for seed in 5..25 {
        watcher.registry.resolve(&name, None).await.unwrap();
        site.push("team/app-0:1", seed);
        let resolved = watcher.registry.resolve(&name, None).await.unwrap();
        assert_eq!(resolved.reference.digest, site.digest_of("team/app-0:1").to_string());
    }
}

#[tokio::test]
async fn what_is_known_outlives_a_restart_and_a_registry_that_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let mut site = Site::start(names(30)).await;
    let wanted = whole(&[&site.host]);
    let cache = Some(folder.path().join("registry"));
    let watcher = Watcher::start(&wanted, cache.clone(), PERIOD);
    until(|| {
        (watcher.registry.images("").images.iter().filter(|it| current(it)).count() == 30).then_some(())
    })
    .await;
    site.push("team/app-3:1", 5);
    let pushed = Some(site.digest_of("team/app-3:1").to_string());
    image(&watcher.registry, "app-3:1", |image| image.digest == pushed).await;
    let before = watcher.registry.images("").images;
    watcher.registry.save();
    drop(watcher);
    site.go_away();
    let watcher = Watcher::start(&wanted, cache, PERIOD);
    let stale = image(&watcher.registry, "app-3:1", |image| image.state == ImageState::Stale).await;
    assert!(!stale.reason.is_empty() && watcher.registry.images("").registries[0].away_since_ms.is_some());
    let known = |images: Vec<ImageView>| {
        images.into_iter().map(|it| (it.name, it.digest, it.platforms)).collect::<Vec<_>>()
    };
    assert_eq!(known(watcher.registry.images("").images), known(before));
    let name = format!("{}/team/app-3:1", site.host);
    let resolved = watcher.registry.resolve(&name, None).await.unwrap();
    assert_eq!((Some(resolved.reference.digest), resolved.stale.is_some()), (pushed, true));
    site.come_back().await;
    image(&watcher.registry, "app-3:1", current).await;
    assert!(watcher.registry.images("").registries[0].away_since_ms.is_none());
}

#[tokio::test]
async fn without_a_catalogue_the_images_of_jobs_are_watched() {
    let site = Site::start(names(3)).await;
    site.fault("/v2/_catalog", site::Fault::of(401, "{}").with("www-authenticate", "Basic realm=\"x\""));
    let wanted = whole(&[&site.host]);
    let name = format!("{}/team/app-1:1", site.host);
    wanted.lock().unwrap().get_mut(&site.host).unwrap().images = vec![name];
    let watcher = Watcher::start(&wanted, None, PERIOD);
    image(&watcher.registry, "app-1:1", current).await;
    let limit = || watcher.registry.images("").registries[0].reason.clone();
    until(|| limit().contains("only images of jobs are watched").then_some(())).await;
    assert_eq!(watcher.registry.images("").images.len(), 1);
    wanted.lock().unwrap().insert(site.host.clone(), Interest::default());
    until(|| watcher.registry.images("").images.is_empty().then_some(())).await;
}

#[tokio::test]
async fn a_notified_change_is_seen_at_once_and_lets_the_questions_rest() {
    let site = Site::start(names(20)).await;
    let watcher = Watcher::start(&whole(&[&site.host]), None, PERIOD / 2);
    until(|| {
        (watcher.registry.images("").images.iter().filter(|it| current(it)).count() == 20).then_some(())
    })
    .await;
    let notify = |tag: &str, host: &str| {
        let (repository, tag) = tag.split_once(':').unwrap();
        let target = serde_json::json!({ "repository": repository, "tag": tag });
        let text = serde_json::json!({ "events": [
            { "action": "push", "target": target, "request": { "host": host } },
        ] });
        let envelope: Envelope = serde_json::from_str(&text.to_string()).unwrap();
        watcher.registry.notified(&envelope, None)
    };
    assert_eq!(notify("team/app-4:1", "other.lan"), 1);
    let resting = || watcher.registry.images("").registries[0].notifies;
    assert!(!resting());
    site.push("team/app-4:1", 1);
    let pushed = Some(site.digest_of("team/app-4:1").to_string());
    assert_eq!(notify("team/app-4:1", site.host.as_str()), 1);
    image(&watcher.registry, "app-4:1", |image| image.digest == pushed).await;
    assert!(resting());
    // What was due before the rest comes once more; then silence for half an hour.
    tokio::time::sleep(40 * PERIOD / 2).await;
    let before = site.asked(&Method::HEAD, "/manifests/1");
    tokio::time::sleep(20 * PERIOD / 2).await;
    assert_eq!(site.asked(&Method::HEAD, "/manifests/1"), before);
}

#[tokio::test]
async fn one_registry_that_hangs_keeps_no_other_waiting() {
    let site = Site::start(names(5)).await;
    // It takes connections and says nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hanging = silent.local_addr().unwrap().to_string().parse().unwrap();
    let watcher = Watcher::start(&whole(&[&site.host, &hanging]), None, PERIOD);
    image(&watcher.registry, "app-4:1", current).await;
    site.push("team/app-4:1", 3);
    let pushed = Some(site.digest_of("team/app-4:1").to_string());
    image(&watcher.registry, "app-4:1", |image| image.digest == pushed).await;
}
