//! What the controller tells the service manager.
//!
//! In: the beats of the cluster's owner, one each time it goes around. Out: `WATCHDOG=1` at half the
//! watchdog's period and `STATUS=` when it changed. Nothing is sent without a fresh beat, so an owner that
//! hangs falls silent; the message goes through the runtime that serves API and broker, which must live as well.

use edgeloom_cluster::Beat;
use edgeloom_notify::Service;
use tokio::sync::watch;
use tokio::time::Instant;

/// Passes beats on until the owner is gone.
pub(crate) async fn follow(service: Service, mut beats: watch::Receiver<Beat>) {
    let mut told = String::new();
    let mut due = Instant::now();
    while beats.changed().await.is_ok() {
        let status = status(&beats.borrow_and_update());
        if status != told {
            service.status(&status);
            told = status;
        }
        if let Some(period) = service.period()
            && due <= Instant::now()
        {
            service.alive();
            due = Instant::now() + period;
        }
    }
}

/// How the cluster stands, in a line.
pub(crate) fn status(beat: &Beat) -> String {
    let Beat { jobs, nodes, nodes_online, .. } = beat;
    format!("{jobs} jobs, {nodes_online} of {nodes} nodes online")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;
    use std::time::Duration;

    fn heard(socket: &UnixDatagram) -> Vec<String> {
        let mut bytes = [0; 512];
        std::iter::from_fn(|| {
            let length = socket.recv(&mut bytes).ok()?;
            Some(String::from_utf8(bytes[..length].to_vec()).unwrap())
        })
        .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn without_beats_of_the_owner_there_is_no_sign_of_life() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let service = Service::at(path.as_os_str(), Some(Duration::from_secs(10))).unwrap();
        let (beat, beats) = watch::channel(Beat::default());
        let following = tokio::spawn(follow(service, beats));
        for _ in 0..11 {
            beat.send_modify(|beat| beat.count += 1);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let alive = ["WATCHDOG=1"; 3];
        assert_eq!(heard(&socket), [["STATUS=0 jobs, 0 of 0 nodes online"].as_slice(), &alive].concat());
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(heard(&socket), Vec::<String>::new());
        drop(beat);
        following.await.unwrap();
    }
}
