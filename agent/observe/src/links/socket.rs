//! A UDP socket that tells when the kernel received each datagram.
//!
//! The kernel's time counts, not the time at which this program got round to reading: on a busy
//! single core the two differ by milliseconds.

use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, sendto, setsockopt, sockopt};
use nix::time::{ClockId, clock_gettime};
use std::io::{self, IoSliceMut};
use std::net::SocketAddrV4;
use std::os::fd::AsRawFd as _;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// A datagram that came in.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) from: SocketAddrV4,
    pub(super) length: usize,
    /// Kernel receive time, wall clock in nanoseconds.
    pub(super) at_ns: u64,
}

/// The socket of one link address.
#[derive(Debug)]
pub(super) struct ProbeSocket {
    socket: UdpSocket,
}

impl ProbeSocket {
    /// Binds to our address on a link, which need not exist yet: a link may come up later.
    pub(super) fn bind(address: SocketAddrV4) -> io::Result<Self> {
        use nix::sys::socket::{AddressFamily, SockFlag, SockType, bind, socket};
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let descriptor = socket(AddressFamily::Inet, SockType::Datagram, flags, None)?;
        setsockopt(&descriptor, sockopt::IpFreebind, &true)?;
        setsockopt(&descriptor, sockopt::ReceiveTimestampns, &true)?;
        bind(descriptor.as_raw_fd(), &SockaddrIn::from(address))?;
        Ok(Self { socket: UdpSocket::from_std(descriptor.into())? })
    }

    /// The next datagram, cut off at the length of `buffer`.
    pub(super) async fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        self.socket.async_io(Interest::READABLE, || self.read(buffer)).await
    }

    /// Sends at once or not at all: a probe that waits measures nothing.
    pub(super) fn send(&self, datagram: &[u8], to: SocketAddrV4) -> io::Result<()> {
        sendto(self.socket.as_raw_fd(), datagram, &SockaddrIn::from(to), MsgFlags::MSG_DONTWAIT)?;
        Ok(())
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
        let mut parts = [IoSliceMut::new(buffer)];
        let descriptor = self.socket.as_raw_fd();
        let message = recvmsg::<SockaddrIn>(descriptor, &mut parts, Some(&mut control), MsgFlags::empty())?;
        let stamp = message.cmsgs()?.find_map(|part| match part {
            ControlMessageOwned::ScmTimestampns(time) => Some(nanoseconds(time.into())),
            _ => None,
        });
        let from = message.address.ok_or(io::ErrorKind::InvalidData)?;
        let from = SocketAddrV4::new(from.ip(), from.port());
        Ok(Received { from, length: message.bytes, at_ns: stamp.map_or_else(now_ns, Ok)? })
    }
}

/// The wall clock, which is also the clock of receive times.
pub(super) fn now_ns() -> io::Result<u64> {
    Ok(nanoseconds(clock_gettime(ClockId::CLOCK_REALTIME)?.into()))
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
