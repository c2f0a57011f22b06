//! Commands, options and exit codes.

use clap::{Parser, Subcommand, ValueEnum};
use edgeloom_common::ids::{JobName, NodeId, SecretName, TaskName};
use edgeloom_common::join::Scope;
use edgeloom_common::measure::TIMEOUT_DEFAULT_S;
use edgeloom_common::registry::RegistryHost;
use edgeloom_common::secret::Secret;
use edgeloom_common::token::TokenId;
use edgeloom_common::volume::HeldVolume;
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
    /// The controller's address; without it the one of the context that `edgeloom login` or the controller
    /// has written, or http://127.0.0.1:7070.
    #[arg(long, global = true, env = "EDGELOOM_SERVER")]
    pub(crate) server: Option<String>,
    /// The token to show; better in the environment, where other users do not see it.
    #[arg(long, global = true, env = "EDGELOOM_TOKEN", hide_env_values = true, value_parser = secret)]
    pub(crate) token: Option<Secret>,
    /// PEM file of the authorities that the controller's certificate is verified against.
    #[arg(long, global = true, env = "EDGELOOM_CA")]
    pub(crate) ca: Option<PathBuf>,
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
    /// For spreadsheets; only of `usage`.
    Csv,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what a job would become, or which nodes could be emptied; exit code 0 no change, 1 change, 255 error.
    Plan {
        /// The job document, YAML or JSON; `-` reads standard input.
        #[arg(required_unless_present = "consolidate")]
        file: Option<PathBuf>,
        /// Name nodes that could be emptied, what would move where, and what that would cost.
        #[arg(long, conflicts_with = "file")]
        consolidate: bool,
        /// Drain them.
        #[arg(long, requires = "consolidate", conflicts_with = "file")]
        apply: bool,
    },
    /// Move all tasks of a node to others, and send nothing new there; `edgeloom nodes` says how far that is.
    Drain { node: NodeId },
    /// Send nothing new to a node; what runs there stays.
    Cordon { node: NodeId },
    /// Let a node take tasks again that was drained or cordoned.
    Uncordon { node: NodeId },
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
    /// List the images of the registries: what each is made of, and which nodes have it.
    Images {
        /// Only images whose name has this in it.
        name: Option<String>,
    },
    /// Say what stands in the cluster's way, with the remedy; exit code 1 if something does not work.
    Doctor,
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
    /// Show what containers used, and what it costs.
    Usage(crate::usage::UsageArguments),
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
        /// The time of each line before it.
        #[arg(short, long)]
        timestamps: bool,
    },
    /// Keep, list and remove secrets, which tasks are given as files.
    Secret {
        #[command(subcommand)]
        command: SecretCommand,
    },
    /// List and remove volumes, which nodes keep for tasks when their jobs are gone.
    Volume {
        #[command(subcommand)]
        command: VolumeCommand,
    },
    /// Log in to registries of images, for the controller and for nodes that pull from them.
    Registry {
        #[command(subcommand)]
        command: RegistryCommand,
    },
    /// Have nodes fetch an image ahead of need and keep it; without an image, list those.
    Prefetch(crate::prefetch::PrefetchArguments),
    /// Make, list and revoke tokens.
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Act on one node.
    Node {
        #[command(subcommand)]
        command: NodeCommand,
    },
    /// Act on the cluster's authority, which signs certificates.
    Authority {
        #[command(subcommand)]
        command: AuthorityCommand,
    },
    /// Check server, token and authorities, and keep them for this user.
    Login,
    /// Run an experiment of the simulator, here, without a controller.
    Sim {
        #[command(subcommand)]
        experiment: crate::sim::Experiment,
    },
}

/// Secrets.
#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommand {
    /// Keep a secret; a task that lists it finds it as the file /run/secrets/NAME.
    Create {
        name: SecretName,
        /// The value, byte by byte, at most 64 KiB; `-` reads standard input.
        #[arg(long, default_value = "-")]
        file: PathBuf,
        /// Give a secret that is there another value; containers find it when they are started next.
        #[arg(long)]
        replace: bool,
    },
    /// List secrets and the jobs that use them, without their values.
    List,
    /// Forget a secret that no job uses.
    Remove { name: SecretName },
}

