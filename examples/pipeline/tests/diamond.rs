//! Whole pipelines over loopback: every stage runs as it does in a container, but in one process.

use edgeloom_pipeline::{Output, Settings, start};
use std::io::{Read, Result};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

const ITEM_BYTES: u32 = 70_000;

/// An address that was free a moment ago.
fn free_address() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

fn stage(task: &str, listen: Option<SocketAddr>, inputs: &[&str], outputs: &[SocketAddr]) -> Settings {
    let output =
        |address: &SocketAddr| Output { name: "NEXT".to_owned(), address: *address, item_bytes: ITEM_BYTES };
    Settings {
        task: task.to_owned(),
        listen,
        inputs: inputs.iter().map(|input| (*input).to_owned()).collect(),
        outputs: outputs.iter().map(output).collect(),
        work_ns: 10_000,
        work_noise: 0.0,
        rate_per_s: None,
    }
}

/// Starts source, left, right and the joining stage; answers with the joining stage's output.
fn diamond() -> TcpListener {
    let end = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (left, right, join) = (free_address(), free_address(), free_address());
    // The source first, so that its outputs have to wait for their peers.
    start(stage("source", None, &[], &[left, right])).unwrap();
    start(stage("left", Some(left), &["source"], &[join])).unwrap();
    start(stage("right", Some(right), &["source"], &[join])).unwrap();
    start(stage("join", Some(join), &["left", "right"], &[end.local_addr().unwrap()])).unwrap();
    end
}

fn greeting(connection: &mut TcpStream) -> Result<String> {
    let mut length = [0];
    connection.read_exact(&mut length)?;
    let mut name = vec![0; usize::from(length[0])];
    connection.read_exact(&mut name)?;
    Ok(String::from_utf8(name).expect("task names are ASCII"))
}

fn item(connection: &mut TcpStream) -> Result<u64> {
    let mut wire = vec![0; ITEM_BYTES as usize];
    connection.read_exact(&mut wire)?;
    assert_eq!(wire[..4], (ITEM_BYTES - 12).to_be_bytes());
    Ok(u64::from_be_bytes(wire[4..12].try_into().expect("eight bytes")))
}

#[test]
fn a_diamond_joins_every_item_in_order() {
    let (mut connection, _) = diamond().accept().unwrap();
    assert_eq!(greeting(&mut connection).unwrap(), "join");
    let first = item(&mut connection).unwrap();
    for number in first + 1..first + 300 {
        assert_eq!(item(&mut connection).unwrap(), number);
    }
}

#[test]
fn a_broken_connection_is_renewed_and_numbers_go_on_rising() {
    let end = diamond();
    let mut last = 0;
    for _ in 0..3 {
        let (mut connection, _) = end.accept().unwrap();
        assert_eq!(greeting(&mut connection).unwrap(), "join");
        for _ in 0..20 {
            let number = item(&mut connection).unwrap();
            assert!(number > last, "{number} after {last}");
            last = number;
        }
    }
}

#[test]
fn a_stage_without_outputs_counts_its_items() {
    let address = free_address();
    let sink = start(stage("sink", Some(address), &["source"], &[])).unwrap();
    start(stage("source", None, &[], &[address])).unwrap();
    while sink.items() < 100 {
        std::thread::yield_now();
    }
}
