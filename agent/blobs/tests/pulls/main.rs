//! Pulls through the proxy from a registry of the test's own, over real connections.

mod beside;
mod registry;
mod site;

use edgeloom_blobs::{Blame, Counts, Digest, Lane, Meter, Pace, Proxy, Sources, Store, Upstream};
use edgeloom_common::confidential::Login;
use edgeloom_common::secret::Secret;
use edgeloom_common::units::{BitRate, Bytes as Size, PULL_PART, TCP_GOODPUT};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::Bytes;
use registry::Registry;
use site::{ask, blob, bytes, layer, login, manifest};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

const BUDGET: Size = Size(1 << 20);

struct Site {
    registry: Registry,
    folder: tempfile::TempDir,
}

impl Site {
    async fn new() -> Self {
        Self { registry: Registry::start().await, folder: tempfile::tempdir().unwrap() }
    }

    fn upstream(&self, credentials: Option<Login>) -> Upstream {
        site::upstream(&self.registry, credentials)
    }
}

/// One life of the agent.
async fn proxy(folder: &Path, budget: Size) -> Proxy {
    proxy_over(Sources::new("n1".parse().unwrap(), None), folder, budget).await
}

async fn proxy_over(sources: Sources, folder: &Path, budget: Size) -> Proxy {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::new(Store::open(folder, budget).unwrap(), sources, listener.local_addr().unwrap());
    tokio::spawn(proxy.clone().serve(listener));
    proxy
}

#[tokio::test]
async fn a_blob_comes_once_whoever_asks_and_is_kept() {
    let site = Site::new().await;
    let data = layer(300_000);
    let digest = site.registry.hold(&data);
    let proxy = proxy(site.folder.path(), BUDGET).await;
    let (one, two) = (proxy.admit(site.upstream(None)), proxy.admit(site.upstream(None)));
    let (a, b) = tokio::join!(blob(&one, &digest, None), blob(&two, &digest, None));
    let (a, b) = tokio::join!(bytes(a), bytes(b));
    assert!(a.unwrap() == data && b.unwrap() == data);
    assert_eq!(bytes(blob(&one, &digest, Some("bytes=299990-")).await).await.unwrap(), data[299_990..]);
    assert_eq!(site.registry.sent(&digest), data.len());
    let registry = one.counts().registry.0 + two.counts().registry.0;
    assert_eq!(registry, data.len() as u64);
}

#[tokio::test]
async fn what_flows_leave_of_a_line_all_downloads_over_it_share() {
    let site = Site::new().await;
    let meter = Meter { interface_of: |_| Some("line".to_owned()), received: |_| None };
    let pace = Pace::new(meter);
    let lane = Lane { capacity: Some(BitRate(12_000_000)), reserved: BitRate(4_000_000) };
    pace.set([("line".to_owned(), lane)].into());
    let sources = Sources::new("n1".parse().unwrap(), None).paced(pace.clone());
    let proxy = proxy_over(sources, site.folder.path(), BUDGET).await;
    let blobs = [layer(400_000), layer(500_000)];
    let digests = [site.registry.hold(&blobs[0]), site.registry.hold(&blobs[1])];
    let ticket = proxy.admit(site.upstream(None));
    let began = Instant::now();
    let (a, b) =
        tokio::join!(async { bytes(blob(&ticket, &digests[0], None).await).await.unwrap() }, async {
            bytes(blob(&ticket, &digests[1], None).await).await.unwrap()
        },);
    assert!([a, b] == blobs && pace.used().contains("line"));
    let least_s = 900_000.0 * 8.0 / (8_000_000.0 * PULL_PART * TCP_GOODPUT);
    // The first bytes come at once, and so do those that were late.
    let took_s = began.elapsed().as_secs_f64();
    assert!(took_s > 0.85 * least_s, "{took_s} s, at the rate of the line {least_s} s");
}

#[tokio::test]
async fn a_download_that_breaks_off_goes_on_where_it_was() {
    let site = Site::new().await;
    let data = layer(200_000);
    let digest = site.registry.hold(&data);
    site.registry.state.lock().unwrap().cuts = vec![50_000, 0, 70_000];
    let proxy = proxy(site.folder.path(), BUDGET).await;
    let ticket = proxy.admit(site.upstream(None));
    assert_eq!(bytes(blob(&ticket, &digest, None).await).await.unwrap(), data);
    assert_eq!(site.registry.sent(&digest), data.len());
}

#[tokio::test]
async fn an_agent_that_died_in_the_middle_is_followed_by_one_that_fetches_the_rest() {
    let site = Site::new().await;
    let data = layer(400_000);
    let digest = site.registry.hold(&data);
    {
        let mut state = site.registry.state.lock().unwrap();
        (state.cuts, state.pause) = (vec![150_000], Duration::from_millis(1));
    }
    let first = proxy(site.folder.path(), BUDGET).await;
    let ticket = first.admit(site.upstream(None));
    // Docker goes away with half of it, and so does the agent.
    let mut body = blob(&ticket, &digest, None).await.into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    tokio::time::sleep(Duration::from_millis(600)).await;
    let kept = Store::open(site.folder.path(), BUDGET).unwrap().bytes().0;
    assert!(0 < kept && kept < 400_000, "{kept}");
    site.registry.state.lock().unwrap().pause = Duration::ZERO;
    let second = proxy(site.folder.path(), BUDGET).await;
    let ticket = second.admit(site.upstream(None));
    assert_eq!(bytes(blob(&ticket, &digest, None).await).await.unwrap(), data);
    assert_eq!(ticket.counts().registry, Size(400_000 - kept));
}

