//! Whom to kill and when, from a seed; and what killing, starting and serving mean for each kind.

use crate::api::Api;
use crate::docker;
use crate::lab::Lab;
use crate::processes;
use anyhow::Result;
use nix::sys::signal::Signal;
use std::fmt;
use std::time::Duration;

/// Seconds between the start of one victim and the death of the next.
const PAUSE_S: f64 = 6.0;
/// One in so many kills comes with no pause after the one before.
const AT_ONCE: u32 = 5;
/// A service manager starts a dead daemon within this many seconds.
const DOWN_S: f64 = 2.0;

/// A daemon that dies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Victim {
    Controller,
    Agent(String),
    Docker(String),
}

impl fmt::Display for Victim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Controller => f.write_str("controller"),
            Self::Agent(node) => write!(f, "agent of {node}"),
            Self::Docker(node) => write!(f, "Docker of {node}"),
        }
    }
}

impl Victim {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Controller => "controller",
            Self::Agent(_) => "agent",
            Self::Docker(_) => "Docker",
        }
    }

    /// What the time line files it under.
    pub(crate) fn place(&self) -> &str {
        match self {
            Self::Controller => "controller",
            Self::Agent(node) | Self::Docker(node) => node,
        }
    }

    /// SIGKILL; returns once the process is gone.
    pub(crate) fn kill(&self, lab: &Lab) -> Result<()> {
        match self {
            Self::Controller => lab.kill_controller(),
            Self::Agent(node) => lab.kill_agent(&lab.node(node)?),
            Self::Docker(node) => lab.stop_docker(&lab.node(node)?, Signal::SIGKILL),
        }
    }

    pub(crate) fn start(&self, lab: &Lab) -> Result<u32> {
        match self {
            Self::Controller => lab.start_controller(),
            Self::Agent(node) => lab.start_agent(&lab.node(node)?),
            Self::Docker(node) => lab.start_docker(&lab.node(node)?),
        }
    }

    /// It does its work again: the API answers, the agent is in session with the controller, Docker answers.
    pub(crate) fn serves(&self, lab: &Lab, api: &Api) -> Result<bool> {
        Ok(match self {
            Self::Controller => api.nodes().is_ok(),
            Self::Agent(node) => {
                let pid = processes::of_file(&lab.node(node)?.pid_file("agent"), &lab.id);
                pid.is_some_and(in_session)
            }
            Self::Docker(node) => docker::answers(&lab.node(node)?.docker_socket()),
        })
    }
}

/// The process's network namespace, which is its node's own, has a connection to the broker that stands. One
/// of a process that was killed has left that state when the process is gone.
fn in_session(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).is_ok_and(|table| has_session(&table))
}

/// Reads `sl local_address rem_address st …`: port 8883 is 22B3, 01 is established.
fn has_session(table: &str) -> bool {
    let words = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    words.into_iter().any(|words| matches!(words[..], [_, _, remote, "01", ..] if remote.ends_with(":22B3")))
}

/// One kill to come.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) victim: Victim,
    /// Before it.
    pub(crate) pause: Duration,
    /// Until it is started again.
    pub(crate) down: Duration,
}

/// A seeded sequence: each kind is as likely as the others, and each node among its kind.
pub(crate) fn schedule(seed: u64, kills: usize, nodes: &[String]) -> Vec<Turn> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut turn = || {
        let node = nodes[random.usize(..nodes.len())].clone();
        let victim = match random.u8(..3) {
            0 => Victim::Controller,
            1 => Victim::Agent(node),
            _ => Victim::Docker(node),
        };
        let pause_s = if random.u32(..AT_ONCE) == 0 { 0.0 } else { random.f64() * PAUSE_S };
        let down = Duration::from_secs_f64(random.f64() * DOWN_S);
        Turn { victim, pause: Duration::from_secs_f64(pause_s), down }
    };
    (0..kills).map(|_| turn()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_seed_gives_one_sequence_and_a_hundred_kills_reach_everybody() {
        let nodes = ["n1", "n2", "n3", "n4"].map(str::to_owned);
        let of = |seed| schedule(seed, 100, &nodes).into_iter().map(|turn| turn.victim).collect::<Vec<_>>();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert_eq!(of(1).into_iter().collect::<BTreeSet<_>>().len(), 9);
    }

    #[test]
    fn only_an_established_connection_to_the_broker_is_a_session() {
        let line = |port: &str, state: &str| format!("   0: 0B003C0A:9C40 02003C0A:{port} {state} 0 0\n");
        assert!(has_session(&line("22B3", "01")));
        assert!(!has_session(&line("22B3", "04")));
        assert!(!has_session(&line("1B9E", "01")));
        assert!(!has_session("  sl  local_address rem_address   st\n"));
    }
}
