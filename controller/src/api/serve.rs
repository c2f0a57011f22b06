//! Serving the API over HTTP/1.1, as a rule in TLS: bounded in connections, and patient with nobody.

use axum::{Extension, Router};
use edgeloom_common::ids::ClusterId;
use edgeloom_identity::Peer;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// Connections at once; further ones wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 512;

/// From a connection's start, or its last answer, to the end of the next request's header.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// For the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Header bytes of a request.
const HEADER_MAX: usize = 64 * 1024;

/// What open requests get to finish at shutdown; followed logs would never.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(3);

/// Pause after the kernel refused a connection, for instance out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How TLS is spoken.
#[derive(Debug, Clone)]
pub struct Tls {
    /// For connections from now on.
    pub config: watch::Receiver<Arc<ServerConfig>>,
    /// A client's certificate counts if it is of this cluster.
    pub cluster: ClusterId,
}

/// What each connection is served with.
#[derive(Clone)]
struct Service {
    router: Router,
    tls: Option<Tls>,
}

/// Serves until `stop`, then lets open requests finish. Without `tls` in plain HTTP.
pub async fn serve(listener: TcpListener, tls: Option<Tls>, router: Router, stop: CancellationToken) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    let service = Service { router, tls };
    loop {
        let accept = async {
            let slot = Arc::clone(&slots).acquire_owned().await.expect("nobody closes the semaphore");
            (listener.accept().await, slot)
        };
        let (accepted, slot) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let serving = service.clone().connection(stream, graceful.watcher());
                tokio::spawn(async move {
                    serving.await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an HTTP connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    if timeout(SHUTDOWN_PATIENCE, graceful.shutdown()).await.is_err() {
        tracing::info!("requests still open at shutdown are cut off");
    }
}

impl Service {
    async fn connection(self, stream: TcpStream, watcher: Watcher) {
        let Some(Tls { config, cluster }) = self.tls else {
            return requests(stream, self.router, watcher).await;
        };
        let acceptor = TlsAcceptor::from(Arc::clone(&config.borrow()));
        let stream = match timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake of an HTTP client failed"),
            Err(_) => return tracing::debug!("TLS handshake of an HTTP client took too long"),
        };
        // Most clients show a token instead; a certificate that is none of ours has failed the handshake.
        let peer = Peer::of(stream.get_ref().1.peer_certificates(), &cluster).ok();
        requests(stream, self.router.layer(Extension(peer)), watcher).await;
    }
}

async fn requests<S>(stream: S, router: Router, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEADER_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "HTTP connection ended");
    }
}
