//! `edgeloom-controller`: reads its configuration and runs until SIGTERM or SIGINT.
//!
//! Exit codes: 0 asked to stop, 1 failed, 64 (`EX_USAGE` of sysexits) the configuration is refused.

use anyhow::Context;
use clap::{Parser, Subcommand};
use edgeloom_controller::app;
use edgeloom_controller::config::Config;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// The configuration is refused: starting again will not help.
const EXIT_USAGE: u8 = 64;

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
        #[arg(long, default_value = "/etc/edgeloom/controller.toml")]
        config: PathBuf,
    },
}

fn main() -> ExitCode {
    let Command::Run { config: path } = Arguments::parse().command;
    let config = match Config::read(&path) {
        Ok(config) => config,
        Err(error) => {
            for line in error.to_string().lines() {
                eprintln!("edgeloom-controller: {}: {line}", path.display());
            }
            return ExitCode::from(EXIT_USAGE);
        }
    };
    log();
    match run(config, &path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Plain on a terminal, JSON for a service; `EDGELOOM_LOG` filters, as in `edgeloom_bus=debug`.
fn log() {
    let filter = EnvFilter::try_from_env("EDGELOOM_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() { builder.init() } else { builder.json().init() }
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
    let ready = |_| {
        // Without systemd there is nobody to tell.
        let _ = sd_notify::notify(false, &[sd_notify::NotifyState::Ready]);
    };
    app::run(config, stop, ready).await.with_context(|| format!("with {}", path.display()))
}
