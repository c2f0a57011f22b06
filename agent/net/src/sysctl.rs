//! The switches of the network stack that forwarding along chosen paths needs.
//!
//! Loose reverse-path filtering (2): a flow may arrive by another link than its way back; the kernel
//! takes the larger of `all` and the interface's own value. Redirects are neither sent nor accepted,
//! or a relay on a shared segment would talk its neighbours out of the chosen path. The bridge answers
//! ARP for tasks on other nodes (RFC 1027), without the random delay.

use crate::kernel::KernelError;
use crate::settings::Settings;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// The switch that forwards; writing it resets others, so it comes first both ways.
pub(crate) const IP_FORWARD: &str = "net/ipv4/ip_forward";

/// A key below /proc/sys and its value.
pub(crate) type Setting = (String, &'static str);

/// What should be set, for the interfaces that exist.
pub(crate) fn wanted(settings: &Settings, interfaces: &BTreeMap<String, bool>) -> Vec<Setting> {
    let mut wanted: Vec<Setting> = vec![(IP_FORWARD.to_owned(), "1")];
    let links = settings.interfaces();
    let present = links.into_iter().filter(|interface| interfaces.contains_key(*interface));
    for interface in std::iter::once("all").chain(present) {
        wanted.push((of_interface(interface, "rp_filter"), "2"));
        wanted.push((of_interface(interface, "send_redirects"), "0"));
        wanted.push((of_interface(interface, "accept_redirects"), "0"));
    }
    if interfaces.contains_key(&settings.bridge) {
        wanted.push((of_interface(&settings.bridge, "rp_filter"), "2"));
        wanted.push((of_interface(&settings.bridge, "send_redirects"), "0"));
        wanted.push((of_interface(&settings.bridge, "proxy_arp"), "1"));
        wanted.push((format!("net/ipv4/neigh/{}/proxy_delay", settings.bridge), "0"));
    }
    wanted
}

fn of_interface(interface: &str, name: &str) -> String {
    format!("net/ipv4/conf/{interface}/{name}")
}

/// Reads a key as the calling thread's namespace has it; none when it does not exist.
pub(crate) fn read(key: &str) -> Result<Option<String>, KernelError> {
    match std::fs::read_to_string(Path::new("/proc/sys").join(key)) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(KernelError::Io(error)),
    }
}

/// Writes a key in the calling thread's namespace.
pub(crate) fn write(key: &str, value: &str) -> Result<(), KernelError> {
    std::fs::write(Path::new("/proc/sys").join(key), value).map_err(KernelError::Io)
}
