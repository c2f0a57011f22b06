//! Tells when something of the network changed, so that the agent can compare again at once: a link that
//! flaps loses its routes, an interface that is made anew its classes.
//!
//! The only asynchronous part; it opens the namespace of the thread that calls [`changes`] and needs a
//! tokio runtime with time and I/O.

use crate::netlink::link::LinkMessage;
use crate::netlink::message::Message;
use crate::netlink::socket::split;
use rtnetlink::MulticastGroup;
use rtnetlink::packet_core::NetlinkPayload;
use rtnetlink::sys::protocols::NETLINK_ROUTE;
use rtnetlink::sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket};
use rustix::io::Errno;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use std::{fmt, io};
use tokio::time::{Instant, timeout_at};

const GROUPS: [MulticastGroup; 5] = [
    MulticastGroup::Link,
    MulticastGroup::Tc,
    MulticastGroup::Ipv4Ifaddr,
    MulticastGroup::Ipv4Route,
    MulticastGroup::Ipv4Rule,
];
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
pub struct Changes {
    socket: TokioSocket,
    /// Read, and not looked at yet.
    waiting: VecDeque<Message>,
    /// When the changes began that are not told yet.
    begun: Option<Instant>,
    /// Whether an interface has a carrier, by its index, as last heard.
    carriers: BTreeMap<u32, bool>,
}

/// Begins to watch the calling thread's network namespace.
pub fn changes() -> io::Result<Changes> {
    let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
    // The library's own connection would read every attribute of every message, and bring the code for it.
    let groups = GROUPS.into_iter().map(|group| 1 << (group as u32 - 1)).sum();
    socket.socket_mut().bind(&SocketAddr::new(0, groups))?;
    let (waiting, carriers) = (VecDeque::new(), BTreeMap::new());
    Ok(Changes { socket, waiting, begun: None, carriers })
}

impl Changes {
    /// Waits for a lost carrier, or for a burst of changes to be over; none when the kernel closed the socket.
    /// Nothing is lost when the wait is given up.
    pub async fn next(&mut self) -> Option<Change> {
        loop {
            while let Some(message) = self.waiting.pop_front() {
                if let Some(lost) = self.lost(&message) {
                    return Some(Change::Lost(lost));
                }
            }
            let heard = match self.begun {
                None => self.hear().await,
                Some(begun) => match timeout_at(told_at(begun), self.hear()).await {
                    Ok(heard) => heard,
                    Err(_) => {
                        self.begun = None;
                        return Some(Change::Some);
                    }
                },
            };
            heard.inspect_err(|error| tracing::debug!(%error, "the kernel tells no changes")).ok()?;
            self.begun.get_or_insert_with(Instant::now);
        }
    }

    /// Takes in what the kernel says next.
    async fn hear(&mut self) -> io::Result<()> {
        let datagram = match self.socket.recv_from_full().await {
            Ok((datagram, _)) => datagram,
            // More happened than the socket holds: that something did is all that matters.
            Err(error) if error.raw_os_error() == Some(Errno::NOBUFS.raw_os_error()) => return Ok(()),
            Err(error) => return Err(error),
        };
        let messages = split::<Message>(&datagram).filter_map(Result::ok);
        self.waiting.extend(messages.filter_map(|message| match message.payload {
            NetlinkPayload::InnerMessage(message) => Some(message),
            _ => None,
        }));
        Ok(())
    }

    fn lost(&mut self, message: &Message) -> Option<String> {
        let (link, there) = match message {
            Message::NewLink(link) => (link, true),
            Message::DelLink(link) => (link, false),
            _ => return None,
        };
        let LinkMessage { index, name, .. } = link;
        let carrier = there && link.is_up();
        let before = match there {
            true => self.carriers.insert(*index, carrier),
            false => self.carriers.remove(index),
        };
        (!name.is_empty() && !carrier && before != Some(false)).then(|| name.clone())
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

fn told_at(begun: Instant) -> Instant {
    (Instant::now() + QUIET).min(begun + LONGEST)
}
