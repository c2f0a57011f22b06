//! Commands, options and exit codes.

use clap::{Parser, Subcommand, ValueEnum};
use edgeloom_common::ids::{JobName, TaskName};
use edgeloom_common::measure::TIMEOUT_DEFAULT_S;
use std::path::PathBuf;

/// Done; for `plan`: nothing would change.
pub(crate) const EXIT_OK: u8 = 0;
/// Something would change; only of `plan`.
pub(crate) const EXIT_PLAN_CHANGE: u8 = 1;
/// Failed; of every command but `plan`.
pub(crate) const EXIT_FAILURE: u8 = 1;
/// The job fits nowhere.
pub(crate) const EXIT_PLACEMENT: u8 = 2;
/// The command line itself does not read (`EX_USAGE` of sysexits; clap's own 2 means placement here).
pub(crate) const EXIT_USAGE: u8 = 64;
/// `plan` failed.
pub(crate) const EXIT_PLAN_ERROR: u8 = 255;

#[derive(Debug, Parser)]
#[command(name = "edgeloom", version, about = "Runs pipelines on a cluster of edge nodes")]
pub(crate) struct Arguments {
    /// The controller's HTTP address.
    #[arg(long, global = true, env = "EDGELOOM_SERVER", default_value = "http://127.0.0.1:7070")]
    pub(crate) server: String,
    /// How to print answers.
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Table,
    /// For machines: the API's answer.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what a job would become; exit code 0 no change, 1 change, 255 error.
    Plan {
        /// The job document, YAML or JSON; `-` reads standard input.
        file: PathBuf,
    },
    /// Run a job; exit code 2 if it fits nowhere.
    Run {
        /// The job document, YAML or JSON; `-` reads standard input.
        file: PathBuf,
        /// Wait until it runs, with progress.
        #[arg(long)]
        wait: bool,
    },
    /// Stop a job and remove what it made.
    Stop { name: JobName },
    /// List jobs.
    Jobs,
    /// Show one job: tasks, flows, predicted and measured.
    Job { name: JobName },
    /// List nodes and their links.
    Nodes,
    /// Say why each task is where it is.
    Explain { name: JobName },
    /// Measure the tasks of a job that have a `measure` block, on one node of each hardware class; exit code 1
    /// if any of them failed.
    Measure {
        /// The job document, YAML or JSON; `-` reads standard input.
        file: PathBuf,
        /// Measure what was measured before, too.
        #[arg(long)]
        again: bool,
        /// Seconds that each run may take.
        #[arg(long, default_value_t = TIMEOUT_DEFAULT_S)]
        timeout: u32,
    },
    /// List what happened to jobs, nodes and links, newest last.
    Events {
        /// Only events of this job.
        #[arg(long)]
        job: Option<JobName>,
        /// Go on with what happens from now.
        #[arg(short, long)]
        follow: bool,
    },
    /// Show the logs of a job's tasks.
    Logs {
        name: JobName,
        /// None: every task, its name before each line.
        task: Option<TaskName>,
        /// Go on with what is logged from now.
        #[arg(short, long)]
        follow: bool,
        /// Lines from the end to begin with.
        #[arg(long)]
        tail: Option<u32>,
    },
    /// Run an experiment of the simulator, here, without a controller.
    Sim {
        #[command(subcommand)]
        experiment: crate::sim::Experiment,
    },
}
