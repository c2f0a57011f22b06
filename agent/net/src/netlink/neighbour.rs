//! Entries of the neighbour table.

use super::message::Message;
use super::socket::Connection;
use crate::kernel::KernelError;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage};
use std::net::Ipv4Addr;

/// Forgets which hardware address an address has on an interface.
pub(crate) fn remove(
    connection: &mut Connection<Message>,
    address: Ipv4Addr,
    index: u32,
) -> Result<(), KernelError> {
    let mut message = NeighbourMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.ifindex = index;
    message.attributes.push(NeighbourAttribute::Destination(NeighbourAddress::Inet(address)));
    connection.request(Message::DelNeighbour(message), 0)
}
