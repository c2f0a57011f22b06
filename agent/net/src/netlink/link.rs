//! Interfaces: names, indices and state; the temporary pair that probing needs.
//!
//! Their messages are written and read here, without the library: of an interface it would read all that any kind
//! of driver says. Layout: `struct ifinfomsg` of linux/rtnetlink.h, then attributes.

use super::message::Message;
use super::socket::Connection;
use crate::kernel::KernelError;
use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NLM_F_CREATE, NLM_F_EXCL, NlasIterator, Parseable,
};

/// Bytes of `struct ifinfomsg`: family, type, index at 4, flags at 8, mask of changes.
const HEADER: usize = 16;
/// `IFF_UP` and `IFF_LOWER_UP` of linux/if.h: up, and with a carrier.
const UP: u32 = 0x1 | 0x1_0000;
/// linux/if_link.h.
const IFLA_IFNAME: u16 = 3;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
/// linux/veth.h.
const VETH_INFO_PEER: u16 = 1;

/// One interface.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) index: u32,
    /// Up, with a carrier: a cable that is plugged in, an access point that it belongs to.
    pub(crate) up: bool,
}

/// One port of a bridge.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) index: u32,
    /// The number of the namespace that its other end is in; none: this one, or it has no other end.
    pub(crate) namespace: Option<i32>,
}

/// What is said of an interface, as far as it is used.
#[derive(Debug, Default)]
pub(crate) struct LinkMessage {
    pub(crate) index: u32,
    flags: u32,
    /// Empty: not said.
    pub(crate) name: String,
    /// The bridge that it is a port of, and the number of the namespace that its other end is in.
    master: Option<u32>,
    namespace: Option<u32>,
    /// Makes a pair of virtual Ethernet interfaces, this one the other end.
    peer: Option<String>,
}

impl LinkMessage {
    fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.flags & UP == UP
    }

    fn bytes(&self) -> Vec<u8> {
        let mut attributes = Vec::new();
        if !self.name.is_empty() {
            let text = [self.name.as_bytes(), &[0]].concat();
            attributes.push(DefaultNla::new(IFLA_IFNAME, text));
        }
        if let Some(peer) = &self.peer {
            let peer = DefaultNla::new(VETH_INFO_PEER, Self::named(peer).bytes());
            let kind = DefaultNla::new(IFLA_INFO_KIND, b"veth".to_vec());
            let pair = [kind, DefaultNla::new(IFLA_INFO_DATA, written(&[peer]))];
            attributes.push(DefaultNla::new(IFLA_LINKINFO, written(&pair)));
        }
        let mut header = vec![0; HEADER];
        header[4..8].copy_from_slice(&self.index.to_ne_bytes());
        [header, written(&attributes)].concat()
    }
}

/// Attributes as they go into a message.
pub(super) fn written(attributes: &[DefaultNla]) -> Vec<u8> {
    let mut bytes = vec![0; attributes.buffer_len()];
    attributes.emit(&mut bytes);
    bytes
}

impl Emitable for LinkMessage {
    fn buffer_len(&self) -> usize {
        self.bytes().len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.bytes());
    }
}

impl Parseable<[u8]> for LinkMessage {
    fn parse(payload: &[u8]) -> Result<Self, DecodeError> {
        let number = |at: usize| Some(u32::from_ne_bytes(payload.get(at..at + 4)?.try_into().ok()?));
        let (Some(index), Some(flags), Some(attributes)) = (number(4), number(8), payload.get(HEADER..))
        else {
            return Err(DecodeError::invalid_buffer("ifinfomsg", payload.len(), HEADER));
        };
        let mut message = Self { index, flags, ..Self::default() };
        for attribute in NlasIterator::new(attributes) {
            let attribute = attribute?;
            let number = || Some(u32::from_ne_bytes(attribute.value().try_into().ok()?));
            match attribute.kind() {
                IFLA_IFNAME => {
                    let text = attribute.value().split(|byte| *byte == 0).next().unwrap_or_default();
                    message.name = String::from_utf8_lossy(text).into_owned();
                }
                IFLA_MASTER => message.master = number(),
                IFLA_LINK_NETNSID => message.namespace = number(),
                _ => {}
            }
        }
        Ok(message)
    }
}

/// All interfaces of the namespace.
pub(crate) fn list(connection: &mut Connection<Message>) -> Result<Vec<Link>, KernelError> {
    connection.dump(
        || Message::GetLink(LinkMessage::default()),
        |message| match message {
            Message::NewLink(link) if !link.name.is_empty() => {
                Some(Link { up: link.is_up(), index: link.index, name: link.name })
            }
            _ => None,
        },
    )
}

/// The ports of a bridge; none if it is not there.
pub(crate) fn ports(connection: &mut Connection<Message>, bridge: &str) -> Result<Vec<Port>, KernelError> {
    let links = connection.dump(
        || Message::GetLink(LinkMessage::default()),
        |message| match message {
            Message::NewLink(link) => Some(link),
            _ => None,
        },
    )?;
    let bridge = links.iter().find(|link| link.name == bridge).map(|link| link.index);
    let is_port = |link: &LinkMessage| bridge.is_some() && link.master == bridge;
    let port = |link: LinkMessage| Port {
        namespace: link.namespace.and_then(|id| i32::try_from(id).ok()),
        index: link.index,
        name: link.name,
    };
    Ok(links.into_iter().filter(is_port).map(port).collect())
}

/// Makes a pair of virtual Ethernet interfaces, down and without addresses.
pub(crate) fn add_pair(
    connection: &mut Connection<Message>,
    name: &str,
    peer: &str,
) -> Result<(), KernelError> {
    let pair = LinkMessage { peer: Some(peer.to_owned()), ..LinkMessage::named(name) };
    connection.request(Message::NewLink(pair), NLM_F_CREATE | NLM_F_EXCL)
}

/// Removes an interface, and its peer with it.
pub(crate) fn remove(connection: &mut Connection<Message>, name: &str) -> Result<(), KernelError> {
    connection.request(Message::DelLink(LinkMessage::named(name)), 0)
}

/// The same by its index, which is never another's.
pub(crate) fn remove_index(connection: &mut Connection<Message>, index: u32) -> Result<(), KernelError> {
    connection.request(Message::DelLink(LinkMessage { index, ..LinkMessage::default() }), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_cut_off_is_no_message() {
        let bytes = LinkMessage::named("eth0").bytes();
        let read = LinkMessage::parse(&bytes).unwrap();
        assert_eq!((read.name.as_str(), read.index, read.is_up()), ("eth0", 0, false));
        assert!(LinkMessage::parse(&bytes[..HEADER - 1]).is_err());
        assert!(LinkMessage::parse(&bytes[..HEADER + 5]).is_err());
        let mut up = bytes;
        up[8..12].copy_from_slice(&UP.to_ne_bytes());
        assert!(LinkMessage::parse(&up).unwrap().is_up());
    }
}
