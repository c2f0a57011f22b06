//! Tells the containers behind the bridge that a task has left this node: from now on the bridge answers for
//! its address.
//!
//! The bridge answers anew only when it is asked (RFC 1027), and a neighbour asks only when its entry has
//! grown old: seconds in which its packets go to an interface that is gone. A gratuitous request (RFC 5227,
//! section 3) with the bridge's own hardware address replaces the entries at once.

use crate::kernel::KernelError;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{AddressFamily, LinkAddr, MsgFlags, SockFlag, SockType, bind, send, socket};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;

const BROADCAST: [u8; 6] = [0xff; 6];
/// EtherType, hardware Ethernet, protocol IPv4, their address lengths, request.
const ARP_REQUEST: [u8; 10] = [0x08, 0x06, 0, 1, 0x08, 0x00, 6, 4, 0, 1];
const FRAME_BYTES: usize = 42;

/// Sends one request for each address.
pub(crate) fn announce(bridge: &str, addresses: &[Ipv4Addr]) -> Result<(), KernelError> {
    let missing = || KernelError::NoInterface { interface: bridge.to_owned() };
    let link = link_address(bridge)?.ok_or_else(missing)?;
    let own = link.addr().ok_or_else(missing)?;
    // Protocol 0: the socket sends, and takes nothing in.
    let socket =
        socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None).map_err(refused)?;
    bind(socket.as_raw_fd(), &link).map_err(refused)?;
    for address in addresses {
        send(socket.as_raw_fd(), &frame(own, *address), MsgFlags::empty()).map_err(refused)?;
    }
    Ok(())
}

/// The interface's hardware address as the kernel lists it, with its index.
fn link_address(interface: &str) -> Result<Option<LinkAddr>, KernelError> {
    let mut listed = getifaddrs().map_err(refused)?.filter(|listed| listed.interface_name == interface);
    Ok(listed.find_map(|listed| listed.address?.as_link_addr().copied()))
}

fn refused(errno: nix::errno::Errno) -> KernelError {
    KernelError::Refused { errno: errno as i32 }
}

/// Sender and target are the announced address; nobody's hardware address is asked for.
fn frame(own: [u8; 6], address: Ipv4Addr) -> [u8; FRAME_BYTES] {
    let mut frame = [0; FRAME_BYTES];
    frame[..6].copy_from_slice(&BROADCAST);
    frame[6..12].copy_from_slice(&own);
    frame[12..22].copy_from_slice(&ARP_REQUEST);
    frame[22..28].copy_from_slice(&own);
    frame[28..32].copy_from_slice(&address.octets());
    frame[38..].copy_from_slice(&address.octets());
    frame
}
