//! What the operator said about the node's links, checked once.

use crate::error::NetError;
use crate::tag::NEIGHBOURS_MAX;
use edgeloom_common::ids::NodeId;
use edgeloom_common::units::BitRate;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Longest interface name (`IFNAMSIZ` less its NUL).
const INTERFACE_NAME_MAX: usize = 15;

/// The node's side of the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Docker's bridge for the pool.
    pub bridge: String,
    pub links: Vec<LinkSettings>,
    /// Where the record of sysctls as they were found is kept.
    pub state_dir: PathBuf,
}

/// One link to one neighbour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSettings {
    pub neighbour: NodeId,
    pub interface: String,
    /// As configured; the document may know a newer one.
    pub neighbour_address: Ipv4Addr,
    /// Declared wire rate.
    pub capacity: Option<BitRate>,
}

impl Settings {
    /// Sorts the links by neighbour, whose place then is the neighbour's index, and refuses what would
    /// make two links one or name a file outside the interface's own.
    pub(crate) fn checked(mut self) -> Result<Self, NetError> {
        self.links.sort_by(|a, b| a.neighbour.cmp(&b.neighbour));
        if self.links.len() > NEIGHBOURS_MAX {
            return Err(NetError::TooManyLinks { links: self.links.len(), max: NEIGHBOURS_MAX });
        }
        check_interface(&self.bridge)?;
        let mut neighbours = BTreeSet::new();
        for link in &self.links {
            check_interface(&link.interface)?;
            if !neighbours.insert(&link.neighbour) {
                return Err(NetError::DuplicateNeighbour { neighbour: link.neighbour.clone() });
            }
            if link.interface == self.bridge {
                return Err(NetError::BridgeAsLink { interface: link.interface.clone() });
            }
        }
        Ok(self)
    }

    /// These settings with the addresses that the neighbours have now. One that no host can have is not taken.
    pub(crate) fn following(&self, neighbours: &BTreeMap<NodeId, Ipv4Addr>) -> Self {
        let mut settings = self.clone();
        for link in &mut settings.links {
            let told = neighbours.get(&link.neighbour).copied();
            link.neighbour_address = told.filter(is_of_a_host).unwrap_or(link.neighbour_address);
        }
        settings
    }

    /// The names of all link interfaces, each once.
    pub(crate) fn interfaces(&self) -> BTreeSet<&str> {
        self.links.iter().map(|link| link.interface.as_str()).collect()
    }
}

/// An address that packets can be sent to over a link.
pub(crate) fn is_of_a_host(address: &Ipv4Addr) -> bool {
    let [first, ..] = address.octets();
    !(first == 0 || address.is_loopback() || address.is_multicast() || address.is_broadcast())
}

/// An interface name becomes part of a path below /proc/sys.
fn check_interface(name: &str) -> Result<(), NetError> {
    let fits = (1..=INTERFACE_NAME_MAX).contains(&name.len());
    let plain = name.chars().all(|c| c.is_ascii_graphic() && c != '/');
    let reserved = ["all", "default", ".", ".."].contains(&name);
    if fits && plain && !reserved {
        return Ok(());
    }
    Err(NetError::InterfaceName { name: name.chars().take(64).collect(), max: INTERFACE_NAME_MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(neighbour: &str, interface: &str) -> LinkSettings {
        LinkSettings {
            neighbour: neighbour.parse().unwrap(),
            interface: interface.to_owned(),
            neighbour_address: Ipv4Addr::new(10, 61, 0, 2),
            capacity: None,
        }
    }

    fn settings(links: Vec<LinkSettings>) -> Settings {
        Settings { bridge: "edgeloom0".to_owned(), links, state_dir: PathBuf::from("/nonexistent") }
    }

    #[test]
    fn the_order_of_the_file_does_not_matter() {
        let checked = settings(vec![link("n3", "b"), link("n2", "a")]).checked().unwrap();
        assert_eq!(checked.links[0].neighbour.as_str(), "n2");
    }

    #[test]
    fn a_neighbour_s_newer_address_is_followed_if_a_host_can_have_it() {
        let settings = settings(vec![link("n2", "a"), link("n3", "b")]);
        let told = |address: &str| BTreeMap::from([("n3".parse().unwrap(), address.parse().unwrap())]);
        let moved = settings.following(&told("10.61.0.9"));
        let addresses: Vec<String> =
            moved.links.iter().map(|link| link.neighbour_address.to_string()).collect();
        assert_eq!(addresses, ["10.61.0.2", "10.61.0.9"]);
        for bad in ["0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255"] {
            assert_eq!(settings.following(&told(bad)), settings, "{bad}");
        }
    }

    #[test]
    fn names_that_leave_their_folder_are_refused() {
        for name in ["", "..", "a/b", "all", "sixteen-letters-"] {
            let refused = settings(vec![link("n2", name)]).checked();
            assert!(matches!(refused, Err(NetError::InterfaceName { .. })), "{name}");
        }
    }

    #[test]
    fn a_neighbour_has_one_link() {
        let refused = settings(vec![link("n2", "a"), link("n2", "b")]).checked();
        assert!(matches!(refused, Err(NetError::DuplicateNeighbour { .. })));
    }
}
