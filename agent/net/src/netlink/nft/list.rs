//! Reading our table back: which rules it has, by their comments, and every element.

use super::ruleset::{chains, comment_of, comments, pool_of};
use super::{CLASS_MAP, MARK_MAP, Netfilter, element, message};
use crate::kernel::KernelError;
use crate::object::{Prefix, Table};
use crate::tag::NFT_TABLE;
use edgeloom_common::desired::FlowKey;
use netlink_packet_netfilter::NetfilterMessageInner;
use netlink_packet_netfilter::nftables::{
    ListAttribute, NfTablesMessage, RuleAttribute, RuleMessage, SetElementList, SetElementMessage,
    TableAttribute, TableMessage,
};
use std::collections::BTreeMap;

/// Whether our table is there.
fn exists(connection: &mut Netfilter) -> Result<bool, KernelError> {
    let request = || message(NfTablesMessage::GetTable(TableMessage { attributes: Vec::new() }));
    let ours = TableAttribute::Name(NFT_TABLE.to_owned());
    let tables = connection.dump(request, |listed| match listed.inner {
        NetfilterMessageInner::NfTables(NfTablesMessage::NewTable(table)) => {
            (listed.header.family == super::FAMILY && table.attributes.contains(&ours)).then_some(())
        }
        _ => None,
    })?;
    Ok(!tables.is_empty())
}

/// Our table, if there is one.
pub(crate) fn list(connection: &mut Netfilter) -> Result<Option<Table>, KernelError> {
    if !exists(connection)? {
        return Ok(None);
    }
    let pool = pool(connection)?;
    if pool.is_none() {
        return Ok(Some(Table { pool, marks: BTreeMap::new(), classes: BTreeMap::new() }));
    }
    let (marks, classes) = (elements(connection, MARK_MAP)?, elements(connection, CLASS_MAP)?);
    Ok(Some(Table { pool, marks, classes }))
}

/// The pool, if each chain has just its one rule of this version.
fn pool(connection: &mut Netfilter) -> Result<Option<Prefix>, KernelError> {
    let request = || {
        let attributes = vec![RuleAttribute::Table(NFT_TABLE.to_owned())];
        message(NfTablesMessage::GetRule(RuleMessage { attributes }))
    };
    let mut rules = connection.dump(request, |listed| match listed.inner {
        NetfilterMessageInner::NfTables(NfTablesMessage::NewRule(rule)) => chain_and_comment(&rule),
        _ => None,
    })?;
    let Some(pool) = rules.iter().find_map(|(_, comment)| pool_of(comment)) else {
        return Ok(None);
    };
    let mut expected: Vec<(String, String)> =
        chains().iter().map(|chain| chain.name.to_owned()).zip(comments(pool)).collect();
    expected.sort();
    rules.sort();
    Ok((rules == expected).then_some(pool))
}

/// A rule without a comment counts too, as one with an empty comment. Kernels before 4.19 send the
/// rules of all tables, so the name is compared here again.
fn chain_and_comment(rule: &RuleMessage) -> Option<(String, String)> {
    let (mut table, mut chain, mut comment) = (None, None, "");
    for attribute in &rule.attributes {
        match attribute {
            RuleAttribute::Table(name) => table = Some(name.as_str()),
            RuleAttribute::Chain(name) => chain = Some(name.clone()),
            RuleAttribute::UserData(bytes) => comment = comment_of(bytes).unwrap_or_default(),
            _ => {}
        }
    }
    (table == Some(NFT_TABLE)).then_some((chain?, comment.to_owned()))
}

fn elements(connection: &mut Netfilter, map: &str) -> Result<BTreeMap<FlowKey, u32>, KernelError> {
    let request = || {
        let attributes =
            vec![SetElementList::Table(NFT_TABLE.to_owned()), SetElementList::Set(map.to_owned())];
        message(NfTablesMessage::GetSetElement(SetElementMessage { attributes }))
    };
    let listed = connection.dump(request, |listed| match listed.inner {
        NetfilterMessageInner::NfTables(NfTablesMessage::NewSetElement(part)) => Some(read(&part)),
        _ => None,
    })?;
    Ok(listed.into_iter().flatten().collect())
}

fn read(part: &SetElementMessage) -> Vec<(FlowKey, u32)> {
    let lists = part.attributes.iter().filter_map(|attribute| match attribute {
        SetElementList::Elements(elements) => Some(elements),
        _ => None,
    });
    let read = |listed: &ListAttribute<_>| match listed {
        ListAttribute::Element(attributes) => element::read(attributes).map(|found| (found.key, found.value)),
        _ => None,
    };
    lists.flatten().filter_map(read).collect()
}
