//! Signals that something changed on the node, so that the worker compares at once and not at its next
//! look. Losing one costs seconds, never correctness.

use crate::engine::{ContainerEngine, Docker};
use crate::worker::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Pause before following again: asking a socket that is not there costs next to nothing.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Follows the engine's events; a stream that had to be begun anew means that the engine was away.
pub(super) async fn engine(engine: Arc<Docker>, commands: mpsc::Sender<Command>) {
    let mut reported = false;
    loop {
        let (sender, signals) = mpsc::channel(1);
        let (followed, open) = tokio::join!(engine.events(sender), pass_on(signals, &commands));
        if !open {
            return;
        }
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

/// Passes signals on until the stream ends; false when the worker is gone. The first of a stream says
/// that everything may differ.
async fn pass_on(mut signals: mpsc::Receiver<()>, commands: &mpsc::Sender<Command>) -> bool {
    let mut first = true;
    while signals.recv().await.is_some() {
        let command = if first { Command::EngineRestarted } else { Command::EngineChanged };
        first = false;
        if commands.send(command).await.is_err() {
            return false;
        }
        // Docker tells `die` before its list shows it: look once more when that is settled.
        sleep(SETTLED_AFTER).await;
        if commands.send(Command::EngineChanged).await.is_err() {
            return false;
        }
    }
    !commands.is_closed()
}

/// Follows changes of links, routes, rules and queueing disciplines.
pub(super) async fn kernel(commands: mpsc::Sender<Command>) {
    loop {
        match edgeloom_net::watch::changes() {
            Ok(mut changes) => {
                while changes.next().await.is_some() {
                    if commands.send(Command::KernelChanged).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "changes of the network are not followed"),
        }
        sleep(AGAIN_AFTER).await;
    }
}
