//! The messages of rtnetlink that are used here.
//!
//! The library's own enum knows every kind and every attribute of all of them: with it each agent carried a quarter
//! of a megabyte of code for bonds, tunnels and their like that it never reads. Numbers are of linux/rtnetlink.h.

use super::link::LinkMessage;
use super::namespace::NamespaceMessage;
use netlink_packet_core::{
    DecodeError, Emitable, NetlinkDeserializable, NetlinkHeader, NetlinkSerializable, Parseable,
};
use netlink_packet_route::neighbour::NeighbourMessage;
use netlink_packet_route::route::RouteMessage;
use netlink_packet_route::rule::RuleMessage;
use netlink_packet_route::tc::TcMessage;

/// One message.
#[derive(Debug)]
pub(crate) enum Message {
    NewLink(LinkMessage),
    DelLink(LinkMessage),
    GetLink(LinkMessage),
    NewRoute(RouteMessage),
    DelRoute(RouteMessage),
    GetRoute(RouteMessage),
    DelNeighbour(NeighbourMessage),
    NewRule(RuleMessage),
    DelRule(RuleMessage),
    GetRule(RuleMessage),
    NewQueueDiscipline(TcMessage),
    DelQueueDiscipline(TcMessage),
    GetQueueDiscipline(TcMessage),
    NewTrafficClass(TcMessage),
    DelTrafficClass(TcMessage),
    GetTrafficClass(TcMessage),
    NewNamespace(NamespaceMessage),
    GetNamespace(NamespaceMessage),
    /// Of another kind: that something changed.
    Other,
}

impl Message {
    fn parts(&self) -> (u16, &dyn Emitable) {
        match self {
            Self::NewLink(message) => (16, message),
            Self::DelLink(message) => (17, message),
            Self::GetLink(message) => (18, message),
            Self::NewRoute(message) => (24, message),
            Self::DelRoute(message) => (25, message),
            Self::GetRoute(message) => (26, message),
            Self::DelNeighbour(message) => (29, message),
            Self::NewRule(message) => (32, message),
            Self::DelRule(message) => (33, message),
            Self::GetRule(message) => (34, message),
            Self::NewQueueDiscipline(message) => (36, message),
            Self::DelQueueDiscipline(message) => (37, message),
            Self::GetQueueDiscipline(message) => (38, message),
            Self::NewTrafficClass(message) => (40, message),
            Self::DelTrafficClass(message) => (41, message),
            Self::GetTrafficClass(message) => (42, message),
            Self::NewNamespace(message) => (88, message),
            Self::GetNamespace(message) => (90, message),
            Self::Other => unreachable!("is only received"),
        }
    }
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        self.parts().0
    }

    fn buffer_len(&self) -> usize {
        self.parts().1.buffer_len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        self.parts().1.emit(buffer);
    }
}

/// What is listed or told of; of what the kernel is asked for, it sends nothing back.
impl NetlinkDeserializable for Message {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        Ok(match header.message_type {
            16 => Self::NewLink(LinkMessage::parse(payload)?),
            17 => Self::DelLink(LinkMessage::parse(payload)?),
            24 => Self::NewRoute(RouteMessage::parse(payload)?),
            32 => Self::NewRule(RuleMessage::parse(payload)?),
            36 => Self::NewQueueDiscipline(TcMessage::parse(payload)?),
            40 => Self::NewTrafficClass(TcMessage::parse(payload)?),
            88 => Self::NewNamespace(NamespaceMessage::parse(payload)?),
            _ => Self::Other,
        })
    }
}
