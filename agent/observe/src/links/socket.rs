//! A UDP socket that tells when the kernel received each datagram, and who has nobody listening.
//!
//! A neighbour whose agent is being restarted answers all the same: its kernel says that the port is closed
//! (RFC 1122, section 4.1.3.1), and that its links are alive. IP_RECVERR (ip(7)) brings that here.
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

/// Origin ICMP (`SO_EE_ORIGIN_ICMP`), destination unreachable, port unreachable.
const PORT_UNREACHABLE: (u8, u8, u8) = (2, 3, 3);

/// A datagram that came in.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) from: SocketAddrV4,
    pub(super) length: usize,
    /// Kernel receive time, wall clock in nanoseconds.
    pub(super) at_ns: u64,
}

/// What came in.
#[derive(Debug)]
pub(super) enum Incoming {
    Datagram(Received),
    /// The machine at this address answers for a program that does not run.
    Closed(SocketAddrV4),
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
        setsockopt(&descriptor, sockopt::Ipv4RecvErr, &true)?;
        bind(descriptor.as_raw_fd(), &SockaddrIn::from(address))?;
        Ok(Self { socket: UdpSocket::from_std(descriptor.into())? })
    }

    /// The next datagram, cut off at the length of `buffer`, or the next word of a closed port.
    pub(super) async fn receive(&self, buffer: &mut [u8]) -> io::Result<Incoming> {
        let interest = Interest::READABLE | Interest::ERROR;
        self.socket.async_io(interest, || self.read_any(buffer)).await
    }

    /// Sends at once or not at all: a probe that waits measures nothing.
    pub(super) fn send(&self, datagram: &[u8], to: SocketAddrV4) -> io::Result<()> {
        let send =
            || sendto(self.socket.as_raw_fd(), datagram, &SockaddrIn::from(to), MsgFlags::MSG_DONTWAIT);
        // The first may be refused for what became of an earlier one.
        send().or_else(|_| send())?;
        Ok(())
    }

    /// A datagram, or what lies in the queue of errors: a pending error is told once in a datagram's place.
    fn read_any(&self, buffer: &mut [u8]) -> io::Result<Incoming> {
        match self.read(buffer) {
            Ok(received) => Ok(Incoming::Datagram(received)),
            Err(_) => self.read_error(buffer).map(Incoming::Closed),
        }
    }

    /// The next port that a neighbour's kernel calls closed; other errors say nothing about a neighbour.
    fn read_error(&self, buffer: &mut [u8]) -> io::Result<SocketAddrV4> {
        loop {
            let mut control = nix::cmsg_space!([u8; 128]);
            let mut parts = [IoSliceMut::new(buffer)];
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let message =
                recvmsg::<SockaddrIn>(self.socket.as_raw_fd(), &mut parts, Some(&mut control), flags)?;
            let closed = |part| match part {
                ControlMessageOwned::Ipv4RecvErr(error, _) => {
                    (error.ee_origin, error.ee_type, error.ee_code) == PORT_UNREACHABLE
                }
                _ => false,
            };
            if let (true, Some(to)) = (message.cmsgs()?.any(closed), message.address) {
                return Ok(SocketAddrV4::new(to.ip(), to.port()));
            }
        }
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
