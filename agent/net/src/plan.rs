//! From the document to the kernel objects that should be: pure.
//!
//! In: desired state, settings, which neighbours are down, what the kernel offers and holds (for the
//! minors in use and for roots that are not ours). Out: [`Wanted`], with a problem for each object that
//! cannot be had. Invariant: one bad flow or route costs no other its place.

use crate::error::{NetError, Problem};
use crate::kernel::Offered;
use crate::minor::{self, ClassIds};
use crate::object::{Class, ForwardAccept, Found, Leaf, Prefix, Root, Route, Rule};
use crate::settings::{LinkSettings, Settings};
use crate::shape;
use crate::tag::{
    DEFAULT_MINOR, FLOW_MINOR_MAX, LINK_MINOR, MAIN_TABLE, MARK, PULL_MINOR, RETURN_PRIORITY, ROUTE_TABLE,
    RULE_PRIORITY, class_id,
};
use edgeloom_common::desired::{DesiredState, FlowKey, FlowSpec};
use edgeloom_common::ids::{FlowId, NodeId};
use edgeloom_common::units::BitRate;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// What the plan is made from beside the document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) down: &'a BTreeSet<NodeId>,
    pub(crate) offered: Offered,
    pub(crate) found: &'a Found,
    /// The classids of the plan before.
    pub(crate) remembered: &'a ClassIds,
}

/// The kernel objects that should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Interfaces with our HTB.
    pub(crate) shaped: BTreeSet<String>,
    pub(crate) classes: BTreeMap<(String, u16), Class>,
    pub(crate) leaves: BTreeMap<(String, u16), Leaf>,
    pub(crate) routes: BTreeSet<Route>,
    pub(crate) rules: BTreeSet<Rule>,
    pub(crate) pool: Prefix,
    /// False where the kernel has no nftables maps.
    pub(crate) table: bool,
    pub(crate) marks: BTreeMap<FlowKey, u32>,
    pub(crate) class_ids: ClassIds,
    pub(crate) accepts: BTreeSet<ForwardAccept>,
    /// Where each shaped flow is counted.
    pub(crate) counted: BTreeMap<FlowId, (String, u16)>,
    pub(crate) problems: Vec<Problem>,
}

/// Refuses a pool that is no network or that others route to already.
pub(crate) fn check_pool(pool: Prefix, bridge: &str, found: &Found) -> Result<(), NetError> {
    if !(8..=30).contains(&pool.len) || pool.address.to_bits() & !pool.mask() != 0 {
        return Err(NetError::PoolInvalid { pool });
    }
    match found.foreign_routes.iter().find(|(route, dev)| route.overlaps(pool) && dev != bridge) {
        None => Ok(()),
        Some((route, interface)) => {
            Err(NetError::PoolOverlap { pool, route: *route, interface: interface.clone() })
        }
    }
}

/// Plans everything.
pub(crate) fn plan(desired: &DesiredState, context: Context<'_>) -> Wanted {
    let pool = Prefix::from(&desired.pool);
    let chain = context.found.forward_chain.clone();
    let mut wanted = Wanted {
        shaped: BTreeSet::new(),
        classes: BTreeMap::new(),
        leaves: BTreeMap::new(),
        routes: BTreeSet::new(),
        rules: BTreeSet::new(),
        pool,
        table: context.offered.nft_maps,
        marks: BTreeMap::new(),
        class_ids: BTreeMap::new(),
        accepts: chain.map(|chain| ForwardAccept { chain, pool }).into_iter().collect(),
        counted: BTreeMap::new(),
        problems: Vec::new(),
    };
    if !context.offered.nft_maps && !desired.flows.is_empty() {
        wanted.problems.push(Problem::NoMaps { flows: desired.flows.len() });
    }
    plan_links(desired, context, &mut wanted);
    plan_neighbours(context, &mut wanted);
    plan_routes(desired, context, &mut wanted);
    plan_flows(desired, context, &mut wanted);
    wanted
}

/// The mark, table and rule of the neighbour at a place in the settings; indices start at 1.
pub(crate) fn neighbour_index(place: usize) -> u32 {
    u32::try_from(place).expect("settings hold at most 499 links") + 1
}

