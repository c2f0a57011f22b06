//! Interfaces: names, indices and state; the temporary pair that probing needs.

use super::socket::Connection;
use crate::kernel::KernelError;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};

/// One interface.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) index: u32,
    /// Up, with a carrier: a cable that is plugged in, an access point that it belongs to.
    pub(crate) up: bool,
}

/// All interfaces of the namespace.
pub(crate) fn list(connection: &mut Connection<RouteNetlinkMessage>) -> Result<Vec<Link>, KernelError> {
    connection.dump(
        || RouteNetlinkMessage::GetLink(LinkMessage::default()),
        |message| match message {
            RouteNetlinkMessage::NewLink(link) => read(&link),
            _ => None,
        },
    )
}

fn read(link: &LinkMessage) -> Option<Link> {
    let name = link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    })?;
    let up = link.header.flags.contains(LinkFlags::Up | LinkFlags::LowerUp);
    Some(Link { name, index: link.header.index, up })
}

/// Makes a pair of virtual Ethernet interfaces, down and without addresses.
pub(crate) fn add_pair(
    connection: &mut Connection<RouteNetlinkMessage>,
    name: &str,
    peer: &str,
) -> Result<(), KernelError> {
    let mut other = LinkMessage::default();
    other.attributes.push(LinkAttribute::IfName(peer.to_owned()));
    let mut link = LinkMessage::default();
    link.attributes.push(LinkAttribute::IfName(name.to_owned()));
    link.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other))),
    ]));
    connection.request(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)
}

/// Removes an interface, and its peer with it.
pub(crate) fn remove(
    connection: &mut Connection<RouteNetlinkMessage>,
    name: &str,
) -> Result<(), KernelError> {
    let mut link = LinkMessage::default();
    link.attributes.push(LinkAttribute::IfName(name.to_owned()));
    connection.request(RouteNetlinkMessage::DelLink(link), 0)
}
