//! Sends what the session heard to whom it concerns.

use crate::engine::Docker;
use crate::logs::LogRequests;
use crate::measure::Measurements;
use crate::node::Node;
use crate::replies::Replies;
use crate::wire::{Down, Up};
use crate::worker::Command;
use edgeloom_common::volume::{HeldVolume, VolumeCommand};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// Who hears of what came in.
#[derive(Debug)]
pub(super) struct Outlets {
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) up: mpsc::Sender<Up>,
    pub(super) connections: watch::Sender<u64>,
}

/// Runs until the session or the worker is gone.
pub(super) async fn run(node: Node, mut down: mpsc::Receiver<Down>, outlets: Outlets) {
    let mut logs: LogRequests<Docker> = LogRequests::new(node.engine.clone(), outlets.up.clone());
    let mut measurements = Measurements::new(node.engine.clone(), outlets.up.clone());
    while let Some(message) = down.recv().await {
        let command = match message {
            Down::Connected => {
                logs.cancel_all();
                measurements.cancel_all();
                outlets.connections.send_modify(|count| *count += 1);
                Command::Connected
            }
            Down::Disconnected(heard) => Command::Disconnected(heard),
            Down::Desired(received) => Command::Desired(received),
            Down::Unread(refusal) => Command::Refused(refusal),
            Down::DocumentAsked => Command::DocumentAsked,
            Down::Logs(id, command) => {
                tracing::debug!(id, job = %command.job, task = %command.task, "logs asked for");
                logs.take(id, command);
                continue;
            }
            Down::Volume(id, VolumeCommand { cancel: false, volume }) => {
                tracing::info!(id, %volume, "a volume is to be removed");
                tokio::spawn(remove(node.engine.clone(), volume, Replies::new(id, outlets.up.clone())));
                continue;
            }
            // What is under way is not broken off, and its answer is passed over.
            Down::Volume(..) => continue,
            Down::Measure(id, command) => {
                tracing::debug!(id, image = %command.image.name, cancel = command.cancel, "measurement asked for");
                measurements.take(id, *command);
                continue;
            }
        };
        if outlets.commands.send(command).await.is_err() {
            return;
        }
    }
}

async fn remove(engine: Arc<Docker>, volume: HeldVolume, mut replies: Replies) {
    let removed = engine.remove_volume(&volume).await;
    replies.end(removed.err().map(|error| error.to_string()).unwrap_or_default()).await;
}
