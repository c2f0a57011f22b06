//! Faults as verbs: each breaks one thing, and another mends it.

use crate::lab::{Lab, Node};
use crate::network::{State, set_link, set_middle, set_rate, set_uplink};
use crate::topology::check_rate;
use anyhow::Result;
use clap::Subcommand;
use edgeloom_common::units::BitRate;
use nix::sys::signal::Signal;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Fault {
    LinkDown {
        a: String,
        b: String,
    },
    /// Nothing comes through, and both ends keep their carrier.
    LinkSilent {
        a: String,
        b: String,
    },
    LinkUp {
        a: String,
        b: String,
    },
    /// Another rate in both directions, for instance 10Mbit/s, until the lab goes down.
    LinkRate {
        a: String,
        b: String,
        rate: BitRate,
    },
    KillAgent {
        node: String,
    },
    StartAgent {
        node: String,
    },
    StopDocker {
        node: String,
    },
    KillDocker {
        node: String,
    },
    StartDocker {
        node: String,
    },
    LoseNode {
        node: String,
    },
    ReturnNode {
        node: String,
    },
    KillController,
    StartController,
    /// Everything that is no disk is gone, on all nodes.
    CutPower,
    /// All nodes boot, without uplinks, registry and controller.
    RestorePower,
}

pub(crate) fn apply(lab: &Lab, fault: &Fault) -> Result<()> {
    match fault {
        Fault::LinkDown { a, b } => set_link(lab, lab.topology.link(a, b)?, State::Down),
        Fault::LinkSilent { a, b } => set_middle(lab, lab.topology.link(a, b)?, State::Down),
        Fault::LinkUp { a, b } => {
            set_middle(lab, lab.topology.link(a, b)?, State::Up)?;
            set_link(lab, lab.topology.link(a, b)?, State::Up)
        }
        Fault::LinkRate { a, b, rate } => {
            check_rate(*rate)?;
            set_rate(lab, lab.topology.link(a, b)?, *rate)
        }
        Fault::KillAgent { node } => lab.kill_agent(&lab.node(node)?),
        Fault::StartAgent { node } => lab.start_agent(&lab.node(node)?).map(drop),
        Fault::StopDocker { node } => lab.stop_docker(&lab.node(node)?, Signal::SIGTERM),
        Fault::KillDocker { node } => lab.stop_docker(&lab.node(node)?, Signal::SIGKILL),
        Fault::StartDocker { node } => {
            let node = lab.node(node)?;
            lab.start_docker(&node)?;
            node.docker_ready()
        }
        Fault::LoseNode { node } => lose(lab, &lab.node(node)?),
        Fault::ReturnNode { node } => restore(lab, &lab.node(node)?),
        Fault::KillController => lab.kill_controller(),
        Fault::StartController => lab.start_controller().map(drop),
        Fault::CutPower => lab.cut_power(),
        Fault::RestorePower => lab.restore_power(),
    }
}

fn connect(lab: &Lab, node: &Node<'_>, state: State) -> Result<()> {
    set_uplink(lab, &node.spec.name, state)?;
    for (index, link) in lab.topology.links.iter().enumerate() {
        if link.between.contains(&node.spec.name) {
            set_link(lab, index, state)?;
        }
    }
    Ok(())
}

/// Network first, so that the others see silence and not a closed connection.
pub(crate) fn lose(lab: &Lab, node: &Node<'_>) -> Result<()> {
    connect(lab, node, State::Down)?;
    // A bare lab has no agent to kill.
    if let Err(error) = lab.kill_agent(node) {
        eprintln!("{error}");
    }
    lab.stop_docker(node, Signal::SIGKILL)
}

/// The lost node's machine starts again.
pub(crate) fn restore(lab: &Lab, node: &Node<'_>) -> Result<()> {
    connect(lab, node, State::Up)?;
    lab.start_docker(node)?;
    node.docker_ready()?;
    if node.state().join("edgeloom-agent").exists() {
        lab.start_agent(node)?;
    }
    Ok(())
}
