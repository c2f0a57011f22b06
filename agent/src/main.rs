//! `edgeloom-agent`: the command line of the node daemon.

use anyhow::Context;
use clap::{Parser, Subcommand, ValueEnum};
use edgeloom_agent::config::{CONFIG_USUAL, Config, ConfigError};
use edgeloom_agent::join::{JoinOptions, Joined, Unit, join, start_unit};
use edgeloom_agent::{app, doctor, once};
use edgeloom_common::desired::DesiredState;
use edgeloom_common::ids::NodeId;
use edgeloom_common::secret::Secret;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// EX_USAGE of sysexits.h: the service manager must not try again what cannot work.
const EXIT_CONFIG: u8 = 64;
/// Documents are at most 512 KiB; a file far beyond is a mistake.
const DOCUMENT_MAX_BYTES: u64 = 1 << 20;
/// A token is a line of some two hundred characters.
const TOKEN_MAX_BYTES: u64 = 1024;
/// Worker threads of the blocking pool sync files, list layers and resolve names, each of which may take long
/// without holding up the others; none needs a deep stack.
const BLOCKING_THREADS: usize = 3;
const BLOCKING_STACK_BYTES: usize = 512 * 1024;

/// The node daemon of Edgeloom.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make this machine a node of a cluster: `edgeloom token create` there makes the token.
    Join {
        /// The controller's API: a name or address, with :port unless it is 7070.
        controller: String,
        /// The token; `-` reads it from standard input, where other users do not see it.
        #[arg(value_parser = secret)]
        token: Secret,
        /// The node's name; without it the one in the configuration, or the machine's.
        #[arg(long)]
        node: Option<NodeId>,
        /// Written if there is none.
        #[arg(long, default_value = CONFIG_USUAL)]
        config: PathBuf,
        /// Leave the unit as it is, which otherwise starts now and at every boot.
        #[arg(long)]
        no_start: bool,
    },
    /// Run the daemon.
    Run {
        #[arg(long, default_value = CONFIG_USUAL)]
        config: PathBuf,
    },
    /// Reconcile with one desired state and print what was observed; exit 0 when converged.
    Apply {
        #[arg(long)]
        config: PathBuf,
        /// Seconds to wait.
        #[arg(long, default_value_t = 60)]
        timeout: u64,
        /// The desired state, JSON.
        file: PathBuf,
    },
    /// Remove everything that is ours from this machine.
    Purge {
        #[arg(long)]
        config: PathBuf,
    },
    /// Print what this node is and can do.
    Probe {
        #[arg(long)]
        config: PathBuf,
    },
    /// Say what stands in this node's way, with the remedy; exit 1 when something does not work.
    Doctor {
        /// Left out: the usual one, if it exists. It is examined either way.
        #[arg(long)]
        config: Option<PathBuf>,
        #[arg(short, long, value_enum, default_value_t = Output::Table)]
        output: Output,
    },
}

/// How to print an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Table,
    /// For machines.
    Json,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    start_logs();
    match run(arguments.command) {
        Ok(code) => code,
        Err(error) => {
            tracing::error!("{error:#}");
            let config =
                error.is::<ConfigError>() || matches!(error.downcast_ref(), Some(app::AppError::NotJoined));
            if config { ExitCode::from(EXIT_CONFIG) } else { ExitCode::FAILURE }
        }
    }
}

/// Plain lines for people, JSON for the journal; `EDGELOOM_LOG` filters (`info`, `edgeloom_agent=debug`).
fn start_logs() {
    // Targets and levels alone: patterns would cost the agent a regex engine.
    let asked = std::env::var("EDGELOOM_LOG").ok().and_then(|text| text.parse::<Targets>().ok());
    let filter = asked.unwrap_or_else(|| Targets::new().with_default(tracing::Level::INFO));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let terminal = std::io::stderr().is_terminal();
    let json = (!terminal).then(|| tracing_subscriber::fmt::layer().json().with_writer(std::io::stderr));
    tracing_subscriber::registry().with(terminal.then_some(lines)).with(json).with(filter).init();
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::debug!("a TLS provider was installed already");
    }
    // One thread for everything: a node's memory belongs to its tasks.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_stack_size(BLOCKING_STACK_BYTES)
        .thread_keep_alive(Duration::from_secs(1))
        .build()
        .context("cannot start the runtime")?;
    match command {
        Command::Join { controller, token, node, config, no_start } => {
            let options = JoinOptions { controller, token: token_text(token)?, node, config: config.clone() };
            let (how, cluster, node) = match runtime.block_on(join(options))? {
                Joined::Now { cluster, node } => ("is now", cluster, node),
                Joined::Before { cluster, node } => ("was already", cluster, node),
            };
            println!("this machine {how} node {node} of cluster {cluster}");
            let unit = if no_start { Unit::Absent } else { start_unit(&config)? };
            match unit {
                Unit::Started => println!("its agent runs, and starts at every boot"),
                Unit::Absent => println!("`edgeloom-agent run` starts its agent"),
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Run { config } => {
            runtime.block_on(app::run(Config::load(&config)?))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Apply { config, timeout, file } => {
            let (config, document) = (Config::load(&config)?, read_document(&file)?);
            let limit = Duration::from_secs(timeout);
            let (observed, converged) = runtime.block_on(once::apply(config, document, limit))?;
            print_json(&observed)?;
            Ok(if converged { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Command::Purge { config } => {
            let left = runtime.block_on(once::purge(Config::load(&config)?))?;
            left.iter().for_each(|problem| tracing::error!(problem, "left behind"));
            Ok(if left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Command::Doctor { config, output } => {
            let examination = runtime.block_on(doctor::examine(subject(config)));
            match output {
                Output::Table => print(&examination.text())?,
                Output::Json => print_json(&examination)?,
            }
            Ok(if examination.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
        }
        Command::Probe { config } => {
            print_json(&runtime.block_on(once::probe(Config::load(&config)?))?)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(text.to_owned().into())
}

fn token_text(token: Secret) -> anyhow::Result<Secret> {
    if token.expose() != "-" {
        return Ok(token);
    }
    let mut line = String::new();
    std::io::stdin().take(TOKEN_MAX_BYTES).read_to_string(&mut line).context("cannot read the token")?;
    Ok(line.trim().to_owned().into())
}

/// The named configuration, or the usual one where there is one.
fn subject(named: Option<PathBuf>) -> doctor::Subject {
    let usual = || Some(PathBuf::from(CONFIG_USUAL)).filter(|path| path.exists());
    match named.or_else(usual) {
        None => doctor::Subject::Unconfigured,
        Some(path) => match Config::load(&path) {
            Ok(config) => doctor::Subject::Configured { path, config: Box::new(config) },
            Err(error) => doctor::Subject::Refused { problem: error.to_string() },
        },
    }
}

fn read_document(path: &Path) -> anyhow::Result<DesiredState> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    file.take(DOCUMENT_MAX_BYTES)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("{} is no desired state", path.display()))
}

fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print(&text)
}

fn print(text: &str) -> anyhow::Result<()> {
    std::io::stdout().write_all(text.as_bytes()).context("cannot print")
}
