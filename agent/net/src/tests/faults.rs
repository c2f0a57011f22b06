//! Bad documents and bad surroundings: what is refused, and that the rest is applied.

use super::document::{MBIT, document, flow, route, settings, task};
use crate::fake::Fake;
use crate::object::{ForwardAccept, Operation, Prefix, Root, Table};
use crate::{NetError, Network, Problem, Settings};
use edgeloom_common::desired::DesiredState;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

fn network(test: &str) -> Network<Fake> {
    Network::over(Fake::with_interfaces(&["l2", "l3"]), settings(test)).unwrap()
}

#[test]
fn a_flow_to_a_stranger_costs_no_other_its_place() {
    let mut network = network("stranger");
    let flows = vec![flow(1, "n9", Some(MBIT)), flow(2, "n2", Some(MBIT)), flow(3, "n2", Some(10))];
    let applied = network.apply(&document(flows, vec![route(9, "n9")])).unwrap();
    assert!(matches!(
        applied.problems.as_slice(),
        [Problem::UnknownVia { .. }, Problem::UnknownNextHop { .. }, Problem::RateTooLow { .. }]
    ));
    assert_eq!(network.flow_counters().unwrap().len(), 1);
    assert_eq!(network.kernel().state.table.as_ref().unwrap().marks.len(), 2);
}

#[test]
fn a_pool_that_others_route_to_is_refused_before_anything_changes() {
    let mut network = network("overlap");
    let theirs = Prefix { address: Ipv4Addr::new(10, 77, 8, 0), len: 24 };
    network.kernel().state.foreign_routes.insert((theirs, "eth0".to_owned()));
    let refused = network.apply(&document(Vec::new(), Vec::new()));
    assert!(matches!(refused, Err(NetError::PoolOverlap { route, .. }) if route == theirs));
    assert!(network.kernel().performed.is_empty());
    assert_eq!(network.kernel().sysctls["net/ipv4/ip_forward"], "0");

    network.kernel().state.foreign_routes = [(theirs, "edgeloom0".to_owned())].into();
    assert!(
        network.apply(&document(Vec::new(), Vec::new())).is_ok(),
        "Docker's route on our bridge is no other's"
    );
}

#[test]
fn a_foreign_qdisc_is_left_alone() {
    let mut network = network("foreign");
    let root = Root::Foreign { kind: "tbf".to_owned() };
    network.kernel().state.roots.insert("l2".to_owned(), root.clone());
    let applied = network
        .apply(&document(vec![flow(1, "n2", Some(MBIT)), flow(2, "n3", Some(MBIT))], Vec::new()))
        .unwrap();
    assert!(
        matches!(applied.problems.as_slice(), [Problem::ForeignQdisc { interface, .. }] if interface == "l2")
    );
    assert_eq!(network.flow_counters().unwrap().len(), 1);
    network.purge().unwrap();
    assert_eq!(network.kernel().state.roots["l2"], root);
}

#[test]
fn without_the_right_to_change_nothing_hangs() {
    let mut network = network("denied");
    network.kernel().denied = true;
    assert!(matches!(network.apply(&document(Vec::new(), Vec::new())), Err(NetError::Permission)));
    let capabilities = network.probe();
    assert!(!capabilities.htb && !capabilities.ip_forward && !capabilities.problems.is_empty());
}

#[test]
fn a_neighbour_that_is_down_stays_down_through_an_apply() {
    let mut network = network("down");
    let wanted = document(vec![flow(1, "n2", None)], Vec::new());
    network.apply(&wanted).unwrap();
    network.neighbour_down(&"n2".parse().unwrap()).unwrap();
    network.apply(&wanted).unwrap();
    assert!(!network.kernel().state.routes.iter().any(|route| route.interface == "l2"));
    network.neighbour_up(&"n2".parse().unwrap()).unwrap();
    assert!(network.kernel().state.routes.iter().any(|route| route.interface == "l2"));
    assert!(matches!(network.neighbour_up(&"n7".parse().unwrap()), Err(NetError::UnknownNeighbour { .. })));
}

