//! The maps, chains and rules of our table. `nft list table ip edgeloom` shows:
//!
//! ```text
//! chain prerouting  { type filter hook prerouting priority mangle;  meta mark set KEY map @flow_mark }
//! chain output      { type route hook output priority mangle;       meta mark set KEY map @flow_mark }
//! chain postrouting { type filter hook postrouting priority mangle; meta priority set KEY map @flow_class }
//! chain masquerade  { type nat hook postrouting priority srcnat;    ip saddr POOL ip daddr != POOL masquerade }
//! ```
//! KEY is `ip saddr . ip daddr . meta l4proto . th dport`. Each rule's comment carries the version of this
//! ruleset, the last one the pool too: by them a later run sees whether the table is as it should be.

use super::element::KEY_LEN;
use super::{Batch, CLASS_MAP, MARK_MAP, add, append};
use crate::object::Prefix;
use netlink_packet_core::NLM_F_CREATE;
use netlink_packet_netfilter::nftables::{
    Bitwise, ChainAttribute, ChainMessage, Cmp, DataAttribute, ExpressionAttribute, Expressions, Hook,
    InetHookNumber, ListAttribute, Lookup, Meta, MetaKey, NfTablesMessage, Payload, Register, RuleAttribute,
    RuleMessage, SetAttribute, SetFlags, SetMessage,
};

/// Rises when the ruleset changes, so that an older one is replaced.
const VERSION: u32 = 1;
/// Types of `nft`'s own that tell it how to print: address, protocol, port (6 bits each), mark, classid.
const TYPE_FLOW: u32 = ((7 << 6 | 7) << 6 | 12) << 6 | 13;
const TYPE_MARK: u32 = 19;
const TYPE_CLASSID: u32 = 23;
/// Hook priorities (`linux/netfilter_ipv4.h`).
const MANGLE: i32 = -150;
const SOURCE_NAT: i32 = 100;
/// Payload bases (`enum nft_payload_bases`) and the offsets of the header fields.
const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;
const SOURCE_AT: u32 = 12;
const DESTINATION_AT: u32 = 16;
const PORT_AT: u32 = 2;

type Expression = ListAttribute<ExpressionAttribute>;

/// Adds everything but elements to the batch.
pub(super) fn add_all(batch: &mut Batch, table: &str, pool: Prefix) {
    add_map(batch, table, Map { name: MARK_MAP, value_type: TYPE_MARK, id: 1 });
    add_map(batch, table, Map { name: CLASS_MAP, value_type: TYPE_CLASSID, id: 2 });
    for (chain, comment) in chains().iter().zip(comments(pool)) {
        add_chain(batch, table, chain);
        let expressions = match chain.name {
            "masquerade" => masquerade(pool),
            "postrouting" => lookup(CLASS_MAP, MetaKey::Priority),
            _ => lookup(MARK_MAP, MetaKey::Mark),
        };
        append(
            batch,
            NfTablesMessage::NewRule(RuleMessage {
                attributes: vec![
                    RuleAttribute::Table(table.to_owned()),
                    RuleAttribute::Chain(chain.name.to_owned()),
                    RuleAttribute::Expressions(expressions),
                    RuleAttribute::UserData(user_data(0, format!("{comment}\0").as_bytes())),
                ],
            }),
        );
    }
}

/// The comment of each chain's one rule, in the order of the chains.
pub(super) fn comments(pool: Prefix) -> [String; 4] {
    let plain = format!("edgeloom {VERSION}");
    [plain.clone(), plain.clone(), plain.clone(), format!("{plain} {pool}")]
}

/// The pool that a comment names, if it is one of this version.
pub(super) fn pool_of(comment: &str) -> Option<Prefix> {
    let (address, len) = comment.strip_prefix(&format!("edgeloom {VERSION} "))?.split_once('/')?;
    Some(Prefix { address: address.parse().ok()?, len: len.parse().ok()? })
}

/// A base chain.
pub(super) struct Chain {
    pub(super) name: &'static str,
    kind: &'static str,
    hook: InetHookNumber,
    priority: i32,
}

pub(super) fn chains() -> [Chain; 4] {
    use InetHookNumber::{LocalOut, PostRouting, PreRouting};
    [
        Chain { name: "prerouting", kind: "filter", hook: PreRouting, priority: MANGLE },
        Chain { name: "output", kind: "route", hook: LocalOut, priority: MANGLE },
        Chain { name: "postrouting", kind: "filter", hook: PostRouting, priority: MANGLE },
        Chain { name: "masquerade", kind: "nat", hook: PostRouting, priority: SOURCE_NAT },
    ]
}

