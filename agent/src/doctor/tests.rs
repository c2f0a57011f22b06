//! Verdicts on made-up readings, one reason at a time, and one run on the machine as it is.

use super::judge::checks;
use super::*;
use edgeloom_common::doctor::{Check, Space, Verdict};
use std::net::Ipv4Addr;

const CHAINS_NONE: &str = r#"{"nftables": [{"metainfo": {"version": "1.0.6"}}]}"#;

/// A node on which all is well.
fn well() -> Readings {
    Readings {
        config: Some(Ok("/etc/edgeloom/agent.toml".into())),
        rights: Ok(Rights { uid: 998, capabilities: 1 << 2 | 1 << 5 | 1 << 12 | 1 << 13 }),
        kernel: Ok(NetCapabilities {
            htb: true,
            fq_codel: true,
            nft_maps: true,
            ip_forward: true,
            problems: Vec::new(),
        }),
        vxlan: Ok(Some("/sys/module/vxlan".to_owned())),
        cgroup: Ok(CgroupMemory { version: 2, memory: true, cmdline_file: None }),
        clock: Clock { unix_s: 1_800_000_000, synchronised: Ok(true) },
        docker: Ok(DockerFound {
            socket: "/var/run/docker.sock".to_owned(),
            version: "28.2.2".to_owned(),
            driver: "overlay2".to_owned(),
            layers_known: true,
            memory_limit: true,
        }),
        network: Ok(NetworkFound {
            bridge: "edgeloom0".to_owned(),
            bridge_mtu: Some(1500),
            links: vec![LinkFound { interface: "eth0".to_owned(), up: Some(true), mtu: Some(1500) }],
            pool: Some(prefix([10, 77, 0, 0], 16)),
            routes: BTreeSet::from([
                (prefix([10, 77, 0, 0], 16), "edgeloom0".to_owned()),
                (prefix([192, 168, 1, 0], 24), "eth0".to_owned()),
            ]),
            forwarding: ForwardingFound { chain: Some("DOCKER-USER".to_owned()), accepted: true },
        }),
        filter: Ok("-P FORWARD DROP\n-N DOCKER-USER\n".to_owned()),
        chains: Ok(CHAINS_NONE.to_owned()),
        port: Ok(PortFound::Ours),
        state_dir: StateDir {
            path: "/var/lib/edgeloom-agent".into(),
            found: Some(Space { writable: Ok(()), free_bytes: Ok(8 << 30) }),
        },
    }
}

fn prefix(address: [u8; 4], len: u8) -> Prefix {
    Prefix { address: Ipv4Addr::from(address), len }
}

/// The one check that is not well after `change`.
#[track_caller]
fn only(change: impl FnOnce(&mut Readings)) -> Check {
    let mut readings = well();
    change(&mut readings);
    let mut ill: Vec<_> =
        checks(&readings).into_iter().filter(|check| check.verdict != Verdict::Ok).collect();
    assert_eq!(ill.len(), 1, "{ill:#?}");
    assert!(!ill[0].remedy.is_empty(), "{ill:#?}");
    ill.remove(0)
}

#[track_caller]
fn is(check: &Check, name: &str, verdict: Verdict) {
    assert_eq!((check.check.as_str(), check.verdict), (name, verdict), "{check:?}");
}

#[test]
fn a_node_on_which_all_is_well_has_nothing_but_good_checks() {
    let ill: Vec<_> = checks(&well()).into_iter().filter(|check| check.verdict != Verdict::Ok).collect();
    assert_eq!(ill, []);
}

#[test]
fn what_was_not_read_is_unknown_or_failed_and_never_good() {
    let unread = || "not read".to_owned();
    let nothing = Readings {
        config: None,
        rights: Err(unread()),
        kernel: Err(unread()),
        vxlan: Err(unread()),
        cgroup: Err(unread()),
        clock: Clock { unix_s: 1_800_000_000, synchronised: Err(unread()) },
        docker: Err(unread()),
        network: Err(unread()),
        filter: Err(unread()),
        chains: Err(unread()),
        port: Err(unread()),
        state_dir: StateDir { path: "/nowhere".into(), found: None },
    };
    for check in checks(&nothing) {
        assert_ne!(check.verdict, Verdict::Ok, "{check:?}");
        assert!(!check.remedy.is_empty(), "{check:?}");
    }
}

#[test]
fn a_pi_without_memory_controller_is_told_the_words_and_the_file() {
    let check = only(|readings| {
        readings.cgroup = Ok(CgroupMemory {
            version: 2,
            memory: false,
            cmdline_file: Some("/boot/firmware/cmdline.txt".to_owned()),
        });
    });
    is(&check, "memory limits", Verdict::Fail);
    let expected = "add `cgroup_enable=memory cgroup_memory=1` to /boot/firmware/cmdline.txt and reboot";
    assert_eq!(check.remedy, expected);
}

#[test]
fn each_missing_capability_is_named() {
    let check = only(|readings| readings.rights = Ok(Rights { uid: 1000, capabilities: 1 << 12 }));
    is(&check, "rights", Verdict::Fail);
    for name in ["CAP_NET_RAW", "CAP_DAC_READ_SEARCH", "CAP_KILL"] {
        assert!(check.seen.contains(name), "{}", check.seen);
    }
    assert!(!check.seen.contains("CAP_NET_ADMIN"));
}

#[test]
fn a_clock_before_this_release_is_wrong_and_one_that_nobody_keeps_is_doubtful() {
    is(&only(|readings| readings.clock.unix_s = 3600), "clock", Verdict::Fail);
    is(&only(|readings| readings.clock.synchronised = Ok(false)), "clock", Verdict::Warn);
}

