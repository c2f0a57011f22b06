//! The worker's pulse towards the service manager: ready, alive, and a line on how the node stands.
//!
//! In: what the worker observes, each time around its loop. Out: `READY=1` once, `STATUS=` when it changed,
//! `WATCHDOG=1` at half the watchdog's period. The worker's own loop drives it, so that an agent whose
//! worker hangs, or waits for the kernel in vain, is started anew.

use edgeloom_common::report::{ContainerPhase, Observed};
use edgeloom_notify::Service;
use tokio::time::{Instant, sleep_until};

/// The pulse; the default one beats for nobody.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    service: Service,
    /// When the next sign of life is due.
    next: Option<Instant>,
    ready: bool,
    status: String,
}

impl Pulse {
    /// Beats for `service`.
    pub(crate) fn new(service: Service) -> Self {
        let next = service.period().map(|period| Instant::now() + period);
        Self { service, next, ready: false, status: String::new() }
    }

    /// Ends when a sign of life is due; never where nobody watches. It may be dropped and asked again.
    pub(crate) async fn due(&self) {
        match self.next {
            Some(next) => sleep_until(next).await,
            None => std::future::pending().await,
        }
    }

    /// Gives the sign of life that is due, unless what the worker works through hangs.
    pub(crate) fn beat(&mut self, is_stuck: bool) {
        if is_stuck {
            tracing::error!("the network thread hangs: the service manager is to start the agent anew");
        } else {
            self.service.alive();
        }
        self.next = self.service.period().map(|period| Instant::now() + period);
    }

    /// Tells how the node stands; `begun` is whether reconciling goes on from what kernel and disk hold.
    pub(crate) fn tell(&mut self, begun: bool, observed: &Observed) {
        let status = status(observed);
        let first = begun && !self.ready;
        if first {
            self.service.ready(&status);
            self.ready = true;
        } else if status != self.status {
            self.service.status(&status);
        }
        self.status = status;
    }
}

fn status(observed: &Observed) -> String {
    let generation = observed.version.generation;
    let running = observed.containers.iter().filter(|one| one.phase == ContainerPhase::Running).count();
    let containers = observed.containers.len();
    let problem = observed.problems.first();
    let problem = problem.map(|problem| format!("; {problem}")).unwrap_or_default();
    match generation {
        0 => format!("no desired state yet{problem}"),
        _ => format!("generation {generation}: {running} of {containers} containers run{problem}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::desired::Version;
    use edgeloom_common::samples;
    use std::os::unix::net::UnixDatagram;
    use std::time::Duration;
    use tempfile::TempDir;

    struct Manager {
        socket: UnixDatagram,
        folder: TempDir,
    }

    impl Manager {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
            socket.set_nonblocking(true).unwrap();
            Self { socket, folder }
        }

        fn pulse(&self) -> Pulse {
            let path = self.folder.path().join("notify");
            Pulse::new(Service::at(path.as_os_str(), Some(Duration::from_secs(20))).unwrap())
        }

        fn heard(&self) -> Vec<String> {
            let mut bytes = [0; 512];
            std::iter::from_fn(|| {
                let length = self.socket.recv(&mut bytes).ok()?;
                Some(String::from_utf8(bytes[..length].to_vec()).unwrap())
            })
            .collect()
        }
    }

    fn observed(generation: u64) -> Observed {
        samples::observed(Version { epoch: 1, generation }, Vec::new())
    }

    #[tokio::test]
    async fn it_is_ready_once_and_only_when_reconciling_began() {
        let manager = Manager::new();
        let mut pulse = manager.pulse();
        pulse.tell(false, &observed(3));
        pulse.tell(true, &observed(3));
        pulse.tell(true, &observed(3));
        pulse.tell(true, &observed(4));
        let line = |generation: u64| format!("STATUS=generation {generation}: 0 of 0 containers run");
        assert_eq!(manager.heard(), [line(3), format!("READY=1\n{}", line(3)), line(4)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sign_of_life_is_due_at_half_the_period_unless_stuck() {
        let manager = Manager::new();
        let mut pulse = manager.pulse();
        let begun = Instant::now();
        for _ in 0..3 {
            pulse.due().await;
            pulse.beat(false);
        }
        pulse.due().await;
        pulse.beat(true);
        assert_eq!(begun.elapsed().as_secs(), 40);
        assert_eq!(manager.heard(), ["WATCHDOG=1"; 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn where_nobody_watches_nothing_is_due() {
        let pulse = Pulse::default();
        assert!(tokio::time::timeout(Duration::from_secs(3600), pulse.due()).await.is_err());
    }
}
