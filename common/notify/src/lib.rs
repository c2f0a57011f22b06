//! What a daemon tells the service manager: that it is ready, alive, stopping, and how it stands
//! (sd_notify(3)).
//!
//! In: `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID` of the environment. Out: datagrams, to a path or
//! to a name in the abstract space (`@`). Nothing here waits or fails: without a service manager there is
//! nobody to tell, and a message that gets lost is followed by the next.
//!
//! Invariant: no thread and no timer of its own. Who calls [`Service::alive`] vouches for itself alone.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

/// The service manager, if there is one. Clones speak to the same.
#[derive(Debug, Clone, Default)]
pub struct Service {
    socket: Option<Arc<UnixDatagram>>,
    watchdog: Option<Duration>,
}

impl Service {
    /// The one that started this process.
    #[must_use]
    pub fn from_environment() -> Self {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        // Without a process id the period is meant for whoever reads it; with one, for that process.
        let meant = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|usec| meant && 0 < *usec).map(Duration::from_micros);
        let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return Self::default() };
        Self::at(&name, watchdog).unwrap_or_else(|error| {
            tracing::warn!(%error, socket = ?name, "the service manager cannot be told anything");
            Self::default()
        })
    }

    /// One that listens at `socket` and kills who is silent for `watchdog`.
    ///
    /// # Errors
    /// When nobody listens there.
    pub fn at(socket: &OsStr, watchdog: Option<Duration>) -> io::Result<Self> {
        let address = match socket.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(socket)?,
        };
        let datagrams = UnixDatagram::unbound()?;
        datagrams.connect_addr(&address)?;
        // A service manager that hangs must not make its services hang.
        datagrams.set_nonblocking(true)?;
        Ok(Self { socket: Some(Arc::new(datagrams)), watchdog })
    }

    /// How often to call [`alive`](Self::alive): half of what the service manager waits. None where it
    /// does not watch.
    #[must_use]
    pub fn period(&self) -> Option<Duration> {
        self.watchdog.map(|limit| limit / 2)
    }

    /// The daemon does what it is for.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// The caller is not stuck.
    pub fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    /// How the daemon stands, in a line for people.
    pub fn status(&self, status: &str) {
        self.send(&format!("STATUS={}", one_line(status)));
    }

    /// The daemon was told to end, and does.
    pub fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=stopping");
    }

    fn send(&self, message: &str) {
        let Some(socket) = &self.socket else { return };
        if let Err(error) = socket.send(message.as_bytes()) {
            tracing::debug!(%error, message, "the service manager was not told");
        }
    }
}

/// A line break would begin another assignment.
fn one_line(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 512];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    #[test]
    fn what_is_told_arrives_at_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let service = Service::at(path.as_os_str(), Some(Duration::from_secs(30))).unwrap();
        assert_eq!(service.period(), Some(Duration::from_secs(15)));
        service.ready("up");
        service.alive();
        service.stopping();
        assert_eq!(received(&manager), "READY=1\nSTATUS=up");
        assert_eq!(received(&manager), "WATCHDOG=1");
        assert_eq!(received(&manager), "STOPPING=1\nSTATUS=stopping");
    }

    #[test]
    fn a_name_in_the_abstract_space_is_reached() {
        let name = format!("edgeloom-notify-test-{}", std::process::id());
        let manager = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let service = Service::at(OsStr::new(&format!("@{name}")), None).unwrap();
        service.status("here");
        assert_eq!(received(&manager), "STATUS=here");
        assert_eq!(service.period(), None);
    }

    #[test]
    fn a_status_cannot_smuggle_another_assignment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        Service::at(path.as_os_str(), None).unwrap().status("bad\nMAINPID=1");
        assert_eq!(received(&manager), "STATUS=bad MAINPID=1");
    }

    #[test]
    fn a_service_manager_that_takes_nothing_holds_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let service = Service::at(path.as_os_str(), None).unwrap();
        // More than any queue of datagrams takes (net.unix.max_dgram_qlen).
        (0..10_000).for_each(|_| service.alive());
        assert_eq!(received(&manager), "WATCHDOG=1");
    }

    #[test]
    fn where_nobody_listens_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Service::at(folder.path().join("nobody").as_os_str(), None).is_err());
    }
}
