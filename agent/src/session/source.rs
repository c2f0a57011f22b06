//! The address that a connection runs from, and when that is ours no more.
//!
//! What is sent from an address that is gone is never answered, and TCP would try for a quarter of an hour: a node
//! that was given another address has to connect anew at once.

use std::future::pending;
use std::net::{IpAddr, Ipv4Addr};
use tokio::net::UdpSocket;
use tokio::sync::watch;

/// Waits until the address that leads to this host is gone, and says which it was. `changes` rises with each
/// change of the network.
pub(super) async fn gone(host: &str, port: u16, mut changes: watch::Receiver<u64>) -> Ipv4Addr {
    let Some(address) = leading_to(host, port).await else { return pending().await };
    while is_ours(address) {
        if changes.changed().await.is_err() {
            return pending().await;
        }
    }
    address
}

/// What the kernel chooses for a connection; connecting a datagram socket sends nothing. None without a way, or
/// with one over IPv6.
async fn leading_to(host: &str, port: u16) -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await.ok()?;
    socket.connect((host, port)).await.ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

/// Where the kernel does not tell, nothing is given up.
fn is_ours(address: Ipv4Addr) -> bool {
    let Ok(own) = edgeloom_net::addresses() else { return true };
    own.values().flatten().any(|one| one.address == address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sched::{CloneFlags, unshare};
    use std::process::Command;
    use std::time::Duration;

    /// A wait longer than this is a failure.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn ip(words: &str) {
        assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success(), "ip {words}");
    }

    async fn trial() {
        ip("link add near type veth peer name far");
        ip("addr add 10.9.9.1/24 dev near");
        ip("link set near up");
        ip("link set far up");
        let (changed, changes) = watch::channel(0_u64);
        let gone = tokio::spawn(gone("10.9.9.2", 7, changes));
        ip("addr add 10.9.9.5/24 dev near");
        changed.send_modify(|count| *count += 1);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!gone.is_finished(), "another address is no loss");
        ip("addr del 10.9.9.1/24 dev near");
        changed.send_modify(|count| *count += 1);
        let address = tokio::time::timeout(PATIENCE, gone).await.unwrap().unwrap();
        assert_eq!(address, Ipv4Addr::new(10, 9, 9, 1));
    }

    #[test]
    fn a_connection_s_address_that_is_taken_away_is_told() {
        if !edgeloom_prepare::lab_allowed(&["ip"]) {
            return;
        }
        // The namespace ends with its thread.
        let thread = std::thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(trial());
        });
        thread.join().unwrap();
    }
}
