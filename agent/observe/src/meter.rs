//! The one meter of CPU and memory, whether the node is a whole machine or a control group.

use crate::cgroup::{Cgroup, CgroupError};
use crate::machine::{Machine, MachineError};
use edgeloom_common::units::{Bytes, MilliCores};

/// What a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    pub cpu: MilliCores,
    pub memory: Bytes,
}

/// What a node uses. CPU is the mean between this reading and the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    pub cpu: MilliCores,
    pub memory: Bytes,
}

/// Why CPU and memory could not be read.
#[derive(Debug, thiserror::Error)]
pub enum MeterError {
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
}

/// Reads capacity and load of the machine or of one control group.
#[derive(Debug)]
pub enum Meter {
    Machine(Box<Machine>),
    Cgroup(Cgroup),
}

impl Meter {
    /// A meter of `cgroup` (a path relative to the cgroup mounts), or of the machine when there is none.
    ///
    /// # Errors
    /// When the kernel's files are missing or do not read.
    pub fn open(cgroup: Option<&str>) -> Result<Self, MeterError> {
        Ok(match cgroup {
            Some(path) => Self::Cgroup(Cgroup::open(path)?),
            None => Self::Machine(Box::new(Machine::open()?)),
        })
    }

    /// What the node has now: quotas may be changed while it runs.
    ///
    /// # Errors
    /// When a file of the control group has gone or does not read.
    pub fn capacity(&mut self) -> Result<Capacity, MeterError> {
        match self {
            Self::Machine(machine) => Ok(machine.capacity()),
            Self::Cgroup(cgroup) => Ok(cgroup.capacity()?),
        }
    }

    /// What the node uses, since the reading before.
    ///
    /// # Errors
    /// When a file of the control group has gone or does not read.
    pub fn load(&mut self) -> Result<Load, MeterError> {
        match self {
            Self::Machine(machine) => Ok(machine.load()),
            Self::Cgroup(cgroup) => Ok(cgroup.load()?),
        }
    }
}
