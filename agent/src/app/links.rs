//! The links: probes, what they measured, and neighbours that come and go.

use crate::network::NetworkThread;
use crate::node::Node;
use crate::wire::Up;
use edgeloom_common::desired::SCHEMA;
use edgeloom_common::ids::NodeId;
use edgeloom_common::report::{LinkReport, Links};
use edgeloom_observe::links::{LinkEvent, LinkSettings, Prober};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Events under way: one report and an up or down of each neighbour at the most.
const EVENTS: usize = 16;
/// Pause before the probe sockets are opened again: an interface may appear later.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Probes the links for ever; opens the sockets again until all addresses are there.
pub(super) async fn run(node: Node, up: mpsc::Sender<Up>, connected: watch::Receiver<u64>) {
    let prober = open(&node).await;
    let (sender, events) = mpsc::channel(EVENTS);
    tokio::join!(prober.run(sender), follow(&node.network, events, up, connected));
}

/// Passes events on until there are no more; the last report is said again to each new connection.
async fn follow(
    network: &NetworkThread,
    mut events: mpsc::Receiver<LinkEvent>,
    up: mpsc::Sender<Up>,
    mut connected: watch::Receiver<u64>,
) {
    let mut latest: Vec<LinkReport> = Vec::new();
    loop {
        tokio::select! {
            event = events.recv() => match event {
                None => return,
                Some(LinkEvent::Report(links)) => {
                    latest = links;
                    say(&up, &latest).await;
                }
                Some(LinkEvent::Up(neighbour)) => turn(network, neighbour, true).await,
                Some(LinkEvent::Down(neighbour)) => turn(network, neighbour, false).await,
            },
            Ok(()) = connected.changed() => say(&up, &latest).await,
        }
    }
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

async fn turn(network: &NetworkThread, neighbour: NodeId, up: bool) {
    if let Err(error) = network.neighbour(neighbour, up).await {
        tracing::error!(%error, "neighbour change is lost");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_net::Network;
    use edgeloom_net::fake::Fake;
    use std::net::Ipv4Addr;

    fn report() -> LinkReport {
        LinkReport {
            neighbour: "n2".parse().unwrap(),
            interface: "link0".to_owned(),
            address: Ipv4Addr::new(10, 61, 1, 1),
            capacity_declared: None,
            capacity_measured: None,
            rtt_min_us: Some(900),
            rtt_median_us: Some(1000),
            loss_permille: 0,
            up: true,
        }
    }

    #[tokio::test]
    async fn each_connection_hears_the_last_report() {
        let disk = tempfile::tempdir().unwrap();
        let bridge = "edgeloom0".to_owned();
        let settings =
            edgeloom_net::Settings { bridge, links: Vec::new(), state_dir: disk.path().to_owned() };
        let kernel = Fake::with_interfaces(&["edgeloom0"]);
        let network = NetworkThread::start(move || Network::over(kernel, settings)).unwrap();
        let (sender, events) = mpsc::channel(1);
        let (up, mut said) = mpsc::channel(1);
        let (connections, connected) = watch::channel(0);
        let hearing = async {
            sender.send(LinkEvent::Report(vec![report()])).await.unwrap();
            for _ in 0..3 {
                assert!(matches!(said.recv().await, Some(Up::Links(links)) if links.links == [report()]));
                connections.send_modify(|count| *count += 1);
            }
            drop(sender);
        };
        tokio::join!(follow(&network, events, up, connected), hearing);
    }
}
