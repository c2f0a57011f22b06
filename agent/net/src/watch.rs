//! Tells when something of the network changed, so that the agent can compare again at once: a link that
//! flaps loses its routes, an interface that is made anew its classes.
//!
//! The only asynchronous part; it opens the namespace of the thread that calls [`changes`] and needs a
//! tokio runtime with time and I/O.

use futures_channel::mpsc::UnboundedReceiver;
use futures_util::StreamExt;
use rtnetlink::MulticastGroup;
use rtnetlink::packet_core::{NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags};
use rtnetlink::sys::SocketAddr;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Changes come in bursts; one that is this long over is told once.
const QUIET: Duration = Duration::from_millis(300);
/// Told at least this often while changes go on.
const LONGEST: Duration = Duration::from_secs(3);

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Anything, and it is quiet now.
    Some,
    /// This interface has no carrier any more, or is gone: told at once.
    Lost(String),
}

/// Changes of links, IPv4 addresses, routes and rules and queueing disciplines, our own among them.
#[derive(Debug)]
pub struct Changes {
    events: UnboundedReceiver<(NetlinkMessage<RouteNetlinkMessage>, SocketAddr)>,
    connection: tokio::task::JoinHandle<()>,
    /// When the changes began that are not told yet.
    begun: Option<Instant>,
    /// Whether an interface has a carrier, by its index, as last heard.
    carriers: BTreeMap<u32, bool>,
}

/// Begins to watch the calling thread's network namespace.
pub fn changes() -> std::io::Result<Changes> {
    let groups = [
        MulticastGroup::Link,
        MulticastGroup::Tc,
        MulticastGroup::Ipv4Ifaddr,
        MulticastGroup::Ipv4Route,
        MulticastGroup::Ipv4Rule,
    ];
    let (connection, _, events) = rtnetlink::new_multicast_connection(&groups)?;
    Ok(Changes { events, connection: tokio::spawn(connection), begun: None, carriers: BTreeMap::new() })
}

impl Changes {
    /// Waits for a lost carrier, or for a burst of changes to be over; none when the kernel closed the socket.
    /// Nothing is lost when the wait is given up.
    pub async fn next(&mut self) -> Option<Change> {
        loop {
            let event = match self.begun {
                None => self.events.next().await?,
                Some(begun) => match timeout_at(told_at(begun), self.events.next()).await {
                    Ok(event) => event?,
                    Err(_) => {
                        self.begun = None;
                        return Some(Change::Some);
                    }
                },
            };
            self.begun.get_or_insert_with(Instant::now);
            if let NetlinkPayload::InnerMessage(message) = event.0.payload
                && let Some(lost) = self.lost(&message)
            {
                return Some(Change::Lost(lost));
            }
        }
    }

    fn lost(&mut self, message: &RouteNetlinkMessage) -> Option<String> {
        let (link, there) = match message {
            RouteNetlinkMessage::NewLink(link) => (link, true),
            RouteNetlinkMessage::DelLink(link) => (link, false),
            _ => return None,
        };
        let carrier = there && link.header.flags.contains(LinkFlags::Up | LinkFlags::LowerUp);
        let before = match there {
            true => self.carriers.insert(link.header.index, carrier),
            false => self.carriers.remove(&link.header.index),
        };
        let name = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::IfName(name) => Some(name.clone()),
            _ => None,
        });
        name.filter(|_| !carrier && before != Some(false))
    }
}

fn told_at(begun: Instant) -> Instant {
    (Instant::now() + QUIET).min(begun + LONGEST)
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.connection.abort();
    }
}
