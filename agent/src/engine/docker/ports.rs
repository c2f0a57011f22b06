//! Ports of our bridge that a killed Docker left behind.
//!
//! They answer with the addresses of tasks that start anew, so they go before anything starts. Nothing depends on
//! their going but what they would disturb: a failure is told in the log and tried again at the next look.

use super::Docker;
use edgeloom_net::KernelError;
use std::io;
use std::path::Path;
use tokio::net::UnixStream;
use tokio::task::spawn_blocking;

/// The daemon's process by its name.
const DAEMON: &str = "dockerd";

/// Removes ports that are none of so many containers'.
pub(super) async fn drop_orphans(docker: &Docker, bridge: &str, containers: usize) {
    let name = bridge.to_owned();
    let removed = match daemons(&docker.socket).await {
        Ok(daemons) => {
            let removing = spawn_blocking(move || edgeloom_net::remove_orphans(&name, containers, &daemons));
            removing.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
        }
        Err(error) => Err(KernelError::Io(error)),
    };
    match removed {
        Ok(ports) if ports.is_empty() => {}
        Ok(ports) => tracing::warn!(
            bridge,
            ports = ports.join(", "),
            "ports of containers that docker does not know any more are removed"
        ),
        Err(error) => tracing::warn!(bridge, %error, "ports that docker left behind are not looked for"),
    }
}

/// Who serves the socket, and where that is systemd on Docker's behalf, every process that may be Docker.
async fn daemons(socket: &Path) -> io::Result<Vec<i32>> {
    let server = UnixStream::connect(socket).await?.peer_cred()?.pid();
    let server = server.ok_or(io::Error::from(io::ErrorKind::NotFound))?;
    let is_daemon = |pid: &i32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim_end() == DAEMON)
    };
    if is_daemon(&server) {
        return Ok(vec![server]);
    }
    let all = std::fs::read_dir("/proc")?.flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(all.filter(is_daemon).chain([server]).collect())
}
