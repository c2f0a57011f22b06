//! Map elements: a flow's key as the rules build it in registers, and a 32-bit value.

use super::{Batch, add as add_message};
use crate::object::Element;
use crate::tag::NFT_TABLE;
use edgeloom_common::desired::{FlowKey, Protocol};
use netlink_packet_core::NLM_F_CREATE;
use netlink_packet_netfilter::nftables::{
    DataAttribute, ListAttribute, NfTablesMessage, SetElementAttribute, SetElementList, SetElementMessage,
};
use std::net::Ipv4Addr;

/// Each field fills whole 32-bit registers: source, destination, protocol, port.
pub(super) const KEY_LEN: usize = 16;
/// Elements of one message: its list is a 16-bit attribute, and an element takes 48 bytes.
const CHUNK: usize = 400;

/// Adds elements that the map does not have.
pub(super) fn add(batch: &mut Batch, map: &str, elements: &[Element]) {
    for chunk in elements.chunks(CHUNK) {
        add_message(batch, NfTablesMessage::NewSetElement(message(map, chunk)), NLM_F_CREATE);
    }
}

/// Removes elements that the map has.
pub(super) fn remove(batch: &mut Batch, map: &str, elements: &[Element]) {
    for chunk in elements.chunks(CHUNK) {
        add_message(batch, NfTablesMessage::DeleteSetElement(message(map, chunk)), 0);
    }
}

fn message(map: &str, elements: &[Element]) -> SetElementMessage {
    let elements = elements.iter().map(|element| {
        ListAttribute::Element(vec![
            SetElementAttribute::Key(DataAttribute::Value(key_bytes(element.key).to_vec())),
            // Marks and classids are compared by the kernel as its own integers.
            SetElementAttribute::Data(DataAttribute::Value(element.value.to_ne_bytes().to_vec())),
        ])
    });
    SetElementMessage {
        attributes: vec![
            SetElementList::Table(NFT_TABLE.to_owned()),
            SetElementList::Set(map.to_owned()),
            SetElementList::Elements(elements.collect()),
        ],
    }
}

fn key_bytes(key: FlowKey) -> [u8; KEY_LEN] {
    let mut bytes = [0; KEY_LEN];
    bytes[0..4].copy_from_slice(&key.source.octets());
    bytes[4..8].copy_from_slice(&key.destination.octets());
    bytes[8] = key.protocol.number();
    bytes[12..14].copy_from_slice(&key.destination_port.to_be_bytes());
    bytes
}

/// Reads one listed element; none when it is not of our shape.
pub(super) fn read(attributes: &[SetElementAttribute]) -> Option<Element> {
    let (mut key, mut value) = (None, None);
    for attribute in attributes {
        match attribute {
            SetElementAttribute::Key(DataAttribute::Value(bytes)) => key = parse_key(bytes),
            SetElementAttribute::Data(DataAttribute::Value(bytes)) => {
                value = bytes.as_slice().try_into().ok().map(u32::from_ne_bytes);
            }
            _ => {}
        }
    }
    Some(Element { key: key?, value: value? })
}

fn parse_key(bytes: &[u8]) -> Option<FlowKey> {
    let bytes: &[u8; KEY_LEN] = bytes.try_into().ok()?;
    let address = |at: usize| Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
    let protocols = [Protocol::Tcp, Protocol::Udp];
    Some(FlowKey {
        source: address(0),
        destination: address(4),
        protocol: protocols.into_iter().find(|protocol| protocol.number() == bytes[8])?,
        destination_port: u16::from_be_bytes([bytes[12], bytes[13]]),
    })
}