/// A neighbour's default route.
pub(crate) fn neighbour_route(place: usize, link: &LinkSettings) -> Route {
    Route {
        table: ROUTE_TABLE + neighbour_index(place),
        destination: Prefix { address: Ipv4Addr::UNSPECIFIED, len: 0 },
        gateway: link.neighbour_address,
        interface: link.interface.clone(),
    }
}

/// Root, link class and the classes beside flows of each interface that we may shape.
fn plan_links(desired: &DesiredState, context: Context<'_>, wanted: &mut Wanted) {
    for interface in context.settings.interfaces() {
        match context.found.roots.get(interface) {
            Some(Root::Foreign { kind }) => {
                wanted
                    .problems
                    .push(Problem::ForeignQdisc { interface: interface.to_owned(), kind: kind.clone() });
            }
            Some(_) if context.offered.htb => {
                let capacity = shape::capacity(context.settings, interface);
                let (rest, pulls) = shape::beside(capacity, reserved(desired, context.settings, interface));
                wanted.shaped.insert(interface.to_owned());
                wanted.classes.insert((interface.to_owned(), LINK_MINOR), shape::link(capacity));
                for (minor, class) in [(DEFAULT_MINOR, rest), (PULL_MINOR, pulls)] {
                    let place = (interface.to_owned(), minor);
                    wanted.classes.insert(place.clone(), class);
                    wanted.leaves.insert(place, shape::leaf(context.offered, capacity));
                }
            }
            _ => {}
        }
    }
}

/// What flows have of an interface, whichever of its neighbours they go to. A document of an older controller
/// says nothing of those that pass.
fn reserved(desired: &DesiredState, settings: &Settings, interface: &str) -> shape::Reserved {
    let over = |node: &NodeId| link_to(settings, node).is_some_and(|(_, link)| link.interface == interface);
    let own = desired.flows.iter().filter(|flow| over(&flow.next_hop)).filter_map(|flow| flow.rate);
    let shaped = own.fold(0, |sum: u64, rate| sum.saturating_add(rate.0));
    let all = desired.reserved.iter().filter(|(node, _)| over(node)).map(|(_, link)| link.outbound.0);
    let passing = all.fold(0, u64::saturating_add).saturating_sub(shaped);
    shape::Reserved { shaped, passing }
}

/// Rules and default route of each neighbour. A neighbour that is down keeps the rules and loses the
/// route, so that its packets fall through to the main table.
fn plan_neighbours(context: Context<'_>, wanted: &mut Wanted) {
    for (place, link) in context.settings.links.iter().enumerate() {
        let index = neighbour_index(place);
        let (mark, table) = (MARK | index, ROUTE_TABLE + index);
        wanted.rules.insert(Rule { priority: RULE_PRIORITY + index, mark, table, interface: None });
        wanted.rules.extend(return_rule(mark, link, context.settings));
        if !usable(context, link) {
            let (neighbour, interface) = (link.neighbour.clone(), link.interface.clone());
            wanted.problems.push(Problem::LinkUnusable { neighbour, interface });
        } else if !context.down.contains(&link.neighbour) {
            wanted.routes.insert(neighbour_route(place, link));
        }
    }
}

/// A neighbour that sends a flow's packets back cannot deliver them: they take the main route from here. Where
/// several neighbours share the interface, it does not tell whom a packet came from.
fn return_rule(mark: u32, link: &LinkSettings, settings: &Settings) -> Option<Rule> {
    let alone = settings.links.iter().filter(|other| other.interface == link.interface).count() == 1;
    let interface = Some(link.interface.clone());
    alone.then_some(Rule { priority: RETURN_PRIORITY, mark, table: MAIN_TABLE, interface })
}

/// The kernel takes routes only over interfaces that are up, and nobody is reached without a carrier.
fn usable(context: Context<'_>, link: &LinkSettings) -> bool {
    context.found.interfaces.get(&link.interface) == Some(&true)
}

