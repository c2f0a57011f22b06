//! On a real daemon: what is in a volume outlives containers, and the host's port leads to the container.

use super::super::private::{DaemonNetwork, PrivateDocker};
use super::*;
use crate::engine::fake::{document, owner, spec};
use crate::engine::{ContainerEngine, NetworkSpec};
use bollard::models::VolumeCreateRequest;
use bollard::query_parameters::{
    DownloadFromContainerOptionsBuilder, InspectContainerOptions, UploadToContainerOptionsBuilder,
};
use bollard::{Docker as Client, body_full};
use edgeloom_common::desired::ImageRef;
use futures_util::StreamExt;
use std::time::Duration;

const BRIDGE: &str = "edgeloom-hosts";
const TRIAL_MAX: Duration = Duration::from_secs(300);

fn keeping(image: &ImageRef) -> ContainerSpec {
    let from = Origin::Volume("data".parse().unwrap());
    ContainerSpec {
        image: image.clone(),
        command: vec!["/app".to_owned()],
        ports: vec![HostPort { port: 18_081, protocol: Protocol::Udp, container: 53 }],
        mounts: vec![Mount { from, path: "/data".to_owned(), read_only: false }],
        ..spec("keeps", "hash")
    }
}

/// Writes a file into the folder of a container.
async fn write(client: &Client, id: &str, text: &str) {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, "note", text.as_bytes()).unwrap();
    let options = UploadToContainerOptionsBuilder::new().path("/data").build();
    let body = body_full(archive.into_inner().unwrap().into());
    client.upload_to_container(id, Some(options), body).await.unwrap();
}

/// The file, as an archive; none if it is not there.
async fn read(client: &Client, id: &str) -> Option<String> {
    let options = DownloadFromContainerOptionsBuilder::new().path("/data/note").build();
    let pieces: Vec<_> = client.download_from_container(id, Some(options)).collect().await;
    let mut bytes = Vec::new();
    for piece in pieces {
        bytes.extend(piece.ok()?);
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

async fn a_volume_outlives_containers(engine: &Docker, client: &Client, image: &ImageRef) {
    let network = NetworkSpec { bridge: BRIDGE.to_owned(), pool: document(1, vec![]).pool };
    engine.ensure_network(&network).await.unwrap();
    let spec = keeping(image);
    let first = engine.create(&spec, BRIDGE).await.unwrap();
    engine.start(&first).await.unwrap();
    let made = client.inspect_container(&first, None::<InspectContainerOptions>).await.unwrap();
    let ports = made.network_settings.unwrap().ports.unwrap();
    let led = ports["53/udp"].as_ref().unwrap()[0].host_port.clone();
    assert_eq!(led.as_deref(), Some("18081"));
    write(client, &first, "kept over restarts").await;
    engine.remove(&first).await.unwrap();
    let second = engine.create(&spec, BRIDGE).await.unwrap();
    engine.start(&second).await.unwrap();
    assert!(read(client, &second).await.unwrap().contains("kept over restarts"));
    let held: HeldVolume = "j/keeps/data".parse().unwrap();
    assert_eq!(engine.volumes().await.unwrap(), std::slice::from_ref(&held));
    let refused = engine.remove_volume(&held).await.unwrap_err().to_string();
    assert!(refused.contains("in use"), "{refused}");
    engine.remove(&second).await.unwrap();
}

async fn a_volume_is_let_go_by_its_name_if_it_is_ours(engine: &Docker, client: &Client, image: &ImageRef) {
    let id = engine.create(&keeping(image), BRIDGE).await.unwrap();
    engine.remove(&id).await.unwrap();
    let theirs =
        VolumeCreateRequest { name: Some("edgeloom_j_keeps_theirs".to_owned()), ..Default::default() };
    client.create_volume(theirs).await.unwrap();
    let named =
        |name: &str| HeldVolume { volume: name.parse().unwrap(), ..held("edgeloom_j_keeps_x").unwrap() };
    assert_eq!(engine.volumes().await.unwrap(), [named("data")]);
    for name in ["data", "data", "theirs"] {
        engine.remove_volume(&named(name)).await.unwrap();
    }
    assert_eq!(engine.volumes().await.unwrap(), []);
    client.inspect_volume("edgeloom_j_keeps_theirs").await.unwrap();
}

async fn a_purge_takes_our_volumes_alone(engine: &Docker, client: &Client, image: &ImageRef) {
    let id = engine.create(&keeping(image), BRIDGE).await.unwrap();
    engine.remove(&id).await.unwrap();
    let name = volume(&TaskKey::of(&keeping(image)), &"data".parse().unwrap());
    assert_eq!(name, "edgeloom_j_keeps_data");
    let labels = client.inspect_volume(&name).await.unwrap().labels;
    assert_eq!(labels.get(label::NODE), Some(&owner().node.to_string()));
    let others = VolumeCreateRequest { name: Some("theirs".to_owned()), ..Default::default() };
    client.create_volume(others).await.unwrap();
    engine.remove_volumes().await.unwrap();
    engine.remove_volumes().await.unwrap();
    assert!(client.inspect_volume(&name).await.is_err());
    client.inspect_volume("theirs").await.unwrap();
}

#[tokio::test]
async fn volumes_stay_and_ports_lead_to_containers() {
    let network = DaemonNetwork { enter: ["unshare", "--net"], tables: "--iptables=false" };
    let Some(mut docker) = PrivateDocker::start(network) else { return };
    let trial = async {
        let client = docker.client().await;
        let image = docker.import(&client).await;
        let engine = Docker::new(docker.socket(), owner());
        a_volume_outlives_containers(&engine, &client, &image).await;
        a_volume_is_let_go_by_its_name_if_it_is_ours(&engine, &client, &image).await;
        a_purge_takes_our_volumes_alone(&engine, &client, &image).await;
    };
    tokio::time::timeout(TRIAL_MAX, trial).await.expect("a daemon that hangs fails the test");
}

#[test]
fn a_link_out_of_an_allowed_folder_is_seen_through() {
    let folder = tempfile::tempdir().unwrap();
    let open = folder.path().join("open");
    std::fs::create_dir_all(open.join("inner")).unwrap();
    std::os::unix::fs::symlink("/etc", open.join("out")).unwrap();
    std::os::unix::fs::symlink(&open, folder.path().join("in")).unwrap();
    let hosting = Hosting { folders: vec![open.clone()], own_ports: Vec::new() };
    let allows = |folder: &Path| hosting.allows(folder.to_str().unwrap()).is_ok();
    for good in [open.clone(), open.join("inner"), folder.path().join("in/inner")] {
        assert!(allows(&good), "{good:?}");
    }
    for bad in [folder.path().to_owned(), open.join("out"), open.join("../open2"), open.join("absent")] {
        assert!(!allows(&bad), "{bad:?}");
    }
}
