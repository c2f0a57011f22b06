//! Readings of kernel and network.

use super::{Places, text};
use crate::config::Link;
use crate::doctor::{ForwardingFound, LinkFound, NetworkFound, PortFound, Unread};
use crate::store::{DesiredFile, Lock, SECRETS_KEY};
use edgeloom_net::{Kernel, Linux, NetCapabilities, Network, Prefix, Settings};
use edgeloom_observe::links::PORT;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;

/// Tries what the kernel can do.
pub(super) fn kernel(places: &Places) -> Result<NetCapabilities, Unread> {
    let Places { bridge, state_dir, .. } = places;
    let settings = Settings { bridge: bridge.clone(), links: Vec::new(), state_dir: state_dir.clone() };
    let mut network = Network::open(settings).map_err(|error| error.to_string())?;
    Ok(network.probe())
}

pub(super) fn found(places: &Places) -> Result<NetworkFound, Unread> {
    let listed = Linux::open().and_then(|mut linux| linux.list(&BTreeSet::new()));
    let found = listed.map_err(|error| format!("the network cannot be listed: {error}"))?;
    let link = |link: &Link| LinkFound {
        interface: link.interface.clone(),
        up: found.interfaces.get(&link.interface).copied(),
        mtu: mtu(&link.interface),
    };
    Ok(NetworkFound {
        bridge: places.bridge.clone(),
        bridge_mtu: mtu(&places.bridge),
        links: places.links.iter().map(link).collect(),
        pool: pool(&places.state_dir),
        forwarding: ForwardingFound { accepted: !found.accepts.is_empty(), chain: found.forward_chain },
        routes: found.foreign_routes,
    })
}

fn mtu(interface: &str) -> Option<u32> {
    let path = Path::new("/sys/class/net").join(interface).join("mtu");
    text(&path).ok()?.trim().parse().ok()
}

/// The pool of the desired state on disk.
fn pool(state_dir: &Path) -> Option<Prefix> {
    if !state_dir.is_dir() {
        return None;
    }
    let document = DesiredFile::open(state_dir, state_dir.join(SECRETS_KEY)).ok()?.peek()?;
    Some(Prefix::from(&document.pool))
}

/// Loaded, built in, or among the modules that can be loaded.
pub(super) fn vxlan() -> Result<Option<String>, Unread> {
    let loaded = Path::new("/sys/module/vxlan");
    if loaded.exists() {
        return Ok(Some(loaded.display().to_string()));
    }
    let release = text(Path::new("/proc/sys/kernel/osrelease"))?;
    let modules = Path::new("/lib/modules").join(release.trim());
    let listed = |name: &str| {
        let text = text(&modules.join(name))?;
        let line = text.lines().find(|line| line.contains("/vxlan.ko"));
        Ok::<_, Unread>(line.and_then(|line| line.split(':').next()).map(str::to_owned))
    };
    match listed("modules.builtin")? {
        Some(place) => Ok(Some(place)),
        None => listed("modules.dep"),
    }
}

/// Takes the port for a moment, on every address that the agent would.
pub(super) fn port(places: &Places) -> Result<PortFound, Unread> {
    let mut addresses: Vec<Ipv4Addr> = places.links.iter().filter_map(|link| link.address).collect();
    if addresses.is_empty() {
        addresses.push(Ipv4Addr::UNSPECIFIED);
    }
    for address in addresses {
        match UdpSocket::bind((address, PORT)) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                let ours = Lock::is_held(&places.state_dir);
                return Ok(if ours { PortFound::Ours } else { PortFound::Taken });
            }
            Err(error) => return Err(format!("{address}:{PORT}: {error}")),
        }
    }
    Ok(PortFound::Free)
}
