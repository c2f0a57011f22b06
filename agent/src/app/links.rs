//! The links: probes, what they measured, and neighbours that come and go.

use crate::node::Node;
use crate::wire::Up;
use edgeloom_common::desired::SCHEMA;
use edgeloom_common::report::{LinkReport, Links};
use edgeloom_observe::links::{LinkEvent, LinkSettings, Prober};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Events under way: one report and an up or down of each neighbour at the most.
const EVENTS: usize = 16;
/// Pause before the probe sockets are opened again: an interface may appear later.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Probes the links for ever; opens the sockets again until all addresses are there.
pub(super) async fn run(node: Node, up: mpsc::Sender<Up>, mut connected: watch::Receiver<u64>) {
    let prober = open(&node).await;
    let (sender, mut events) = mpsc::channel(EVENTS);
    let mut latest: Vec<LinkReport> = Vec::new();
    let following = async {
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    None => return,
                    Some(LinkEvent::Report(links)) => {
                        latest = links;
                        say(&up, &latest).await;
                    }
                    Some(LinkEvent::Up(neighbour)) => turn(&node, neighbour, true).await,
                    Some(LinkEvent::Down(neighbour)) => turn(&node, neighbour, false).await,
                },
                Ok(()) = connected.changed() => say(&up, &latest).await,
            }
        }
    };
    tokio::join!(prober.run(sender), following);
}

async fn open(node: &Node) -> Prober {
    loop {
        let settings = node.config.links.iter().cloned().map(|link| LinkSettings {
            neighbour: link.neighbour,
            interface: link.interface,
            address: link.address,
            neighbour_address: link.neighbour_address,
            capacity: link.capacity,
        });
        match Prober::open(settings.collect()) {
            Ok(prober) => return prober,
            Err(error) => tracing::warn!(%error, "links are not probed"),
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

async fn say(up: &mpsc::Sender<Up>, links: &[LinkReport]) {
    if !links.is_empty() {
        let _ = up.send(Up::Links(Links { schema: SCHEMA, links: links.to_vec() })).await;
    }
}

async fn turn(node: &Node, neighbour: edgeloom_common::ids::NodeId, up: bool) {
    if let Err(error) = node.network.neighbour(neighbour, up).await {
        tracing::error!(%error, "neighbour change is lost");
    }
}
