//! Signals that something changed on the node, so that the worker compares at once and not at its next
//! look. Losing one costs seconds, never correctness.

use crate::engine::{Changes, ContainerEngine, Docker};
use crate::worker::Command;
use edgeloom_net::watch::Change;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::sleep;

/// Pause before following again: asking a socket that is not there costs next to nothing.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What counts changes that the engine tells.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) images: watch::Sender<u64>,
    /// Of our containers.
    pub(super) containers: watch::Sender<u64>,
}

/// Follows the engine's events; a stream that had to be begun anew means that the engine was away.
pub(super) async fn engine(engine: Arc<Docker>, commands: mpsc::Sender<Command>, counts: Counts) {
    let mut reported = false;
    // The worker asks a first time when it starts: only an engine that was away since has to be asked anew.
    let mut begun = Command::EngineChanged;
    loop {
        let (sender, signals) = mpsc::channel(1);
        let changes = Changes { containers: sender, images: counts.images.clone() };
        let (followed, open) =
            tokio::join!(engine.events(changes), pass_on(signals, (&commands, &counts.containers), begun));
        if !open {
            return;
        }
        begun = Command::EngineRestarted;
        match followed {
            Ok(()) => reported = false,
            Err(error) if !reported => {
                reported = true;
                tracing::warn!(%error, "engine events are not followed");
            }
            Err(_) => {}
        }
        sleep(AGAIN_AFTER).await;
    }
}

/// Docker's list is at most this much behind its events.
const SETTLED_AFTER: Duration = Duration::from_millis(300);

/// Passes signals on until the stream ends; false when the worker is gone. The first of a stream is told as
/// `begun`.
async fn pass_on(
    mut signals: mpsc::Receiver<()>,
    (commands, containers): (&mpsc::Sender<Command>, &watch::Sender<u64>),
    begun: Command,
) -> bool {
    let mut begun = Some(begun);
    while signals.recv().await.is_some() {
        if commands.send(begun.take().unwrap_or(Command::EngineChanged)).await.is_err() {
            return false;
        }
        containers.send_modify(|count| *count = count.wrapping_add(1));
        // Docker tells `die` before its list shows it: look once more when that is settled.
        sleep(SETTLED_AFTER).await;
        if commands.send(Command::EngineChanged).await.is_err() {
            return false;
        }
    }
    !commands.is_closed()
}

/// Who else hears of the kernel's changes.
#[derive(Debug)]
pub(super) struct Hearers {
    /// Interfaces that have lost their carrier, at once.
    pub(super) lost: broadcast::Sender<String>,
    /// Counts changes of which some may be of our addresses.
    pub(super) changed: watch::Sender<u64>,
}

/// Follows changes of links, addresses, routes, rules and queueing disciplines.
pub(super) async fn kernel(commands: mpsc::Sender<Command>, hearers: Hearers) {
    loop {
        match edgeloom_net::watch::changes() {
            Ok(mut changes) => {
                while let Some(change) = changes.next().await {
                    match change {
                        // That nobody probes links is no concern.
                        Change::Lost(interface) => drop(hearers.lost.send(interface)),
                        Change::Some => {
                            hearers.changed.send_modify(|count| *count += 1);
                            if commands.send(Command::KernelChanged).await.is_err() {
                                return;
                            }
                        }
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "changes of the network are not followed"),
        }
        sleep(AGAIN_AFTER).await;
    }
}