#[test]
fn tasks_behind_a_dead_neighbour_are_reached_over_their_alternate_if_it_lives() {
    let mut network = network("alternate");
    let routes = vec![route(8, "n2"), route(9, "n2")];
    let wanted = DesiredState { alternates: vec![route(9, "n3")], ..document(Vec::new(), routes) };
    let ways = |network: &mut Network<Fake>| {
        network.apply(&wanted).unwrap();
        let mut way = |last| {
            let found = &network.kernel().state.routes;
            found
                .iter()
                .find(|route| route.destination == Prefix::host(task(last)))
                .unwrap()
                .interface
                .clone()
        };
        [way(8), way(9)]
    };
    assert_eq!(ways(&mut network), ["l2", "l2"]);
    network.neighbour_down(&"n2".parse().unwrap()).unwrap();
    assert_eq!(ways(&mut network), ["l2", "l3"]);
    network.neighbour_down(&"n3".parse().unwrap()).unwrap();
    assert_eq!(ways(&mut network), ["l2", "l2"], "no alternate lives");
    network.neighbour_up(&"n3".parse().unwrap()).unwrap();
    network.neighbour_up(&"n2".parse().unwrap()).unwrap();
    assert_eq!(ways(&mut network), ["l2", "l2"]);
    network.kernel().state.interfaces.insert("l2".to_owned(), false);
    let way = |route: &&crate::Route| route.destination == Prefix::host(task(9));
    network.apply(&wanted).unwrap();
    assert_eq!(network.kernel().state.routes.iter().find(way).unwrap().interface, "l3", "no carrier");
}

#[test]
fn routes_follow_a_neighbour_whose_address_changes() {
    let mut network = network("address");
    let mut wanted = document(vec![flow(1, "n2", None)], vec![route(9, "n2")]);
    network.apply(&wanted).unwrap();
    let moved = Ipv4Addr::new(10, 61, 2, 99);
    wanted.neighbours.insert("n2".parse().unwrap(), moved);
    network.kernel().performed.clear();
    network.apply(&wanted).unwrap();
    assert!(
        matches!(network.kernel().performed.as_slice(), [Operation::PutRoute(_), Operation::PutRoute(_)]),
        "{:?}",
        network.kernel().performed
    );
    let over = |route: &&crate::Route| route.interface == "l2";
    assert!(network.kernel().state.routes.iter().filter(over).all(|route| route.gateway == moved));
    network.neighbour_down(&"n2".parse().unwrap()).unwrap();
    assert_eq!(network.kernel().state.routes.iter().filter(over).count(), 1);
}

#[test]
fn what_a_neighbour_sends_back_takes_the_main_route_unless_others_share_the_interface() {
    let rules = |settings: Settings| {
        let mut network = Network::over(Fake::with_interfaces(&["l2", "l3"]), settings).unwrap();
        network.apply(&document(Vec::new(), Vec::new())).unwrap();
        let rules = network.kernel().state.rules.iter();
        rules.filter_map(|rule| Some((rule.interface.clone()?, rule.mark, rule.table))).collect::<Vec<_>>()
    };
    let own = settings("return-own");
    assert_eq!(rules(own), [("l2".to_owned(), 0x4500_0001, 254), ("l3".to_owned(), 0x4500_0002, 254)]);
    let mut shared = settings("return-shared");
    shared.links.iter_mut().for_each(|link| link.interface = "l2".to_owned());
    assert_eq!(rules(shared), []);
}

#[test]
fn a_link_that_is_down_is_a_problem_until_it_is_up() {
    let mut network = network("link-down");
    network.kernel().state.interfaces.insert("l3".to_owned(), false);
    let wanted = document(vec![flow(1, "n2", Some(MBIT)), flow(2, "n3", Some(MBIT))], vec![route(9, "n3")]);
    let applied = network.apply(&wanted).unwrap();
    assert!(matches!(applied.problems.as_slice(), [Problem::LinkUnusable { .. }]));
    network.kernel().state.interfaces.insert("l3".to_owned(), true);
    let applied = network.apply(&wanted).unwrap();
    assert_eq!((applied.changes, applied.problems), (2, Vec::new()), "its default and the task's route");
}

