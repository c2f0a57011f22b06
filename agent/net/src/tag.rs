//! How our kernel objects are told from all others.
//!
//! Routes and rules carry a protocol number that iproute2 does not use, rules and tables a range of
//! numbers, marks and classes a prefix. Traffic control has no owner field: there the handle's major
//! number is the mark.

/// Routing protocol (`rtm_protocol`, `FRA_PROTOCOL`) of our routes and rules.
pub(crate) const PROTOCOL: u8 = 117;
/// Priority of the rule for neighbour index 0; index n has this plus n.
pub(crate) const RULE_PRIORITY: u32 = 4500;
/// Priority of all rules for packets that come back, before those of the neighbours.
pub(crate) const RETURN_PRIORITY: u32 = RULE_PRIORITY;
/// Routing table of neighbour index 0.
pub(crate) const ROUTE_TABLE: u32 = 45_000;
/// Firewall mark of neighbour index 0.
pub(crate) const MARK: u32 = 0x4500_0000;
/// Neighbours that fit the rule priorities 4501 to 4999.
pub(crate) const NEIGHBOURS_MAX: usize = 499;
/// Major number of the HTB root on a link interface.
pub(crate) const HTB_MAJOR: u16 = 0x4501;
/// Minor of the class that holds all others: the link itself.
pub(crate) const LINK_MINOR: u16 = 0xffff;
/// Minor of the class for everything that is no flow of ours.
pub(crate) const DEFAULT_MINOR: u16 = 0xfffe;
/// Minor of the class for image layers that a neighbour pulls from here.
pub(crate) const PULL_MINOR: u16 = 0xfffd;
/// The largest minor of a flow's class; the first is 1.
pub(crate) const FLOW_MINOR_MAX: u16 = 0xfffc;
/// `SO_PRIORITY` of sockets over which a neighbour pulls image layers from here: HTB takes a socket's packets for
/// those of the class that it names.
pub const PULL_PRIORITY: u32 = class_id(PULL_MINOR);
/// The nftables table, family `ip`.
pub(crate) const NFT_TABLE: &str = "edgeloom";
/// Comment on our rule in the filter table.
pub(crate) const COMMENT: &str = "edgeloom";
/// Main routing table (`RT_TABLE_MAIN`).
pub(crate) const MAIN_TABLE: u32 = 254;

/// The classid of a minor under our root, as an skb priority or a netlink handle carries it.
pub(crate) const fn class_id(minor: u16) -> u32 {
    (HTB_MAJOR as u32) << 16 | minor as u32
}

/// The flow minor that a classid names, if it is one of ours.
pub(crate) fn flow_minor(class_id: u32) -> Option<u16> {
    let minor = u16::try_from(class_id & 0xffff).expect("masked to 16 bits");
    let ours = class_id >> 16 == u32::from(HTB_MAJOR);
    (ours && (1..=FLOW_MINOR_MAX).contains(&minor)).then_some(minor)
}
