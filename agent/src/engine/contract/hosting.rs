//! Ports of the host and its folders.

use super::{BRIDGE, task};
use crate::engine::{ContainerEngine, EngineError, Hosting};
use edgeloom_common::desired::{ContainerSpec, ImageRef};
use edgeloom_common::job::{HostPort, Mount, Origin, Protocol};

const OWN_PORT: u16 = 7118;

pub(super) async fn a_port_of_the_host_leads_to_one_container(
    engine: &impl ContainerEngine,
    image: &ImageRef,
) {
    let port = HostPort { port: 18_080, protocol: Protocol::Tcp, container: 80 };
    let spec = |name| ContainerSpec { ports: vec![port], ..task(name, image) };
    let first = engine.create(&spec("web"), BRIDGE).await.unwrap();
    engine.start(&first).await.unwrap();
    let second = engine.create(&spec("web-2"), BRIDGE).await.unwrap();
    assert!(engine.start(&second).await.is_err());
    engine.remove(&first).await.unwrap();
    engine.start(&second).await.unwrap();
    engine.remove(&second).await.unwrap();
    let own = HostPort { port: OWN_PORT, ..port };
    let refused = engine.create(&ContainerSpec { ports: vec![own], ..task("own", image) }, BRIDGE).await;
    assert_eq!(refused, Err(EngineError::OwnPort { port: OWN_PORT }));
}

pub(super) async fn a_folder_of_the_host_has_to_be_allowed(engine: &impl ContainerEngine, image: &ImageRef) {
    let spec = |folder: &str| {
        let from = Origin::Host(folder.to_owned());
        let mount = Mount { from, path: "/data".to_owned(), read_only: true };
        ContainerSpec { mounts: vec![mount], ..task("mounts", image) }
    };
    for closed in ["/etc", "/usr/nowhere", "/usr/../etc"] {
        let refused = engine.create(&spec(closed), BRIDGE).await;
        assert!(matches!(refused, Err(EngineError::HostFolder { .. })), "{closed}: {refused:?}");
    }
    let id = engine.create(&spec("/usr/share"), BRIDGE).await.unwrap();
    engine.start(&id).await.unwrap();
    engine.remove(&id).await.unwrap();
}

/// Containers may have `/usr`, and not the agent's port.
pub(super) fn allowed() -> Hosting {
    Hosting { folders: vec!["/usr".into()], own_ports: vec![OWN_PORT] }
}
