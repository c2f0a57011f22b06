//! Accepting peers: each gets a few seconds to prove who it is, and no other waits for it.
//!
//! Strangers are bounded by number: when too many are at the door, the one that has stood there
//! longest is sent away. A real client needs milliseconds, so silent peers displace one another.

use crate::connection::{self, Gate};
use rustls::ServerConfig;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::Instrument;

/// Peers that may be between TCP connect and accepted MQTT connect at once.
const STRANGERS_MAX: usize = 512;

/// What a peer has for TLS handshake and MQTT connect together, and for a session that it displaces to show
/// that it lives.
const INTRODUCTION_TIMEOUT: Duration = Duration::from_secs(8);

/// Pause after the kernel refused a connection, for instance out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Opens the listening socket.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = std::net::TcpListener::bind(address)?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket)
}

/// What all introductions share.
struct Door {
    tls: watch::Receiver<Arc<ServerConfig>>,
    gate: Gate,
    /// Peers refused since start.
    refused: AtomicU64,
}

/// Accepts for ever.
pub(crate) async fn accept_all(listener: TcpListener, tls: watch::Receiver<Arc<ServerConfig>>, gate: Gate) {
    let door = Arc::new(Door { tls, gate, refused: AtomicU64::new(0) });
    let mut strangers: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept an MQTT connection");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        strangers.retain(|task| !task.is_finished());
        if strangers.len() >= STRANGERS_MAX
            && let Some(oldest) = strangers.pop_front()
        {
            tracing::debug!(%peer, "too many silent peers, the oldest is sent away");
            oldest.abort();
        }
        let task = tokio::spawn(introduce(stream, peer, Arc::clone(&door)));
        strangers.push_back(task.abort_handle());
    }
}

/// Learns who the peer is, then serves it in a task of its own, where the limits of strangers end.
async fn introduce(stream: TcpStream, peer: SocketAddr, door: Arc<Door>) {
    let introduction = async {
        stream.set_nodelay(true)?;
        let acceptor = TlsAcceptor::from(Arc::clone(&door.tls.borrow()));
        let stream = acceptor.accept(stream).await?;
        connection::greet(stream, &door.gate).await
    };
    match timeout(INTRODUCTION_TIMEOUT, introduction).await {
        Ok(Ok(client)) => {
            let span = tracing::info_span!("node", node = %client.node());
            tokio::spawn(client.serve().instrument(span));
        }
        Ok(Err(error)) => {
            let count = door.refused.fetch_add(1, Ordering::Relaxed) + 1;
            // Powers of two: a peer that tries again and again does not fill the log.
            if count.is_power_of_two() {
                tracing::warn!(%peer, %error, count, "MQTT client refused");
            } else {
                tracing::debug!(%peer, %error, count, "MQTT client refused");
            }
        }
        Err(_) => tracing::debug!(%peer, "peer said nothing in time"),
    }
}
