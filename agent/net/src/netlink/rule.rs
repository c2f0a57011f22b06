//! Policy rules: a firewall mark looks in a table.

use super::message::Message;
use super::socket::Connection;
use crate::kernel::KernelError;
use crate::object::Rule;
use crate::tag::PROTOCOL;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::RouteProtocol;
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};

/// Our rules.
pub(crate) fn list(connection: &mut Connection<Message>) -> Result<Vec<Rule>, KernelError> {
    let request = || {
        let mut message = RuleMessage::default();
        message.header.family = AddressFamily::Inet;
        Message::GetRule(message)
    };
    connection.dump(request, |message| match message {
        Message::NewRule(rule) => read(&rule),
        _ => None,
    })
}

fn read(message: &RuleMessage) -> Option<Rule> {
    let mut rule = Rule { priority: 0, mark: 0, table: u32::from(message.header.table), interface: None };
    let mut ours = false;
    for attribute in &message.attributes {
        match attribute {
            RuleAttribute::Protocol(protocol) => ours = u8::from(*protocol) == PROTOCOL,
            RuleAttribute::Priority(priority) => rule.priority = *priority,
            RuleAttribute::FwMark(mark) => rule.mark = *mark,
            RuleAttribute::Table(table) => rule.table = *table,
            RuleAttribute::Iifname(interface) => rule.interface = Some(interface.clone()),
            _ => {}
        }
    }
    ours.then_some(rule)
}

/// Adds a rule.
pub(crate) fn add(connection: &mut Connection<Message>, rule: &Rule) -> Result<(), KernelError> {
    connection.request(Message::NewRule(message(rule)), NLM_F_CREATE | NLM_F_EXCL)
}

/// Removes a rule of ours.
pub(crate) fn remove(connection: &mut Connection<Message>, rule: &Rule) -> Result<(), KernelError> {
    connection.request(Message::DelRule(message(rule)), 0)
}

fn message(rule: &Rule) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.action = RuleAction::ToTable;
    message.attributes = vec![
        RuleAttribute::Priority(rule.priority),
        RuleAttribute::FwMark(rule.mark),
        RuleAttribute::FwMask(u32::MAX),
        RuleAttribute::Table(rule.table),
        RuleAttribute::Protocol(RouteProtocol::from(PROTOCOL)),
    ];
    message.attributes.extend(rule.interface.clone().map(RuleAttribute::Iifname));
    message
}
