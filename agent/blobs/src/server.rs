//! Connections taken in, a bounded number at once.

use crate::CHUNK_BYTES;
use crate::answer::Body;
use crate::http::Stream;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Docker uses a handful, a neighbour too; more are somebody else's.
const CONNECTIONS_MAX: usize = 64;
/// For the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// After an accept that failed, for instance for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Hands each connection on until the future is dropped.
pub(crate) async fn accept<F>(listener: TcpListener, converse: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await.expect("nobody closes it");
        match listener.accept().await {
            Ok((stream, _)) => {
                let conversation = converse(stream);
                tokio::spawn(async move {
                    conversation.await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the layer proxy takes no connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// An answer on its way.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// Answers the requests of one connection, in plain text or not: boxed, so that the code for it is there once.
pub(crate) async fn converse(
    stream: Box<dyn Stream>,
    answer: Box<dyn Fn(Request<Incoming>) -> Answering + Send + Sync>,
) {
    let service = service_fn(|request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(CHUNK_BYTES);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        // A pull that was given up looks like this.
        tracing::debug!(%error, "a connection for layers ended");
    }
}
