//! Serving the API over HTTP/1.1: bounded in connections, and patient with nobody.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Connections at once; further ones wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 512;

/// From a connection's start, or its last answer, to the end of the next request's header.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Header bytes of a request.
const HEADER_MAX: usize = 64 * 1024;

/// What open requests get to finish at shutdown; followed logs would never.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(3);

/// Pause after the kernel refused a connection, for instance out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop`, then lets open requests finish.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
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
            Ok((stream, _)) => connection(stream, router.clone(), slot, &graceful),
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

fn connection(stream: TcpStream, router: Router, slot: OwnedSemaphorePermit, graceful: &GracefulShutdown) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEADER_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "HTTP connection ended");
        }
        drop(slot);
    });
}
