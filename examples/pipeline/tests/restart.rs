//! A stage in the middle dies and comes back at the same address, as a moved or restarted task does: the
//! stream goes on through it. Every stage is a process of its own, as in a container.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};

/// A process that ends with the test.
struct Stage(Child);

impl Drop for Stage {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

fn stage(task: &str, input: Option<(&str, SocketAddr)>, outputs: &[(&str, SocketAddr)]) -> Stage {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pipeline"));
    command.env_clear().env("EDGELOOM_TASK", task).env("EDGELOOM_WORK_NS", "100000");
    if let Some((from, address)) = input {
        command.env("EDGELOOM_INPUTS", from).env("EDGELOOM_LISTEN", address.to_string());
    }
    for (to, address) in outputs {
        command.env(format!("EDGELOOM_OUT_{to}"), address.to_string());
        command.env(format!("EDGELOOM_BYTES_{to}"), "50000");
    }
    Stage(command.stdout(Stdio::piped()).spawn().unwrap())
}

/// Reads the stage's lines until its count is above `floor`, and answers with it.
fn items_above(floor: u64, lines: &mut impl Iterator<Item = std::io::Result<String>>) -> u64 {
    let counts = lines.map(|line| {
        let line = line.unwrap();
        line.split_whitespace().find_map(|word| word.strip_prefix("items=")).unwrap().parse::<u64>().unwrap()
    });
    counts.into_iter().find(|items| *items > floor).expect("the stage runs on")
}

#[test]
fn the_stream_goes_on_through_a_stage_that_died_and_came_back() {
    let (middle, end) = (free_address(), free_address());
    let mut sink = stage("end", Some(("middle", end)), &[]);
    let mut lines = BufReader::new(sink.0.stdout.take().unwrap()).lines();
    let _source = stage("source", None, &[("MIDDLE", middle)]);
    let mut items = 0;
    for _ in 0..3 {
        let _middle = stage("middle", Some(("source", middle)), &[("END", end)]);
        items = items_above(items, &mut lines);
    }
}
