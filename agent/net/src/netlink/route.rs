//! Routes: ours, and those of others in the main table that a pool may not overlap.

use super::message::Message;
use super::socket::Connection;
use crate::kernel::KernelError;
use crate::object::{Prefix, Route};
use crate::tag::{MAIN_TABLE, PROTOCOL};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use std::net::Ipv4Addr;

/// One IPv4 route as listed; interfaces are indices.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) ours: bool,
    pub(crate) table: u32,
    pub(crate) destination: Prefix,
    pub(crate) gateway: Option<Ipv4Addr>,
    pub(crate) index: Option<u32>,
}

/// Every unicast route of ours and every one in the main table.
pub(crate) fn list(connection: &mut Connection<Message>) -> Result<Vec<Listed>, KernelError> {
    let request = || {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet;
        Message::GetRoute(message)
    };
    connection.dump(request, |message| match message {
        Message::NewRoute(route) => read(&route),
        _ => None,
    })
}

fn read(route: &RouteMessage) -> Option<Listed> {
    if route.header.kind != RouteType::Unicast || route.header.address_family != AddressFamily::Inet {
        return None;
    }
    let address = Ipv4Addr::UNSPECIFIED;
    let mut listed = Listed {
        ours: u8::from(route.header.protocol) == PROTOCOL,
        table: u32::from(route.header.table),
        destination: Prefix { address, len: route.header.destination_prefix_length },
        gateway: None,
        index: None,
    };
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Table(table) => listed.table = *table,
            RouteAttribute::Destination(RouteAddress::Inet(address)) => listed.destination.address = *address,
            RouteAttribute::Gateway(RouteAddress::Inet(gateway)) => listed.gateway = Some(*gateway),
            RouteAttribute::Oif(index) => listed.index = Some(*index),
            _ => {}
        }
    }
    (listed.ours || listed.table == MAIN_TABLE).then_some(listed)
}

/// Makes a route, or changes where the one to the same destination goes.
pub(crate) fn put(
    connection: &mut Connection<Message>,
    route: &Route,
    index: u32,
) -> Result<(), KernelError> {
    let message = Message::NewRoute(message(route, index));
    connection.request(message, NLM_F_CREATE | NLM_F_REPLACE)
}

/// Removes a route of ours.
pub(crate) fn remove(
    connection: &mut Connection<Message>,
    route: &Route,
    index: u32,
) -> Result<(), KernelError> {
    connection.request(Message::DelRoute(message(route, index)), 0)
}

fn message(route: &Route, index: u32) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = AddressFamily::Inet;
    message.header.destination_prefix_length = route.destination.len;
    // Numbers above 255 go into the attribute alone.
    message.header.table = RouteHeader::RT_TABLE_UNSPEC;
    message.header.protocol = RouteProtocol::from(PROTOCOL);
    message.header.scope = RouteScope::Universe;
    message.header.kind = RouteType::Unicast;
    message.header.flags = RouteFlags::Onlink;
    message.attributes.push(RouteAttribute::Table(route.table));
    if route.destination.len > 0 {
        message.attributes.push(RouteAttribute::Destination(RouteAddress::Inet(route.destination.address)));
    }
    message.attributes.push(RouteAttribute::Gateway(RouteAddress::Inet(route.gateway)));
    message.attributes.push(RouteAttribute::Oif(index));
    message
}