/// Volumes.
#[derive(Debug, Subcommand)]
pub(crate) enum VolumeCommand {
    /// List volumes and the nodes that have them. A job of the same name goes where they are.
    List,
    /// Remove a volume with all that is in it; refused while its job is there.
    Remove {
        node: NodeId,
        /// As the list has it: JOB/TASK/VOLUME.
        volume: HeldVolume,
    },
}

/// Registries.
#[derive(Debug, Subcommand)]
pub(crate) enum RegistryCommand {
    /// Keep user name and password for a registry, if it honours them.
    Login {
        /// `host` or `host:port`; `docker.io` for Docker Hub.
        registry: RegistryHost,
        #[arg(short, long)]
        username: String,
        /// The password comes from standard input, where other users do not see it.
        #[arg(long, required = true)]
        password_stdin: bool,
    },
    /// List registries with a login, without passwords.
    List,
    /// Forget the login at a registry.
    Logout { registry: RegistryHost },
}

/// Tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token, for a node to join unless --api is given; it is printed this once.
    Create {
        /// A token of the API instead.
        #[arg(long, value_name = "SCOPE", conflicts_with_all = ["nodes", "uses", "replace"])]
        api: Option<ScopeArgument>,
        /// Only nodes of this name join with it; may be given several times.
        #[arg(long = "node", value_name = "NAME")]
        nodes: Vec<NodeId>,
        /// How many nodes join with it.
        #[arg(long, default_value_t = 1)]
        uses: u32,
        /// Nodes that have a certificate get another, and the old one is revoked.
        #[arg(long, requires = "nodes")]
        replace: bool,
        /// How long it lasts, as in 30m, 1h, 90d; without it an hour for joining, for ever for the API.
        #[arg(long, value_parser = lifetime_s)]
        lifetime: Option<u64>,
        /// Shown in the list.
        #[arg(long, default_value = "")]
        note: String,
    },
    /// List tokens, without their secrets.
    List,
    /// Forget a token: nobody joins or speaks with it any more.
    Revoke { id: TokenId },
}

/// One node.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// Revoke a node's certificates: its session ends at once, and it comes back only by joining again.
    Revoke { name: NodeId },
    /// Forget a node that will not come back, and revoke its certificates; refused while it is online or a job
    /// is placed on it.
    Forget { name: NodeId },
}

/// The authority.
#[derive(Debug, Subcommand)]
pub(crate) enum AuthorityCommand {
    /// Print the certificates that clients verify the controller by, for --ca elsewhere.
    Show,
    /// Make a second authority; nodes renew by themselves, and the first one goes when none needs it.
    Rotate,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ScopeArgument {
    /// See jobs, nodes, logs and events.
    Read,
    /// Run, stop and measure jobs, too.
    Deploy,
    /// Everything.
    Admin,
}

impl From<ScopeArgument> for Scope {
    fn from(argument: ScopeArgument) -> Self {
        match argument {
            ScopeArgument::Read => Self::Read,
            ScopeArgument::Deploy => Self::Deploy,
            ScopeArgument::Admin => Self::Admin,
        }
    }
}

fn secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(text.to_owned().into())
}

/// `30m` in seconds.
fn lifetime_s(text: &str) -> Result<u64, String> {
    const UNITS: [(char, u64); 4] = [('s', 1), ('m', 60), ('h', 3600), ('d', 24 * 3600)];
    let unit = UNITS.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(*unit)?, seconds)));
    unit.and_then(|(number, seconds)| number.parse::<u64>().ok()?.checked_mul(*seconds))
        .ok_or_else(|| format!("{text:?} is no length of time; write a number and s, m, h or d, as in 1h"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_units() {
        assert_eq!([lifetime_s("90s"), lifetime_s("1h"), lifetime_s("2d")], [Ok(90), Ok(3600), Ok(172_800)]);
        for bad in ["", "h", "1", "1w", "-1h", "1.5h", "99999999999999999999d", "999999999999999999d"] {
            assert!(lifetime_s(bad).is_err(), "{bad}");
        }
    }
}
