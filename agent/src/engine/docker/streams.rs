//! The answers that go on: pulls and logs. Each is fed into a channel, so that nothing of the
//! client library leaves this folder.

use super::inspect::Puller;
use super::through::{self, Failure};
use super::{Docker, EngineError, Request, pull_reference};
use crate::engine::{LogSelection, Pace, PullProgress};
use bollard::auth::DockerCredentials;
use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::models::CreateImageInfo;
use bollard::query_parameters::{CreateImageOptionsBuilder, LogsOptionsBuilder};
use edgeloom_common::confidential::Login;
use edgeloom_common::desired::ImageRef;
use futures_util::{Stream, StreamExt, pin_mut};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// A pull may take hours on a thin link; one from which next to nothing comes for this long is given up.
/// Docker itself survives outages of about a minute, and extracting a large layer says little.
const PULL_STALL: Duration = Duration::from_secs(180);

pub(super) async fn pull(
    docker: &Docker,
    (image, login): (&ImageRef, Option<&Login>),
    progress: &watch::Sender<PullProgress>,
) -> Result<(), EngineError> {
    let Some(puller) = Puller::of(docker, (image, login)).await? else {
        return direct(docker, (image, login), progress).await;
    };
    let preview = puller.preview(image).await?;
    let pulled = match docker.proxy.get().zip(image.digest.parse().ok()) {
        Some((proxy, digest)) => {
            match through::pull(docker, (proxy, puller.upstream), (image, &digest), progress).await {
                Err(Failure::Store(error)) => {
                    tracing::warn!(image = %image.name, %error, "no pull through the layer store; without it");
                    direct(docker, (image, login), progress).await
                }
                Err(Failure::Pull(error)) => Err(error),
                Ok(()) => Ok(()),
            }
        }
        None => direct(docker, (image, login), progress).await,
    };
    pulled.map_err(|error| preview.explain(image, error))
}

/// From the registry itself.
async fn direct(
    docker: &Docker,
    (image, login): (&ImageRef, Option<&Login>),
    progress: &watch::Sender<PullProgress>,
) -> Result<(), EngineError> {
    let credentials = login.map(|login| DockerCredentials {
        username: Some(login.username.clone()),
        password: Some(login.password.expose().to_owned()),
        ..Default::default()
    });
    fetch(docker, (&pull_reference(image), credentials), progress).await
}

/// Has Docker fetch what is under this name, as whoever the credentials say.
pub(super) async fn fetch(
    docker: &Docker,
    (name, credentials): (&str, Option<DockerCredentials>),
    progress: &watch::Sender<PullProgress>,
) -> Result<(), EngineError> {
    let options = CreateImageOptionsBuilder::new().from_image(name).build();
    let stream = docker.client().await?.create_image(Some(options), None, credentials);
    pin_mut!(stream);
    let mut pace = Pace::new(Instant::now());
    while let Some(line) = next_line(&mut stream, name).await? {
        let line = line.map_err(|error| pull_error(docker, name, &error))?;
        observe(progress, &line);
        if PULL_STALL < pace.idle(&progress.borrow(), Instant::now()) {
            return Err(stalled(name));
        }
    }
    Ok(())
}

fn stalled(name: &str) -> EngineError {
    EngineError::Stalled { image: name.to_owned(), seconds: PULL_STALL.as_secs() }
}

async fn next_line<T>(
    stream: &mut (impl Stream<Item = T> + Unpin),
    name: &str,
) -> Result<Option<T>, EngineError> {
    tokio::time::timeout(PULL_STALL, stream.next()).await.map_err(|_| stalled(name))
}

/// Failures come inside the stream, with status 200 long sent.
fn pull_error(docker: &Docker, name: &str, error: &Error) -> EngineError {
    match error {
        Error::DockerStreamError { error } => {
            EngineError::Pull { image: name.to_owned(), reason: error.clone() }
        }
        other => docker.refusal(Request { verb: "pull image", object: name }, other),
    }
}

fn observe(progress: &watch::Sender<PullProgress>, line: &CreateImageInfo) {
    let (Some(layer), Some(status)) = (&line.id, &line.status) else {
        return;
    };
    let number = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
    let detail = line.progress_detail.as_ref();
    let current = detail.and_then(|detail| number(detail.current));
    let total = detail.and_then(|detail| number(detail.total));
    progress.send_modify(|progress| progress.observe(layer, status, current, total));
}

/// Docker keeps a long line in pieces, and sets a time before each; the first is the line's.
#[derive(Debug, Default)]
struct Lines {
    /// The last piece of either stream did not end its line.
    open: [bool; 2],
}

impl Lines {
    /// The piece without the time that does not begin a line.
    fn once(&mut self, piece: LogOutput) -> Vec<u8> {
        let stream = usize::from(matches!(piece, LogOutput::StdErr { .. }));
        let text = piece.into_bytes();
        let goes_on = std::mem::replace(&mut self.open[stream], !text.ends_with(b"\n"));
        match text.iter().position(|byte| *byte == b' ').filter(|_| goes_on) {
            Some(blank) => text[blank + 1..].to_vec(),
            None => text.to_vec(),
        }
    }
}

pub(super) async fn logs(
    docker: &Docker,
    id: &str,
    selection: LogSelection,
    text: mpsc::Sender<Vec<u8>>,
) -> Result<(), EngineError> {
    let tail = selection.tail.map_or_else(|| "all".to_owned(), |lines| lines.to_string());
    let options = LogsOptionsBuilder::new().follow(selection.follow).stdout(true).stderr(true).tail(&tail);
    let since_s = selection.since_s.map_or(0, |since_s| i32::try_from(since_s).unwrap_or(i32::MAX));
    let options = options.since(since_s).timestamps(selection.timestamps).build();
    let mut lines = Lines::default();
    let stream = docker.client().await?.logs(id, Some(options));
    pin_mut!(stream);
    loop {
        // A followed log may say nothing for hours after its reader went away.
        let piece = tokio::select! {
            () = text.closed() => return Ok(()),
            piece = stream.next() => piece,
        };
        let Some(piece) = piece else { return Ok(()) };
        let piece =
            piece.map_err(|error| docker.refusal(Request { verb: "read logs of", object: id }, &error))?;
        let piece = if selection.timestamps { lines.once(piece) } else { piece.into_bytes().to_vec() };
        if text.send(piece).await.is_err() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
