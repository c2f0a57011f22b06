//! Tells when something of the network changed, so that the agent can compare again at once: a link that
//! flaps loses its routes, an interface that is made anew its classes.
//!
//! The only asynchronous part; it opens the namespace of the thread that calls [`changes`] and needs a
//! tokio runtime with time and I/O.

use futures_channel::mpsc::UnboundedReceiver;
use futures_util::StreamExt;
use rtnetlink::MulticastGroup;
use rtnetlink::packet_core::NetlinkMessage;
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::sys::SocketAddr;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Changes come in bursts; one that is this long over is told once.
const QUIET: Duration = Duration::from_millis(300);
/// Told at least this often while changes go on.
const LONGEST: Duration = Duration::from_secs(3);

/// Changes of links, IPv4 routes and rules and queueing disciplines, our own among them.
#[derive(Debug)]
pub struct Changes {
    events: UnboundedReceiver<(NetlinkMessage<RouteNetlinkMessage>, SocketAddr)>,
    connection: tokio::task::JoinHandle<()>,
}

/// Begins to watch the calling thread's network namespace.
pub fn changes() -> std::io::Result<Changes> {
    let groups =
        [MulticastGroup::Link, MulticastGroup::Tc, MulticastGroup::Ipv4Route, MulticastGroup::Ipv4Rule];
    let (connection, _, events) = rtnetlink::new_multicast_connection(&groups)?;
    Ok(Changes { events, connection: tokio::spawn(connection) })
}

impl Changes {
    /// Waits for the next burst of changes to be over; none when the kernel closed the socket.
    pub async fn next(&mut self) -> Option<()> {
        self.events.next().await?;
        let begun = Instant::now();
        while begun.elapsed() < LONGEST {
            match timeout(QUIET, self.events.next()).await {
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
        Some(())
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.connection.abort();
    }
}
