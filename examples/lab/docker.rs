//! Docker's API over a node's unix socket: as much of HTTP as asking needs.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// A request with its body.
#[derive(Debug, Clone, Copy)]
struct Request<'a> {
    verb: &'a str,
    path: &'a str,
    body: &'a [u8],
}

impl<'a> Request<'a> {
    fn get(path: &'a str) -> Self {
        Self { verb: "GET", path, body: &[] }
    }
}

/// GET a path.
pub(crate) fn ask(socket: &Path, path: &str) -> Result<Value> {
    let body = ask_text(socket, path)?;
    serde_json::from_str(&body).with_context(|| format!("Docker's answer to {path}"))
}

/// GET a path that is answered with one JSON document a line.
pub(crate) fn ask_lines(socket: &Path, path: &str) -> Result<Vec<Value>> {
    let read = |line: &str| serde_json::from_str(line).with_context(|| format!("Docker's answer to {path}"));
    ask_text(socket, path)?.lines().map(read).collect()
}

/// Loads an archive of an image.
pub(crate) fn load(socket: &Path, archive: &[u8]) -> Result<()> {
    let request = Request { verb: "POST", path: "/images/load?quiet=1", body: archive };
    send(socket, request, PATIENCE).map(drop)
}

/// Removes an image with all of its names.
pub(crate) fn remove_image(socket: &Path, id: &str) -> Result<()> {
    let path = format!("/images/{id}?force=1");
    send(socket, Request { verb: "DELETE", path: &path, body: &[] }, PATIENCE).map(drop)
}

/// The daemon answers at once: one that starts takes connections before it does.
pub(crate) fn answers(socket: &Path) -> bool {
    send(socket, Request::get("/_ping"), Duration::from_millis(200)).is_ok()
}

fn ask_text(socket: &Path, path: &str) -> Result<String> {
    send(socket, Request::get(path), PATIENCE)
}

/// HTTP/1.0, so that the answer ends with the connection and comes in one piece.
fn send(socket: &Path, request: Request<'_>, patience: Duration) -> Result<String> {
    let Request { verb, path, body } = request;
    let mut stream = UnixStream::connect(socket).with_context(|| socket.display().to_string())?;
    stream.set_read_timeout(Some(patience))?;
    let bytes = body.len();
    write!(stream, "{verb} {path} HTTP/1.0\r\nHost: docker\r\nContent-Type: application/x-tar\r\n")?;
    write!(stream, "Content-Length: {bytes}\r\n\r\n")?;
    stream.write_all(body)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("Docker's answer has no body")?;
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        bail!("Docker answers {path} with {status}: {body}");
    }
    Ok(body.to_owned())
}

/// Waits until the daemon answers.
pub(crate) fn wait(socket: &Path, patience: Duration) -> Result<()> {
    let start = Instant::now();
    loop {
        match ask_text(socket, "/_ping") {
            Ok(_) => return Ok(()),
            Err(error) if start.elapsed() > patience => return Err(error.context("Docker does not answer")),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}
