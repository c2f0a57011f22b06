//! `edgeloom-controller`: reads its configuration and runs until SIGTERM or SIGINT, or looks after the state
//! of a controller that does not run.
//!
//! Exit codes: 0 asked to stop, 1 failed, 64 (`EX_USAGE` of sysexits) the configuration is refused, 65
//! (`EX_DATAERR`) acknowledged changes are lost, or secrets do not open, and the operator has to say how to go on.

use anyhow::Context;
use clap::{Parser, Subcommand};
use edgeloom_cluster::{Existing, Extent, StartError, Unusable};
use edgeloom_controller::app::{self, AppError};
use edgeloom_controller::config::Config;
use edgeloom_controller::upkeep::{self, Content};
use edgeloom_identity::Identity;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// The configuration is refused: starting again will not help.
const EXIT_USAGE: u8 = 64;
/// The state is damaged: starting again will not help either.
const EXIT_DATA: u8 = 65;
const CONFIG: &str = "/etc/edgeloom/controller.toml";

#[derive(Parser)]
#[command(version, about = "The Edgeloom controller")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the controller.
    Run {
        /// The configuration file.
        #[arg(long, default_value = CONFIG)]
        config: PathBuf,
    },
    /// Make the cluster's authority and the administrator's token before the first start, which does it too.
    Init {
        #[arg(long, default_value = CONFIG)]
        config: PathBuf,
    },
    /// Go on with what is left of a state that does not start; damaged files are kept aside.
    Repair {
        #[arg(long, default_value = CONFIG)]
        config: PathBuf,
        /// Only tell what is left and what is lost.
        #[arg(long)]
        dry_run: bool,
        /// Also give up what nodes run that this state knows nothing of.
        #[arg(long, conflicts_with = "dry_run")]
        overrule: bool,
        /// Also where nothing is lost here: what nodes run that this state knows nothing of comes back.
        #[arg(long, conflicts_with_all = ["dry_run", "overrule"])]
        regain: bool,
        /// Only this: forget secrets and logins, because their key file is lost.
        #[arg(long, conflicts_with_all = ["dry_run", "overrule", "regain"])]
        forget_secrets: bool,
    },
    /// Write the state as one document; the controller may run.
    Export {
        #[arg(long, default_value = CONFIG)]
        config: PathBuf,
        /// Also the authority with its private key, and tokens as hashes: who has the file can be the cluster.
        #[arg(long)]
        with_authority: bool,
        /// Where to; `-` is standard output.
        file: PathBuf,
    },
    /// Put an exported state in place; nodes follow it whatever they were told since.
    Import {
        #[arg(long, default_value = CONFIG)]
        config: PathBuf,
        /// Also where a state is already, which is kept aside.
        #[arg(long)]
        replace: bool,
        /// The export; `-` is standard input.
        file: PathBuf,
    },
}

impl Command {
    fn config(&self) -> &Path {
        match self {
            Self::Run { config }
            | Self::Init { config }
            | Self::Repair { config, .. }
            | Self::Export { config, .. }
            | Self::Import { config, .. } => config,
        }
    }
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    let path = command.config();
    let config = match Config::read(path) {
        Ok(config) => config,
        Err(error) => {
            for line in error.to_string().lines() {
                eprintln!("edgeloom-controller: {}: {line}", path.display());
            }
            return ExitCode::from(EXIT_USAGE);
        }
    };
    log();
    match carry_out(&command, config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            let data = matches!(
                error.downcast_ref(),
                Some(AppError::Cluster(
                    StartError::Lost(_)
                        | StartError::Secrets(Unusable::Wrong { .. } | Unusable::Damaged { .. })
                ))
            );
            if data { ExitCode::from(EXIT_DATA) } else { ExitCode::FAILURE }
        }
    }
}

fn carry_out(command: &Command, config: Config) -> anyhow::Result<()> {
    match command {
        Command::Run { config: path } => return run(config, path),
        Command::Init { .. } => init(&config)?,
        Command::Repair { forget_secrets: true, .. } => {
            let count = upkeep::forget_secrets(&config)?;
            let told = "secret(s) and login(s) are forgotten; give them again once the controller runs";
            writeln!(std::io::stdout(), "{count} {told}").context("cannot print")?;
        }
        Command::Repair { dry_run, overrule, regain, .. } => {
            let extent = match (dry_run, overrule, regain) {
                (true, ..) => Extent::Look,
                (_, true, _) => Extent::Overrule,
                (.., true) => Extent::Regain,
                _ => Extent::Replace,
            };
            tell(&upkeep::repair(&config, extent)?)?;
        }
        Command::Export { with_authority, file, .. } => {
            let content = if *with_authority { Content::StateAndAuthority } else { Content::State };
            upkeep::export(&config, content, file)?;
        }
        Command::Import { replace, file, .. } => {
            let existing = if *replace { Existing::Replace } else { Existing::Refuse };
            tell(&upkeep::import(&config, file, existing)?)?;
        }
    }
    Ok(())
}

fn tell(outcome: &impl Display) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{outcome}").context("cannot print")
}

/// Plain on a terminal, JSON for a service; `EDGELOOM_LOG` filters, as in `edgeloom_bus=debug`.
fn log() {
    let filter = EnvFilter::try_from_env("EDGELOOM_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() { builder.init() } else { builder.json().init() }
}

/// What a first start does, without starting.
fn init(config: &Config) -> anyhow::Result<()> {
    let identity = Identity::open(app::identity_settings(config))?;
    identity.refresh_context(app::server(config, config.http.listen))?;
    let (cluster, context) = (identity.cluster(), identity.context_path());
    println!("cluster {cluster} has its authority; `edgeloom` finds its administrator's token here:");
    println!("  {}", context.display());
    println!("  (move it to ~/.config/edgeloom/context.json of whoever administers the cluster)");
    Ok(())
}

#[tokio::main]
async fn run(config: Config, path: &Path) -> anyhow::Result<()> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("another TLS provider is installed already"))?;
    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT")?;
    let asked = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        asked.cancel();
    });
    let service = edgeloom_notify::Service::from_environment();
    app::run(config, stop, service).await.with_context(|| format!("with {}", path.display()))
}
