//! Five thousand images: what they take of memory, and what watching them costs the registry.

use super::site::{Site, Watcher, whole};
use super::{current, names};
use axum::http::Method;
use std::time::{Duration, Instant};

const IMAGES: usize = 5000;
const MEMORY_MAX: u64 = 50 * 1024 * 1024;
const PERIOD: Duration = Duration::from_secs(2);
/// Questions a period once most tags are known to stay as they are, and how long that may take.
const FEW: usize = IMAGES / 4;
const PERIODS_MAX: usize = 90;

/// Resident memory of this process, without pages of files.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// The registry is in the process, too, and what it keeps is counted; it makes its answers from numbers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_images_take_little_memory_and_one_question_a_period_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::start(names(IMAGES)).await;
    site.content.lock().unwrap().page = 1000;
    let before = resident_bytes();
    let begun = Instant::now();
    let cache = Some(folder.path().join("registry"));
    let watcher = Watcher::start(&whole(&[&site.host]), cache.clone(), PERIOD);
    let mut peak = 0;
    let known = || watcher.registry.images("").images.iter().filter(|it| current(it)).count();
    while known() < IMAGES {
        peak = resident_bytes().max(peak);
        site.content.lock().unwrap().asked = Vec::new();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let learnt = begun.elapsed();
    let mut heads = Vec::new();
    // Those that were learnt late, on a busy machine, are asked for in every period at first, as the first ones were.
    while heads.len() < PERIODS_MAX && heads.last().is_none_or(|count| FEW < *count) {
        site.content.lock().unwrap().asked = Vec::new();
        tokio::time::sleep(PERIOD).await;
        heads.push(site.asked(&Method::HEAD, "/manifests/1"));
    }
    site.content.lock().unwrap().asked = Vec::new();
    let taken = resident_bytes().max(peak).saturating_sub(before);
    let file = std::fs::metadata(folder.path().join("registry/images.log")).unwrap().len();
    println!(
        "{IMAGES} images learnt in {:.1} s; memory at most +{:.1} MiB; file {:.1} MiB; HEADs in periods after: {heads:?}",
        learnt.as_secs_f64(),
        taken as f64 / 1024.0 / 1024.0,
        file as f64 / 1024.0 / 1024.0,
    );
    assert!(taken < MEMORY_MAX, "{taken} bytes");
    assert!(heads.iter().all(|count| *count <= IMAGES + IMAGES / 50), "{heads:?}");
    assert!(heads.last().is_some_and(|count| *count <= FEW), "questions grow fewer: {heads:?}");
    watcher.registry.save();
    drop(watcher);
    let begun = Instant::now();
    let watcher = Watcher::start(&whole(&[]), cache, PERIOD);
    println!("opened again in {:.2} s", begun.elapsed().as_secs_f64());
    assert_eq!(
        watcher.registry.images("").images.iter().filter(|it| !it.platforms.is_empty()).count(),
        IMAGES
    );
}
