//! Documents and settings that the tests share: a node `n1` with links to `n2` and `n3`.

use crate::settings::{LinkSettings, Settings};
use edgeloom_common::desired::{DesiredState, FlowKey, FlowSpec, Pool, Protocol, TaskRoute};
use edgeloom_common::ids::FlowId;
use edgeloom_common::units::BitRate;
use std::cell::RefCell;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::path::PathBuf;

pub(super) const MBIT: u64 = 1_000_000;

/// An address of the pool.
pub(super) fn task(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, last)
}

pub(super) fn key(port: u16) -> FlowKey {
    FlowKey { source: task(2), destination: task(3), protocol: Protocol::Tcp, destination_port: port }
}

/// A flow told from others by its port.
pub(super) fn flow(port: u16, next_hop: &str, rate: Option<u64>) -> FlowSpec {
    let (from, to) = (format!("from-{port}"), format!("to-{port}"));
    FlowSpec {
        id: FlowId { job: "job".parse().unwrap(), from: from.parse().unwrap(), to: to.parse().unwrap() },
        key: key(port),
        next_hop: next_hop.parse().unwrap(),
        rate: rate.map(BitRate),
        path: Vec::new(),
    }
}

pub(super) fn route(last: u8, via: &str) -> TaskRoute {
    TaskRoute { address: task(last), via: via.parse().unwrap() }
}

pub(super) fn document(flows: Vec<FlowSpec>, routes: Vec<TaskRoute>) -> DesiredState {
    let pool =
        Pool { network: Ipv4Addr::new(10, 77, 0, 0), prefix_len: 16, gateway: Ipv4Addr::new(10, 77, 0, 1) };
    let empty = DesiredState::empty("home".parse().unwrap(), "n1".parse().unwrap(), pool);
    DesiredState { flows, routes, ..empty }
}

/// Interfaces `l2` and `l3` of 20 Mbit/s each; the record is in a folder of the test's own.
pub(super) fn settings(test: &str) -> Settings {
    let link = |n: u8| LinkSettings {
        neighbour: format!("n{n}").parse().unwrap(),
        interface: format!("l{n}"),
        neighbour_address: Ipv4Addr::new(10, 61, n, 2),
        capacity: Some(BitRate(20 * MBIT)),
    };
    Settings { bridge: "edgeloom0".to_owned(), links: vec![link(3), link(2)], state_dir: folder(test) }
}

thread_local! {
    /// The folders of this thread's test, which go with it.
    static FOLDERS: RefCell<Vec<Folder>> = const { RefCell::new(Vec::new()) };
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        match std::fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => eprintln!("{}: {error}", self.0.display()),
            _ => {}
        }
    }
}

/// A state folder of the test's own; it is made when something is kept in it.
pub(super) fn folder(test: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("edgeloom-net-{}-{test}", std::process::id()));
    FOLDERS.with_borrow_mut(|folders| folders.push(Folder(path.clone())));
    path
}