#[tokio::test]
async fn a_registry_that_knows_no_ranges_is_read_from_its_first_byte() {
    let site = Site::new().await;
    let data = layer(100_000);
    let digest = site.registry.hold(&data);
    {
        let mut state = site.registry.state.lock().unwrap();
        (state.cuts, state.knows_ranges) = (vec![30_000], false);
    }
    let proxy = proxy(site.folder.path(), BUDGET).await;
    let ticket = proxy.admit(site.upstream(None));
    assert_eq!(bytes(blob(&ticket, &digest, None).await).await.unwrap(), data);
    assert_eq!(site.registry.sent(&digest), 130_000);
}

#[tokio::test]
async fn wrong_bytes_are_never_kept() {
    let site = Site::new().await;
    let digest = site.registry.hold(b"what was meant");
    let wrong = Bytes::from_static(b"what was never meant");
    site.registry.state.lock().unwrap().blobs.insert(digest.to_string(), wrong);
    let proxy = proxy(site.folder.path(), BUDGET).await;
    let ticket = proxy.admit(site.upstream(None));
    assert!(bytes(blob(&ticket, &digest, None).await).await.is_err(), "the answer breaks off");
    assert_eq!(Store::open(site.folder.path(), BUDGET).unwrap().bytes(), Size(0));
    assert_eq!(manifest(&ticket, &digest).await.status(), StatusCode::BAD_GATEWAY);
}

#[tokio::test]
async fn a_kept_blob_that_changed_on_disk_fails_one_pull_and_is_fetched_again() {
    let site = Site::new().await;
    let data = layer(300_000);
    let digest = site.registry.hold(&data);
    let proxy = proxy(site.folder.path(), BUDGET).await;
    let ticket = proxy.admit(site.upstream(None));
    assert_eq!(bytes(blob(&ticket, &digest, None).await).await.unwrap(), data);
    let file = site.folder.path().join("whole").join(digest.to_string().split_off(7));
    let mut changed = data.clone();
    changed[299_999] ^= 1;
    std::fs::write(&file, changed).unwrap();
    assert!(bytes(blob(&ticket, &digest, None).await).await.is_err());
    assert_eq!(bytes(blob(&ticket, &digest, None).await).await.unwrap(), data);
    assert_eq!(ticket.counts().registry, Size(600_000));
}

