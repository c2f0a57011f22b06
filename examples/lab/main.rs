//! `cargo lab`: a real cluster on one machine.
//!
//! Every node is a network namespace with a Docker daemon, a cgroup and a small file system of its
//! own; links are limited in namespaces between the nodes. Needs root. What it makes carries the
//! lab's id, and `down` takes away exactly that.

mod api;
mod batch;
mod build;
mod cgroup;
mod checks;
mod closed_loop;
mod command;
mod configs;
mod daemons;
mod demo;
mod detour;
mod docker;
mod document;
mod engines;
mod experiment;
mod faults;
mod ground;
mod joining;
mod kills;
mod lab;
mod layers;
mod leftovers;
mod meter;
mod network;
mod power;
mod prepare;
mod processes;
mod publish;
mod recovery;
mod registry_log;
mod registry_times;
mod results;
mod sla;
mod streaming;
mod throughput;
mod topology;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use experiment::Experiment;
use lab::{Lab, Options};
use std::path::PathBuf;
use std::process::ExitCode;
use topology::Topology;

#[derive(Parser)]
#[command(name = "cargo lab", about = "A real cluster on one machine")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run the example pipeline on a lab of its own and check every promise from outside.
    Demo {
        #[command(flatten)]
        experiment: Experiment,
    },
    /// Run several jobs at once under each profile and compare what they really reach.
    Streaming {
        #[command(flatten)]
        settings: streaming::Settings,
    },
    /// Disturb running jobs and count how often they are planned anew.
    ClosedLoop {
        #[command(flatten)]
        settings: closed_loop::Settings,
    },
    /// Run many short containers to their end while an agent and the controller are killed, and count each run.
    Batch {
        #[command(flatten)]
        settings: batch::Settings,
    },
    /// Kill daemons at random while jobs come and go, and count what was lost.
    Kills {
        #[command(flatten)]
        settings: kills::Settings,
    },
    /// Place containers of real images under each profile and count what their pulls fetch.
    Layers {
        #[command(flatten)]
        settings: layers::Settings,
    },
    /// Break everything that can break under a running job, and check that it comes back by itself.
    Recovery {
        #[command(flatten)]
        settings: recovery::Settings,
    },
    /// Let classes share cores, count what containers use, and empty nodes, and hold it against the kernel's account.
    Sla {
        #[command(flatten)]
        settings: sla::Settings,
    },
    /// Install what is missing.
    Prepare,
    /// Bring the lab up.
    Up {
        /// A topology file; four nodes in a diamond by default.
        #[arg(long)]
        topology: Option<PathBuf>,
        /// Without controller and agents.
        #[arg(long)]
        bare: bool,
    },
    /// Take the lab down.
    Down {
        /// Every lab of this machine, crashed ones too.
        #[arg(long)]
        all: bool,
    },
    /// What is running.
    Status,
    /// Break something, or mend it.
    Fault {
        #[command(subcommand)]
        fault: faults::Fault,
    },
    /// Run a command in a node's network namespace.
    Exec {
        node: String,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cargo lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn verdict(held: bool) -> ExitCode {
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(arguments: Arguments) -> Result<ExitCode> {
    ensure!(nix::unistd::geteuid().is_root(), "the lab makes namespaces and mounts: run it as root");
    match arguments.verb {
        Verb::Demo { experiment } => return demo::run(&experiment).map(verdict),
        Verb::Streaming { settings } => return streaming::run(&settings).map(verdict),
        Verb::ClosedLoop { settings } => return closed_loop::run(&settings).map(verdict),
        Verb::Batch { settings } => return batch::run(&settings).map(verdict),
        Verb::Kills { settings } => return kills::run(&settings).map(verdict),
        Verb::Layers { settings } => return layers::run(&settings).map(verdict),
        Verb::Recovery { settings } => return recovery::run(&settings).map(verdict),
        Verb::Sla { settings } => return sla::run(&settings).map(verdict),
        Verb::Prepare => prepare::prepare()?,
        Verb::Up { topology, bare } => {
            let text = match topology {
                Some(path) => std::fs::read_to_string(&path).with_context(|| path.display().to_string())?,
                None => topology::DIAMOND.to_owned(),
            };
            let topology = Topology::parse(&text)?;
            prepare::prepare()?;
            let lab = Lab::up(&topology, &text, &Options { bare })?;
            if !bare {
                publish::images()?;
            }
            lab.print_status();
        }
        Verb::Down { all: true } => lab::down_all()?,
        Verb::Down { all: false } => Lab::load()?.down()?,
        Verb::Status => Lab::load()?.print_status(),
        Verb::Fault { fault } => faults::apply(&Lab::load()?, &fault)?,
        Verb::Exec { node, command } => {
            let lab = Lab::load()?;
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            let words = command::within(&lab.node(&node)?.namespace(), &words);
            let status = std::process::Command::new(&words[0]).args(&words[1..]).status()?;
            return Ok(ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)));
        }
    }
    Ok(ExitCode::SUCCESS)
}
