//! The nftables table `ip edgeloom`: two maps keyed by flow, and the chains that look packets up in them.
//!
//! `prerouting` and `output` set the firewall mark (the next hop), `postrouting` the skb priority (the HTB
//! class, which HTB reads directly), `masquerade` hides tasks' addresses from everything outside the pool.
//! A change is one transaction; what it does not name keeps its counters and elements.

mod element;
mod list;
mod ruleset;

pub(crate) use list::list;

use super::socket::Connection;
use crate::kernel::KernelError;
use crate::object::TableChange;
use crate::tag::NFT_TABLE;
use netlink_packet_core::{NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE};
use netlink_packet_netfilter::nftables::{NfTablesMessage, TableAttribute, TableMessage};
use netlink_packet_netfilter::none::ControlMessage;
use netlink_packet_netfilter::{NetfilterHeader, NetfilterMessage, NetfilterProtoFamily};

/// Map from flow to firewall mark.
pub(super) const MARK_MAP: &str = "flow_mark";
/// Map from flow to HTB classid.
pub(super) const CLASS_MAP: &str = "flow_class";
/// `NFNL_SUBSYS_NFTABLES`: the subsystem a transaction is for.
const SUBSYSTEM: u16 = 10;
/// Our tables are of family `ip`: route chains in `inet` need Linux 5.2, and flows are IPv4.
const FAMILY: NetfilterProtoFamily = NetfilterProtoFamily::IPv4;

/// A connection to nfnetlink.
pub(crate) type Netfilter = Connection<NetfilterMessage>;

/// A transaction under way.
type Batch = Vec<(NetfilterMessage, u16)>;

/// Commits a change of our table.
pub(crate) fn change(connection: &mut Netfilter, change: &TableChange) -> Result<(), KernelError> {
    commit(connection, |batch| {
        if let Some(pool) = change.replace {
            // Added first, so that removing succeeds when there was none: an atomic replacement.
            add(batch, NfTablesMessage::NewTable(table(NFT_TABLE)), NLM_F_CREATE);
            add(batch, NfTablesMessage::DeleteTable(table(NFT_TABLE)), 0);
            add(batch, NfTablesMessage::NewTable(table(NFT_TABLE)), NLM_F_CREATE);
            ruleset::add_all(batch, NFT_TABLE, pool);
        }
        element::remove(batch, MARK_MAP, &change.remove_marks);
        element::remove(batch, CLASS_MAP, &change.remove_classes);
        element::add(batch, MARK_MAP, &change.add_marks);
        element::add(batch, CLASS_MAP, &change.add_classes);
    })
}

/// Removes our table.
pub(crate) fn remove(connection: &mut Netfilter) -> Result<(), KernelError> {
    commit(connection, |batch| {
        add(batch, NfTablesMessage::DeleteTable(table(NFT_TABLE)), 0);
    })
}

/// Makes a whole ruleset under another name and takes it away in the same transaction: succeeds where
/// maps and chains are supported, and is never seen by a packet.
pub(crate) fn try_ruleset(connection: &mut Netfilter, name: &str) -> Result<(), KernelError> {
    let pool = crate::object::Prefix { address: std::net::Ipv4Addr::new(192, 0, 2, 0), len: 24 };
    commit(connection, |batch| {
        add(batch, NfTablesMessage::NewTable(table(name)), NLM_F_CREATE);
        ruleset::add_all(batch, name, pool);
        add(batch, NfTablesMessage::DeleteTable(table(name)), 0);
    })
}

fn commit(connection: &mut Netfilter, fill: impl FnOnce(&mut Batch)) -> Result<(), KernelError> {
    let bracket = |control| {
        let header = NetfilterHeader::new(NetfilterProtoFamily::Unspec, 0, SUBSYSTEM);
        (NetfilterMessage::new(header, control), 0)
    };
    let mut batch = vec![bracket(ControlMessage::BatchBegin)];
    fill(&mut batch);
    batch.push(bracket(ControlMessage::BatchEnd));
    connection.batch(batch)
}

fn message(inner: NfTablesMessage) -> NetfilterMessage {
    NetfilterMessage::new(NetfilterHeader::new(FAMILY, 0, 0), inner)
}

fn add(batch: &mut Batch, inner: NfTablesMessage, flags: u16) {
    batch.push((message(inner), flags | NLM_F_ACK));
}

/// Adds a rule behind those of its chain.
fn append(batch: &mut Batch, inner: NfTablesMessage) {
    add(batch, inner, NLM_F_CREATE | NLM_F_APPEND);
}

fn table(name: &str) -> TableMessage {
    TableMessage { attributes: vec![TableAttribute::Name(name.to_owned())] }
}
