//! The kernel as the reconciler sees it: list, perform one operation, count.

use crate::object::{Counter, Found, Operation};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// What the kernel offers, found by trying on a temporary interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offered {
    pub htb: bool,
    pub fq_codel: bool,
    pub nft_maps: bool,
}

/// Why the kernel did not do it.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    #[error("{}", std::io::Error::from_raw_os_error(*errno))]
    Refused { errno: i32 },
    #[error("no answer within {seconds} s")]
    Timeout { seconds: u64 },
    #[error("the answer does not read: {0}")]
    Decode(#[from] netlink_packet_core::DecodeError),
    #[error("listing was interrupted by changes {times} times in a row")]
    Interrupted { times: u32 },
    #[error("netlink: {0}")]
    Socket(std::io::Error),
    #[error("interface {interface} does not exist")]
    NoInterface { interface: String },
    #[error("`{program}` ended with {status}: {message}")]
    Program { program: &'static str, status: String, message: String },
    #[error("{0}")]
    Io(std::io::Error),
}

impl KernelError {
    /// The error number, where the kernel gave one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Refused { errno } => Some(*errno),
            Self::Io(error) | Self::Socket(error) => error.raw_os_error(),
            _ => None,
        }
    }

    /// The caller lacks the right to change the network.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        self.errno() == Some(rustix::io::Errno::PERM.raw_os_error())
    }

    /// What was to be removed is not there (routes answer ESRCH, links ENODEV).
    #[must_use]
    pub fn is_gone(&self) -> bool {
        use rustix::io::Errno;
        let gone = [Errno::NOENT, Errno::SRCH, Errno::NODEV];
        matches!(self, Self::NoInterface { .. })
            || gone.iter().any(|e| self.errno() == Some(e.raw_os_error()))
    }
}

/// One network namespace.
pub trait Kernel {
    /// Everything that decides what to do; classes and leaves only of `interfaces`.
    fn list(&mut self, interfaces: &BTreeSet<&str>) -> Result<Found, KernelError>;
    fn perform(&mut self, operation: &Operation) -> Result<(), KernelError>;
    /// Tells who is behind the bridge that it answers for these addresses now.
    fn announce(&mut self, bridge: &str, addresses: &[Ipv4Addr]) -> Result<(), KernelError>;
    /// Class counters below our root on one interface, by minor.
    fn counters(&mut self, interface: &str) -> Result<BTreeMap<u16, Counter>, KernelError>;
    /// The value of a sysctl (`net/ipv4/ip_forward`); none when the key does not exist.
    fn sysctl(&mut self, key: &str) -> Result<Option<String>, KernelError>;
    fn set_sysctl(&mut self, key: &str, value: &str) -> Result<(), KernelError>;
    /// What the kernel can do, tried without touching anything that is there.
    fn offered(&mut self) -> Result<Offered, KernelError>;
}
