//! Docker's API over a node's unix socket: as much of HTTP as asking needs.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// GET a path. HTTP/1.0, so that the answer ends with the connection and comes in one piece.
pub(crate) fn ask(socket: &Path, path: &str) -> Result<Value> {
    let body = ask_text(socket, path)?;
    serde_json::from_str(&body).with_context(|| format!("Docker's answer to {path}"))
}

/// The daemon answers at once: one that starts takes connections before it does.
pub(crate) fn answers(socket: &Path) -> bool {
    ask_within(socket, "/_ping", Duration::from_millis(200)).is_ok()
}

fn ask_text(socket: &Path, path: &str) -> Result<String> {
    ask_within(socket, path, Duration::from_secs(30))
}

fn ask_within(socket: &Path, path: &str, patience: Duration) -> Result<String> {
    let mut stream = UnixStream::connect(socket).with_context(|| socket.display().to_string())?;
    stream.set_read_timeout(Some(patience))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: docker\r\n\r\n")?;
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