#[test]
fn the_pool_is_accepted_where_docker_drops() {
    let mut network = network("accept");
    network.kernel().state.forward_chain = Some("DOCKER-USER".to_owned());
    network.apply(&document(Vec::new(), Vec::new())).unwrap();
    let pool = Prefix { address: Ipv4Addr::new(10, 77, 0, 0), len: 16 };
    let accept = ForwardAccept { chain: "DOCKER-USER".to_owned(), pool };
    assert_eq!(network.kernel().state.accepts, [accept].into());
    // Docker restarts and flushes its chains.
    network.kernel().state.accepts.clear();
    assert_eq!(network.apply(&document(Vec::new(), Vec::new())).unwrap().changes, 1);
    network.purge().unwrap();
    assert!(network.kernel().state.accepts.is_empty());
}

#[test]
fn a_damaged_table_is_replaced_whole() {
    let mut network = network("damaged");
    let wanted = document(vec![flow(1, "n2", Some(MBIT))], Vec::new());
    network.apply(&wanted).unwrap();
    let intact = network.kernel().state.table.clone().unwrap();
    network.kernel().state.table =
        Some(Table { pool: None, marks: BTreeMap::new(), classes: BTreeMap::new() });
    network.kernel().performed.clear();
    network.apply(&wanted).unwrap();
    assert_eq!(network.kernel().state.table.as_ref(), Some(&intact));
    assert!(matches!(network.kernel().performed.as_slice(), [Operation::ChangeTable(_)]));
}

#[test]
fn sysctls_come_back_as_they_were_found_even_by_another_run() {
    let settings = settings("sysctls");
    let mut fake = Fake::with_interfaces(&["l2", "l3", "edgeloom0"]);
    fake.sysctls.insert("net/ipv4/conf/all/accept_redirects".to_owned(), "0".to_owned());
    let before = fake.sysctls.clone();
    let mut first = Network::over(fake, settings.clone()).unwrap();
    first.apply(&document(Vec::new(), Vec::new())).unwrap();
    assert_eq!(first.kernel().sysctls["net/ipv4/conf/edgeloom0/proxy_arp"], "1");
    assert_eq!(first.kernel().sysctls["net/ipv4/neigh/edgeloom0/proxy_delay"], "0");
    let mut second = Network::over(first.kernel().clone(), settings.clone()).unwrap();
    second.purge().unwrap();
    assert_eq!(second.kernel().sysctls, before);
    assert!(!settings.state_dir.join("sysctl.json").exists());
}

#[test]
fn a_record_that_does_not_read_is_moved_aside_and_nothing_of_it_is_used() {
    let settings = settings("record");
    std::fs::create_dir_all(&settings.state_dir).unwrap();
    let path = settings.state_dir.join("sysctl.json");
    for bad in
        [r#"{"sysctls":{"net/ipv4/../../kernel/panic":"1"}}"#, r#"{"sysctls":{"kernel/panic":"1"}}"#, "{"]
    {
        std::fs::write(&path, bad).unwrap();
        let fake = Fake::with_interfaces(&[]);
        let before = fake.sysctls.clone();
        let mut network = Network::over(fake, settings.clone()).unwrap();
        let aside = path.with_extension("json.damaged");
        assert_eq!(std::fs::read_to_string(&aside).unwrap(), bad);
        network.purge().unwrap();
        assert_eq!(network.kernel().sysctls, before, "{bad}");
        assert!(!aside.exists());
    }
}

#[test]
fn a_record_that_cannot_be_read_is_tried_again() {
    let settings = settings("unreadable");
    let path = settings.state_dir.join("sysctl.json");
    std::fs::create_dir_all(&path).unwrap();
    let mut network = Network::over(Fake::with_interfaces(&["l2", "l3"]), settings).unwrap();
    for _ in 0..2 {
        let refused = network.apply(&document(Vec::new(), Vec::new()));
        assert!(matches!(refused, Err(NetError::Record { .. })), "{refused:?}");
        assert!(network.kernel().performed.is_empty());
    }
    std::fs::remove_dir(&path).unwrap();
    assert!(network.apply(&document(Vec::new(), Vec::new())).is_ok());
}