#[test]
fn a_kernel_that_was_not_tried_is_unknown_in_all_it_can_do() {
    let mut readings = well();
    let problem = "capabilities of the network cannot be tried: refused; run with CAP_NET_ADMIN".to_owned();
    readings.kernel =
        Ok(NetCapabilities { problems: vec![problem], ip_forward: true, ..NetCapabilities::default() });
    let unknown = checks(&readings).into_iter().filter(|check| check.verdict == Verdict::Unknown);
    let names: Vec<_> = unknown.map(|check| check.check).collect();
    assert_eq!(names, ["kernel: htb", "kernel: fq_codel", "kernel: nftables maps"]);
}

#[test]
fn what_the_kernel_lacks_is_told_by_what_it_costs() {
    let without =
        |change: fn(&mut NetCapabilities)| only(|readings| change(readings.kernel.as_mut().unwrap()));
    is(&without(|can| can.htb = false), "kernel: htb", Verdict::Fail);
    is(&without(|can| can.fq_codel = false), "kernel: fq_codel", Verdict::Warn);
    is(&without(|can| can.nft_maps = false), "kernel: nftables maps", Verdict::Fail);
    is(&without(|can| can.ip_forward = false), "kernel: forwarding", Verdict::Fail);
}

#[test]
fn dockers_age_and_store_are_judged() {
    let docker = |change: fn(&mut DockerFound)| only(|readings| change(readings.docker.as_mut().unwrap()));
    is(&docker(|found| found.version = "19.03.13".to_owned()), "docker", Verdict::Fail);
    is(&docker(|found| found.version = "dev".to_owned()), "docker", Verdict::Unknown);
    is(&docker(|found| found.layers_known = false), "image store", Verdict::Warn);
    is(&docker(|found| found.memory_limit = false), "memory limits", Verdict::Fail);
}

#[test]
fn links_that_are_missing_down_or_narrow_are_named() {
    let link = |change: fn(&mut LinkFound)| {
        only(|readings| change(&mut readings.network.as_mut().unwrap().links[0]))
    };
    is(&link(|link| link.up = None), "links", Verdict::Fail);
    is(&link(|link| link.up = Some(false)), "links", Verdict::Warn);
    let narrow = link(|link| link.mtu = Some(1400));
    is(&narrow, "mtu", Verdict::Warn);
    assert!(narrow.remedy.contains("1400"), "{narrow:?}");
    is(&link(|link| link.mtu = Some(576)), "mtu", Verdict::Warn);
}

#[test]
fn a_pool_that_overlaps_with_a_foreign_route_fails_and_one_not_known_is_unknown() {
    let overlapping = (prefix([10, 77, 3, 0], 24), "wg0".to_owned());
    let check = only(|readings| {
        readings.network.as_mut().unwrap().routes.insert(overlapping);
    });
    is(&check, "address pool", Verdict::Fail);
    assert!(check.seen.contains("10.77.3.0/24 on wg0"), "{check:?}");
    is(&only(|readings| readings.network.as_mut().unwrap().pool = None), "address pool", Verdict::Unknown);
}

#[test]
fn a_foreign_chain_that_drops_forwarded_packets_fails() {
    let check = only(|readings| {
        readings.chains = Ok(r#"{"nftables": [
            {"metainfo": {"version": "1.0.6"}},
            {"chain": {"family": "inet", "table": "firewalld", "name": "filter_FORWARD", "handle": 1,
                       "type": "filter", "hook": "forward", "prio": 10, "policy": "drop"}},
            {"chain": {"family": "ip", "table": "filter", "name": "FORWARD", "handle": 2,
                       "type": "filter", "hook": "forward", "prio": 0, "policy": "drop"}},
            {"chain": {"family": "ip", "table": "filter", "name": "DOCKER-USER", "handle": 3}}]}"#
            .to_owned());
    });
    is(&check, "firewall", Verdict::Fail);
    assert_eq!(check.seen, "forwarded packets are dropped by default in inet firewalld filter_FORWARD");
    is(&only(|readings| readings.chains = Ok("no JSON".to_owned())), "firewall", Verdict::Unknown);
    is(&only(|readings| readings.chains = Err("nft: none".to_owned())), "firewall", Verdict::Unknown);
}

#[test]
fn a_forward_that_drops_without_dockers_chain_is_doubtful() {
    let check = only(|readings| {
        readings.filter = Ok("-P FORWARD DROP\n".to_owned());
        let chain = Some("FORWARD".to_owned());
        readings.network.as_mut().unwrap().forwarding = ForwardingFound { chain, accepted: false };
    });
    is(&check, "firewall", Verdict::Warn);
}

#[test]
fn a_port_of_somebody_else_fails() {
    is(&only(|readings| readings.port = Ok(PortFound::Taken)), "port of link probes", Verdict::Fail);
}

#[test]
fn a_state_directory_is_judged_by_whether_it_takes_what_comes() {
    let space = |found: Option<Space>| only(|readings| readings.state_dir.found = found);
    is(&space(None), "state directory", Verdict::Warn);
    let read_only = Space { writable: Err("read-only".to_owned()), free_bytes: Ok(1 << 40) };
    is(&space(Some(read_only)), "state directory", Verdict::Fail);
    let with = |free: u64| space(Some(Space { writable: Ok(()), free_bytes: Ok(free) }));
    is(&with(100 << 20), "state directory", Verdict::Warn);
    is(&with(1 << 20), "state directory", Verdict::Fail);
}
