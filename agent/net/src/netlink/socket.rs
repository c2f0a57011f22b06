//! A synchronous netlink socket: one request at a time, its answers matched by sequence number.
//!
//! Every wait is bounded. A batch (nfnetlink transactions) is one `sendmsg`; the kernel then answers each
//! message, or the whole with a single error, so reading stops at the first error or the last answer.

use crate::kernel::KernelError;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkDeserializable, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};
use rustix::net::sockopt::{self, Timeout};
use std::marker::PhantomData;
use std::time::Duration;

/// Longest wait for one datagram from the kernel, which answers in microseconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Dumps that changes interrupt are begun anew this often.
const DUMP_TRIES: u32 = 5;
/// Room for a transaction with thousands of elements; the default takes about 2000.
const SEND_BUFFER_BYTES: usize = 4 << 20;
/// The kernel set this flag on a dump that changes may have made inconsistent (`NLM_F_DUMP_INTR`).
const DUMP_INTERRUPTED: u16 = 0x10;

/// A socket for messages of one protocol, in the namespace of the thread that opened it.
pub(crate) struct Connection<T> {
    socket: Socket,
    sequence: u32,
    messages: PhantomData<fn() -> T>,
}

impl<T> std::fmt::Debug for Connection<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

impl<T> Connection<T>
where
    T: NetlinkSerializable + NetlinkDeserializable + std::fmt::Debug,
{
    /// Opens a socket to one of the kernel's netlink families.
    pub(crate) fn open(family: isize) -> Result<Self, KernelError> {
        let mut socket = Socket::new(family).map_err(KernelError::Socket)?;
        socket.bind_auto().map_err(KernelError::Socket)?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(KernelError::Socket)?;
        // Without the right to exceed the system's limit the usual buffer serves small transactions.
        let _ = sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER_BYTES);
        sockopt::set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_TIMEOUT))
            .map_err(|errno| KernelError::Socket(errno.into()))?;
        Ok(Self { socket, sequence: 0, messages: PhantomData })
    }

    /// Makes the kernel take the header of a dump request as a filter (Linux 4.20); older ones send more.
    pub(crate) fn filter_dumps(&self) {
        if let Err(error) = self.socket.set_netlink_get_strict_chk(true) {
            tracing::debug!(%error, "the kernel does not filter dumps");
        }
    }

    /// Sends one message and waits until the kernel has done it.
    pub(crate) fn request(&mut self, message: T, flags: u16) -> Result<(), KernelError> {
        self.batch(vec![(message, flags | NLM_F_ACK)])
    }

    /// Sends messages as one datagram; waits for an answer to each that asked for one, or an error.
    pub(crate) fn batch(&mut self, messages: Vec<(T, u16)>) -> Result<(), KernelError> {
        let first = self.sequence.wrapping_add(1);
        let mut datagram = Vec::new();
        let mut last_answered = None;
        for (message, flags) in messages {
            let sequence = self.append(&mut datagram, message, flags);
            if flags & NLM_F_ACK != 0 {
                last_answered = Some(sequence);
            }
        }
        self.send(&datagram)?;
        let Some(last) = last_answered else { return Ok(()) };
        loop {
            let answer = self.receive()?;
            for message in split::<Ignored>(&answer) {
                let (header, payload) = message?.into_parts();
                let NetlinkPayload::Error(outcome) = payload else {
                    continue;
                };
                // An answer to an earlier request that was given up.
                if header.sequence_number.wrapping_sub(first) > last.wrapping_sub(first) {
                    continue;
                }
                if outcome.code.is_some() {
                    return Err(KernelError::Refused { errno: outcome.raw_code().abs() });
                }
                if header.sequence_number == last {
                    return Ok(());
                }
            }
        }
    }

    /// Sends one message that the kernel answers with another.
    pub(crate) fn ask(&mut self, message: T) -> Result<T, KernelError> {
        let mut datagram = Vec::new();
        let sequence = self.append(&mut datagram, message, 0);
        self.send(&datagram)?;
        loop {
            for message in split::<T>(&self.receive()?) {
                let (header, payload) = message?.into_parts();
                match payload {
                    _ if header.sequence_number != sequence => {}
                    NetlinkPayload::InnerMessage(message) => return Ok(message),
                    NetlinkPayload::Error(error) => {
                        return Err(KernelError::Refused { errno: error.raw_code().abs() });
                    }
                    _ => {}
                }
            }
        }
    }

    /// Lists objects; `each` sees every one. Begun anew when changes interrupted it.
    pub(crate) fn dump<R>(
        &mut self,
        request: impl Fn() -> T,
        each: impl Fn(T) -> Option<R>,
    ) -> Result<Vec<R>, KernelError> {
        for _ in 0..DUMP_TRIES {
            if let Some(listed) = self.dump_once(request(), &each)? {
                return Ok(listed);
            }
        }
        Err(KernelError::Interrupted { times: DUMP_TRIES })
    }

    fn dump_once<R>(
        &mut self,
        request: T,
        each: impl Fn(T) -> Option<R>,
    ) -> Result<Option<Vec<R>>, KernelError> {
        let mut datagram = Vec::new();
        let sequence = self.append(&mut datagram, request, NLM_F_DUMP);
        self.send(&datagram)?;
        let mut listed = Vec::new();
        let mut interrupted = false;
        loop {
            let answer = self.receive()?;
            for message in split::<T>(&answer) {
                let (header, payload) = message?.into_parts();
                if header.sequence_number != sequence {
                    continue;
                }
                interrupted |= header.flags & DUMP_INTERRUPTED != 0;
                match payload {
                    NetlinkPayload::InnerMessage(message) => listed.extend(each(message)),
                    NetlinkPayload::Done(done) if done.code < 0 => {
                        return Err(KernelError::Refused { errno: done.code.abs() });
                    }
                    NetlinkPayload::Done(_) => return Ok((!interrupted).then_some(listed)),
                    NetlinkPayload::Error(error) if error.code.is_some() => {
                        return Err(KernelError::Refused { errno: error.raw_code().abs() });
                    }
                    _ => {}
                }
            }
        }
    }

    fn append(&mut self, datagram: &mut Vec<u8>, message: T, flags: u16) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        let payload = NetlinkPayload::InnerMessage(message);
        let mut message = NetlinkMessage::new(NetlinkHeader::default(), payload);
        message.header.flags = flags | NLM_F_REQUEST;
        message.header.sequence_number = self.sequence;
        message.finalize();
        let start = datagram.len();
        datagram.resize(start + message.buffer_len().next_multiple_of(4), 0);
        message.serialize(&mut datagram[start..]);
        self.sequence
    }

    fn send(&self, datagram: &[u8]) -> Result<(), KernelError> {
        self.socket.send(datagram, 0).map(drop).map_err(KernelError::Socket)
    }

    fn receive(&self) -> Result<Vec<u8>, KernelError> {
        use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
        loop {
            match self.socket.recv_from_full() {
                Ok((datagram, _)) => return Ok(datagram),
                Err(error) if error.kind() == Interrupted => {}
                Err(error) if matches!(error.kind(), WouldBlock | TimedOut) => {
                    return Err(KernelError::Timeout { seconds: ANSWER_TIMEOUT.as_secs() });
                }
                Err(error) => return Err(KernelError::Socket(error)),
            }
        }
    }
}

/// The messages of one datagram.
pub(crate) fn split<T>(datagram: &[u8]) -> impl Iterator<Item = Result<NetlinkMessage<T>, KernelError>>
where
    T: NetlinkDeserializable + std::fmt::Debug,
{
    let mut rest = datagram;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let length = match NetlinkBuffer::new_checked(rest) {
            Ok(buffer) => usize::try_from(buffer.length()).expect("32 bits fit"),
            Err(error) => {
                rest = &[];
                return Some(Err(error.into()));
            }
        };
        let message = NetlinkMessage::deserialize(&rest[..length]);
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some(message.map_err(KernelError::from))
    })
}

/// A message whose content does not matter: only outcomes are read while a request is under way.
#[derive(Debug)]
struct Ignored;

impl NetlinkDeserializable for Ignored {
    type Error = std::convert::Infallible;
    fn deserialize(_: &NetlinkHeader, _: &[u8]) -> Result<Self, Self::Error> {
        Ok(Self)
    }
}