/// One host route for each remote task, over the first neighbour that lives of the route's own and its
/// alternates.
fn plan_routes(desired: &DesiredState, context: Context<'_>, wanted: &mut Wanted) {
    let mut seen = BTreeSet::new();
    let mut alternates: BTreeMap<Ipv4Addr, Vec<&NodeId>> = BTreeMap::new();
    for route in &desired.alternates {
        alternates.entry(route.address).or_default().push(&route.via);
    }
    for route in &desired.routes {
        let address = route.address;
        let Some((_, link)) = link_to(context.settings, &route.via) else {
            wanted.problems.push(Problem::UnknownVia { address, via: route.via.clone() });
            continue;
        };
        let others = alternates.get(&address).into_iter().flatten().copied();
        // Without an alternate that lives the route stays: the neighbour may be back any moment.
        let link =
            std::iter::once(&route.via).chain(others).find_map(|via| alive(via, context)).unwrap_or(link);
        if !wanted.pool.contains(address) {
            wanted.problems.push(Problem::OutsidePool { address, pool: wanted.pool });
        } else if !seen.insert(address) {
            wanted.problems.push(Problem::DuplicateRoute { address, via: route.via.clone() });
        } else if usable(context, link) {
            wanted.routes.insert(task_route(address, link));
        }
    }
}

/// A task's route in the main table.
fn task_route(address: Ipv4Addr, link: &LinkSettings) -> Route {
    Route {
        table: MAIN_TABLE,
        destination: Prefix::host(address),
        gateway: link.neighbour_address,
        interface: link.interface.clone(),
    }
}

/// The link to a neighbour that answers.
fn alive<'a>(neighbour: &NodeId, context: Context<'a>) -> Option<&'a LinkSettings> {
    let (_, link) = link_to(context.settings, neighbour)?;
    (usable(context, link) && !context.down.contains(neighbour)).then_some(link)
}

fn link_to<'a>(settings: &'a Settings, node: &NodeId) -> Option<(usize, &'a LinkSettings)> {
    settings.links.iter().enumerate().find(|(_, link)| link.neighbour == *node)
}

/// Map entries and classes of the flows.
fn plan_flows(desired: &DesiredState, context: Context<'_>, wanted: &mut Wanted) {
    let mut shaped: BTreeMap<FlowKey, (&FlowSpec, BitRate, &str)> = BTreeMap::new();
    for flow in &desired.flows {
        let Some((place, link)) = link_to(context.settings, &flow.next_hop) else {
            let (flow, next_hop) = (flow.id.clone(), flow.next_hop.clone());
            wanted.problems.push(Problem::UnknownNextHop { flow, next_hop });
            continue;
        };
        if wanted.marks.contains_key(&flow.key) {
            wanted.problems.push(Problem::DuplicateKey { flow: flow.id.clone(), key: flow.key });
            continue;
        }
        wanted.marks.insert(flow.key, MARK | neighbour_index(place));
        if let Some(rate) = enforceable(flow, context, wanted)
            && wanted.shaped.contains(&link.interface)
        {
            shaped.insert(flow.key, (flow, rate, &link.interface));
        }
    }
    let minors = minor::assign(&shaped.keys().copied().collect(), context.found, context.remembered);
    for (key, (flow, rate, interface)) in shaped {
        let Some(minor) = minors.get(&key).copied() else {
            wanted.problems.push(Problem::NoClassLeft { flow: flow.id.clone(), max: FLOW_MINOR_MAX });
            continue;
        };
        let place = (interface.to_owned(), minor);
        wanted.classes.insert(place.clone(), shape::flow(rate));
        wanted.leaves.insert(place.clone(), shape::leaf(context.offered, rate));
        wanted.class_ids.insert(key, class_id(minor));
        wanted.counted.insert(flow.id.clone(), place);
    }
}

/// The flow's rate, if it has one that the kernel can enforce.
fn enforceable(flow: &FlowSpec, context: Context<'_>, wanted: &mut Wanted) -> Option<BitRate> {
    let rate = flow.rate?;
    let id = flow.id.clone();
    if rate < shape::RATE_MIN {
        wanted.problems.push(Problem::RateTooLow { flow: id, rate, least: shape::RATE_MIN });
        return None;
    }
    if !context.offered.htb {
        wanted.problems.push(Problem::NoShaping { flow: id });
        return None;
    }
    Some(rate)
}