/// A manifest with this layer, as the registry has it.
fn image(registry: &Registry, layer: &Digest, size: usize) -> Digest {
    let text = format!(r#"{{"schemaVersion":2,"layers":[{{"digest":"{layer}","size":{size}}}]}}"#);
    registry.hold(text.as_bytes())
}

#[tokio::test]
async fn a_blob_without_an_end_is_the_images_fault_and_leaves_nothing() {
    let site = Site::new().await;
    let digest = site.registry.hold(&layer(5000));
    let image = image(&site.registry, &digest, 5000);
    site.registry.state.lock().unwrap().endless.insert(digest.to_string());
    let proxy = proxy(site.folder.path(), BUDGET).await;
    let ticket = proxy.admit(site.upstream(None));
    let text = bytes(manifest(&ticket, &image).await).await.unwrap();
    // Its length is known when it has come, which it never has.
    assert_eq!(blob(&ticket, &digest, None).await.status(), StatusCode::FORBIDDEN);
    let failure = ticket.failure().unwrap();
    assert_eq!(failure.blame, Blame::Image);
    assert!(failure.text.contains("its manifest says 5000"), "{failure}");
    assert_eq!(Store::open(site.folder.path(), BUDGET).unwrap().bytes(), Size(text.len() as u64));
}

#[tokio::test]
async fn a_blob_that_says_it_is_longer_than_its_manifest_is_refused_at_once() {
    let site = Site::new().await;
    let digest = site.registry.hold(&layer(5000));
    let image = image(&site.registry, &digest, 4999);
    let proxy = proxy(site.folder.path(), BUDGET).await;
    let ticket = proxy.admit(site.upstream(None));
    manifest(&ticket, &image).await;
    let answer = blob(&ticket, &digest, None).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    let said = bytes(answer).await.unwrap();
    assert!(String::from_utf8_lossy(&said).contains("5000 bytes or more, its manifest says 4999"));
    assert_eq!(ticket.counts(), Counts::default());
}

#[tokio::test]
async fn a_manifest_that_breaks_off_is_no_fault_of_the_image() {
    let site = Site::new().await;
    let image = image(&site.registry, &Digest::of(b"any"), 3);
    site.registry.state.lock().unwrap().cuts = vec![10];
    let proxy = proxy(site.folder.path(), BUDGET).await;
    let ticket = proxy.admit(site.upstream(None));
    assert_eq!(manifest(&ticket, &image).await.status(), StatusCode::BAD_GATEWAY);
    assert_eq!(ticket.failure().unwrap().blame, Blame::Way);
    assert_eq!(manifest(&ticket, &image).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_registry_that_is_busy_is_asked_again_and_one_that_stays_so_is_no_fault_of_the_image() {
    let site = Site::new().await;
    let data = layer(3000);
    let digest = site.registry.hold(&data);
    let image = image(&site.registry, &digest, 3000);
    let proxy = proxy(site.folder.path(), BUDGET).await;
    let ticket = proxy.admit(site.upstream(None));
    assert_eq!(manifest(&ticket, &image).await.status(), StatusCode::OK);
    site.registry.state.lock().unwrap().refusals = vec![429; 4];
    let answer = blob(&ticket, &digest, None).await;
    assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
    assert!(String::from_utf8_lossy(&bytes(answer).await.unwrap()).contains("status 429"));
    assert_eq!(ticket.failure().unwrap().blame, Blame::Way);
    site.registry.state.lock().unwrap().refusals = vec![429, 503];
    assert_eq!(bytes(blob(&ticket, &digest, None).await).await.unwrap(), data);
}

#[tokio::test]
async fn a_blob_over_the_budget_is_refused_with_the_reason_and_leaves_nothing() {
    let site = Site::new().await;
    let digest = site.registry.hold(&layer(5000));
    let proxy = proxy(site.folder.path(), Size(4999)).await;
    let answer = blob(&proxy.admit(site.upstream(None)), &digest, None).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN, "Docker does not ask again");
    let said = bytes(answer).await.unwrap();
    assert!(String::from_utf8_lossy(&said).contains("5000 bytes, more than"), "{said:?}");
    assert_eq!(Store::open(site.folder.path(), BUDGET).unwrap().bytes(), Size(0));
}

#[tokio::test]
async fn nobody_without_the_token_of_the_pull_gets_anything() {
    let site = Site::new().await;
    let digest = site.registry.hold(b"secret layer");
    let proxy = proxy(site.folder.path(), BUDGET).await;
    let (one, two) = (proxy.admit(site.upstream(None)), proxy.admit(site.upstream(None)));
    let repository = one.repository();
    let (address, name) = repository.split_once('/').unwrap();
    let path = format!("/v2/{name}/blobs/{digest}");
    for fields in [vec![], vec![("authorization", "Basic ZWRnZWxvb206d3Jvbmc=")]] {
        let answer = ask(address, &path, &fields).await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
        assert!(answer.headers().contains_key("www-authenticate"));
    }
    let other = login(&two);
    assert_eq!(ask(address, &path, &[("authorization", &other)]).await.status(), StatusCode::NOT_FOUND);
    let own = login(&one);
    for path in ["/v2/", "/v2"] {
        assert_eq!(ask(address, path, &[("authorization", &own)]).await.status(), StatusCode::OK);
    }
    for odd in ["/", "/v2/../../etc/passwd", "/v2/pull//blobs/x", &format!("/v2/{name}/tags/list")] {
        assert_eq!(
            ask(address, odd, &[("authorization", &own)]).await.status(),
            StatusCode::NOT_FOUND,
            "{odd}"
        );
    }
    drop(one);
    assert_eq!(ask(address, &path, &[("authorization", &own)]).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(two.counts(), Counts::default());
    assert_eq!(site.registry.sent(&digest), 0);
}

#[tokio::test]
async fn a_registry_gets_the_login_that_it_asks_for() {
    let site = Site::new().await;
    let basic = ("Basic YW5uOnNlY3JldA==".to_owned(), "Basic realm=\"r\"".to_owned());
    let realm = format!("http://{}/token", site.registry.address);
    let challenge = format!("Bearer realm=\"{realm}\",service=\"test\",scope=\"repository:r/i:pull\"");
    let bearer = ("Bearer t0ken".to_owned(), challenge);
    let credentials = || Login { username: "ann".to_owned(), password: Secret::from("secret".to_owned()) };
    for (at, wanted) in [basic, bearer].into_iter().enumerate() {
        site.registry.state.lock().unwrap().login = Some(wanted);
        let digest = site.registry.hold(format!("layer {at}").as_bytes());
        let proxy = proxy(&site.folder.path().join(at.to_string()), BUDGET).await;
        let ticket = proxy.admit(site.upstream(Some(credentials())));
        assert_eq!(bytes(blob(&ticket, &digest, None).await).await.unwrap(), format!("layer {at}"));
    }
    let digest = site.registry.hold(b"for members");
    site.registry.state.lock().unwrap().login = Some(("Basic x".to_owned(), "Basic realm=\"r\"".to_owned()));
    let proxy = proxy(&site.folder.path().join("none"), BUDGET).await;
    let answer = blob(&proxy.admit(site.upstream(None)), &digest, None).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    assert!(String::from_utf8_lossy(&bytes(answer).await.unwrap()).contains("status 401"));
}
