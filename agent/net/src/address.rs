//! The addresses that this node has on its interfaces.

use crate::kernel::KernelError;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// An address and the mask of its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    pub address: Ipv4Addr,
    pub mask: Ipv4Addr,
}

impl Address {
    /// The other address is in the same network.
    #[must_use]
    pub fn is_beside(self, other: Ipv4Addr) -> bool {
        self.address.to_bits() & self.mask.to_bits() == other.to_bits() & self.mask.to_bits()
    }
}

/// The IPv4 addresses of each interface of the calling thread's network namespace, in the kernel's order.
pub fn addresses() -> Result<BTreeMap<String, Vec<Address>>, KernelError> {
    let refused = |errno: nix::errno::Errno| KernelError::Refused { errno: errno as i32 };
    let mut found: BTreeMap<String, Vec<Address>> = BTreeMap::new();
    for listed in getifaddrs().map_err(refused)? {
        let (Some(address), Some(mask)) = (ipv4(listed.address), ipv4(listed.netmask)) else { continue };
        found.entry(listed.interface_name).or_default().push(Address { address, mask });
    }
    Ok(found)
}

fn ipv4(address: Option<SockaddrStorage>) -> Option<Ipv4Addr> {
    Some(address?.as_sockaddr_in()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_its_network() {
        let loopback = Address { address: Ipv4Addr::LOCALHOST, mask: Ipv4Addr::new(255, 0, 0, 0) };
        assert!(addresses().unwrap().values().flatten().any(|address| *address == loopback));
        assert!(loopback.is_beside(Ipv4Addr::new(127, 9, 9, 9)));
        assert!(!loopback.is_beside(Ipv4Addr::new(128, 0, 0, 1)));
    }
}
