//! The registries' images on the command line, before any job names one.

use super::Daemon;
use super::secrets::served;
use edgeloom_cluster::fake::Guard;
use edgeloom_common::images::{ImageList, ImageState};
use std::time::Duration;

/// The answer of `edgeloom images`, once this holds of it.
fn until(daemon: &Daemon, is: impl Fn(&ImageList) -> bool) -> ImageList {
    for _ in 0..600 {
        let list = serde_json::from_slice(&daemon.edgeloom(&["images", "-o", "json"], "").stdout).unwrap();
        if is(&list) {
            return list;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("it does not come to pass");
}

#[test]
fn images_of_the_registries_are_listed_and_those_out_of_reach_are_told() {
    let registry = served(Guard::Everybody);
    let more = format!(
        "[registries]\ninsecure = [{registry:?}, \"127.0.0.1:9\"]\n[registries.watch]\nperiod = \"1s\"\n"
    );
    let daemon = Daemon::configured(&more, "info");
    let list = until(&daemon, |list| list.images.iter().any(|image| image.state == ImageState::Current));
    assert_eq!(list.images[0].name, format!("{registry}/app:1"));
    until(&daemon, |list| list.registries.iter().any(|it| it.away_since_ms.is_some()));
    let text = String::from_utf8(daemon.edgeloom(&["images", "app"], "").stdout).unwrap();
    assert!(text.contains("current") && text.contains("registry 127.0.0.1:9 is away since"), "{text}");
}
