//! The number that this network namespace knows another by. Layout: `struct rtgenmsg` of linux/rtnetlink.h, a byte and
//! padding, then attributes of linux/net_namespace.h.

use super::link::written;
use super::message::Message;
use super::socket::Connection;
use crate::kernel::KernelError;
use netlink_packet_core::{DecodeError, DefaultNla, Emitable, NlasIterator, Parseable};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Bytes of `struct rtgenmsg`, padded.
const HEADER: usize = 4;
const NETNSA_NSID: u16 = 1;
const NETNSA_PID: u16 = 2;
const NETNSA_FD: u16 = 3;

/// What names a namespace in a question, or its number in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamespaceMessage {
    Process(i32),
    File(i32),
    /// None: it was never given one, as nothing of it reaches here.
    Number(Option<i32>),
}

impl Emitable for NamespaceMessage {
    fn buffer_len(&self) -> usize {
        HEADER + 8
    }

    fn emit(&self, buffer: &mut [u8]) {
        let (kind, value) = match *self {
            Self::Process(pid) => (NETNSA_PID, pid),
            Self::File(fd) => (NETNSA_FD, fd),
            Self::Number(id) => (NETNSA_NSID, id.unwrap_or(-1)),
        };
        buffer[..HEADER].fill(0);
        buffer[HEADER..].copy_from_slice(&written(&[DefaultNla::new(kind, value.to_ne_bytes().to_vec())]));
    }
}

impl Parseable<[u8]> for NamespaceMessage {
    fn parse(payload: &[u8]) -> Result<Self, DecodeError> {
        let Some(attributes) = payload.get(HEADER..) else {
            return Err(DecodeError::invalid_buffer("rtgenmsg", payload.len(), HEADER));
        };
        for attribute in NlasIterator::new(attributes) {
            let attribute = attribute?;
            if let (NETNSA_NSID, Ok(value)) = (attribute.kind(), attribute.value().try_into()) {
                return Ok(Self::Number(Some(i32::from_ne_bytes(value)).filter(|id| *id >= 0)));
            }
        }
        Ok(Self::Number(None))
    }
}

/// Of the namespace that a process is in; none of one that has ended.
pub(crate) fn id_of_process(
    connection: &mut Connection<Message>,
    pid: i32,
) -> Result<Option<i32>, KernelError> {
    ask(connection, NamespaceMessage::Process(pid))
}

/// Of the namespace that a file stands for; none of one of another kind.
pub(crate) fn id_of_file(
    connection: &mut Connection<Message>,
    file: BorrowedFd<'_>,
) -> Result<Option<i32>, KernelError> {
    ask(connection, NamespaceMessage::File(file.as_raw_fd()))
}

fn ask(connection: &mut Connection<Message>, question: NamespaceMessage) -> Result<Option<i32>, KernelError> {
    use rustix::io::Errno;
    match connection.ask(Message::GetNamespace(question)) {
        Ok(Message::NewNamespace(NamespaceMessage::Number(id))) => Ok(id),
        Ok(_) => Ok(None),
        Err(error) if error.is_gone() || error.errno() == Some(Errno::INVAL.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_it_is_written() {
        for number in [Some(0), Some(7), None] {
            let message = NamespaceMessage::Number(number);
            let mut bytes = vec![1; message.buffer_len()];
            message.emit(&mut bytes);
            assert_eq!(NamespaceMessage::parse(&bytes).unwrap(), message);
        }
        assert!(NamespaceMessage::parse(&[0; HEADER - 1]).is_err());
    }
}