fn add_chain(batch: &mut Batch, table: &str, chain: &Chain) {
    let attributes = vec![
        ChainAttribute::Table(table.to_owned()),
        ChainAttribute::Name(chain.name.to_owned()),
        ChainAttribute::Type(chain.kind.to_owned()),
        ChainAttribute::Hook(vec![
            Hook::Number(chain.hook.into()),
            Hook::Priority(chain.priority.cast_unsigned()),
        ]),
    ];
    add(batch, NfTablesMessage::NewChain(ChainMessage { attributes }), NLM_F_CREATE);
}

struct Map {
    name: &'static str,
    value_type: u32,
    /// Unique in the transaction.
    id: u32,
}

fn add_map(batch: &mut Batch, table: &str, map: Map) {
    // Byte orders for `nft list`: keys as in the packet (2), values as the machine has them (1).
    let orders = [user_data(0, &2u32.to_ne_bytes()), user_data(1, &1u32.to_ne_bytes())].concat();
    let attributes = vec![
        SetAttribute::Table(table.to_owned()),
        SetAttribute::Name(map.name.to_owned()),
        SetAttribute::Flags(SetFlags::Map),
        SetAttribute::KeyType(TYPE_FLOW),
        SetAttribute::KeyLen(u32::try_from(KEY_LEN).expect("16")),
        SetAttribute::DataType(map.value_type),
        SetAttribute::DataLen(4),
        SetAttribute::Id(map.id),
        SetAttribute::UserData(orders),
    ];
    add(batch, NfTablesMessage::NewSet(SetMessage { attributes }), NLM_F_CREATE);
}

/// `nft`'s notes: type, length, value. A text's length includes its NUL, or `nft list` reads beyond it.
fn user_data(kind: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, u8::try_from(value.len()).expect("notes are short")];
    bytes.extend_from_slice(value);
    bytes
}

/// Reads a rule's comment.
pub(super) fn comment_of(user_data: &[u8]) -> Option<&str> {
    let (head, rest) = user_data.split_at_checked(2)?;
    let value = rest.get(..usize::from(head[1]))?;
    (head[0] == 0).then(|| std::str::from_utf8(value.strip_suffix(b"\0")?).ok()).flatten()
}

/// `meta TARGET set KEY map @MAP`; packets of no flow leave the rule unchanged.
fn lookup(map: &str, target: MetaKey) -> Vec<Expression> {
    vec![
        load(NETWORK_HEADER, SOURCE_AT, 4, Register::Reg32_00),
        load(NETWORK_HEADER, DESTINATION_AT, 4, Register::Reg32_01),
        Expressions::Meta(vec![Meta::Key(MetaKey::L4Proto), Meta::DestinationRegister(Register::Reg32_02)])
            .into(),
        load(TRANSPORT_HEADER, PORT_AT, 2, Register::Reg32_03),
        Expressions::Lookup(vec![
            Lookup::Set(map.to_owned()),
            Lookup::SourceRegister(Register::Reg32_00),
            Lookup::DestinationRegister(Register::Reg32_00),
        ])
        .into(),
        Expressions::Meta(vec![Meta::Key(target), Meta::SourceRegister(Register::Reg32_00)]).into(),
    ]
}

fn masquerade(pool: Prefix) -> Vec<Expression> {
    let mut expressions = Vec::new();
    for (at, operator) in [
        (SOURCE_AT, netlink_packet_netfilter::nftables::Operator::Equal),
        (DESTINATION_AT, netlink_packet_netfilter::nftables::Operator::NotEqual),
    ] {
        let bytes = |bits: u32| DataAttribute::Value(bits.to_be_bytes().to_vec());
        expressions.push(load(NETWORK_HEADER, at, 4, Register::Reg1));
        expressions.push(
            Expressions::Bitwise(vec![
                Bitwise::SourceRegister(Register::Reg1),
                Bitwise::DestinationRegister(Register::Reg1),
                Bitwise::Length(4),
                Bitwise::Mask(bytes(pool.mask())),
                Bitwise::Xor(bytes(0)),
            ])
            .into(),
        );
        expressions.push(
            Expressions::Cmp(vec![
                Cmp::SourceRegister(Register::Reg1),
                Cmp::Op(operator),
                Cmp::Data(bytes(pool.address.to_bits())),
            ])
            .into(),
        );
    }
    expressions
        .push(Expressions::Other { expression_type: "masq".to_owned(), attributes: Vec::new() }.into());
    expressions
}

fn load(base: u32, offset: u32, len: u32, register: Register) -> Expression {
    Expressions::Payload(vec![
        Payload::DestinationRegister(register),
        Payload::Base(base),
        Payload::Offset(offset),
        Payload::Len(len),
    ])
    .into()
}
