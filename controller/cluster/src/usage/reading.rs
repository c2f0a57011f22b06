//! Counters of one run of a container at one moment, and what lies between two of them.

use super::book::Rested;
use super::open::Key;
use edgeloom_common::report::TaskTotal;
use edgeloom_common::units::{Bytes, MilliCores};
use serde::{Deserialize, Serialize};

/// No container runs for longer: ten years.
const AGE_MAX_MS: u64 = 10 * 366 * 86_400_000;
/// Processor time that may be counted a little before the age is.
const CPU_SLACK_US: u64 = 1_000_000;
/// No interface of a node is faster: 100 Gbit/s, in bytes a millisecond.
const BYTES_A_MS_MAX: u64 = 12_500_000;
const CONTAINER_MAX: usize = 64;
/// Of a run's number, those that rise from start to start; the rest is the boot's.
const TICK_BITS: u32 = 32;

/// What a node can have: more than that nothing is believed of what it says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) cpu: MilliCores,
    pub(crate) memory: Bytes,
}

/// Counters since the start of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reading {
    pub(crate) container: String,
    pub(crate) run: u64,
    pub(crate) age_ms: u64,
    cpu_us: u64,
    sent: u64,
    received: u64,
    memory: u64,
    memory_byte_s: u64,
    memory_from_ms: u64,
}

/// What was used between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) started: bool,
    pub(super) running_ms: u64,
    pub(super) cpu_us: u64,
    pub(super) memory_byte_s: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
}

impl Bounds {
    fn cpu_us(&self, ms: u64) -> u64 {
        ms.saturating_mul(u64::from(self.cpu.0)).saturating_add(CPU_SLACK_US)
    }

    fn memory_byte_s(&self, ms: u64) -> u64 {
        byte_s(self.memory.0, ms)
    }

    fn bytes(ms: u64) -> u64 {
        (ms + 1000).saturating_mul(BYTES_A_MS_MAX)
    }
}

impl Reading {
    /// What a node says, as far as it can be.
    pub(crate) fn of(total: &TaskTotal, bounds: Bounds) -> Self {
        let age_ms = total.age_ms.min(AGE_MAX_MS);
        let memory_from_ms = total.memory_from_ms.min(age_ms);
        Self {
            container: container_id(&total.container),
            run: total.run,
            age_ms,
            cpu_us: total.cpu_us.min(bounds.cpu_us(age_ms)),
            sent: total.sent.0.min(Bounds::bytes(age_ms)),
            received: total.received.0.min(Bounds::bytes(age_ms)),
            memory: total.memory.0.min(bounds.memory.0),
            memory_byte_s: total.memory_byte_s.min(bounds.memory_byte_s(age_ms - memory_from_ms)),
            memory_from_ms,
        }
    }

    /// Both are of one start of one container.
    pub(super) fn is_of_run(&self, other: &Self) -> bool {
        (&self.container, self.run) == (&other.container, other.run)
    }

    /// Another run that began earlier, of the same boot.
    pub(super) fn began_before(&self, other: &Self) -> bool {
        self.run >> TICK_BITS == other.run >> TICK_BITS && self.run < other.run
    }

    /// That this run was counted up to here, under a record that is closed.
    pub(crate) fn rested(&self, key: Key) -> Rested {
        Rested { key, container: self.container.clone(), run: self.run }
    }

    /// What was used since `before`: of another run everything since the start of this one.
    pub(super) fn since(&self, before: Option<&Self>, bounds: Bounds) -> Used {
        let Some(before) = before.filter(|before| self.is_of_run(before)) else {
            let start = Self { cpu_us: 0, sent: 0, received: 0, age_ms: 0, memory_byte_s: 0, ..self.clone() };
            // The agent looks at a container a moment after its start.
            let start = Self { memory_from_ms: u64::MAX, ..start };
            return Used { started: true, ..self.after(&start, bounds) };
        };
        self.after(before, bounds)
    }

    fn after(&self, before: &Self, bounds: Bounds) -> Used {
        let running_ms = self.age_ms.saturating_sub(before.age_ms);
        // A counter that went back begins anew.
        let grown = |now: u64, before: u64, most: u64| now.checked_sub(before).unwrap_or(now.min(most));
        Used {
            started: false,
            running_ms,
            cpu_us: grown(self.cpu_us, before.cpu_us, bounds.cpu_us(running_ms)),
            memory_byte_s: self.memory_since(before, running_ms),
            sent: grown(self.sent, before.sent, Bounds::bytes(running_ms)),
            received: grown(self.received, before.received, Bounds::bytes(running_ms)),
        }
    }

    /// The agent's sum, if it is the same one. One begun anew since leaves a gap, for which the lesser of what was
    /// used on its two sides counts.
    fn memory_since(&self, before: &Self, running_ms: u64) -> u64 {
        if self.memory_from_ms == before.memory_from_ms {
            return self.memory_byte_s.saturating_sub(before.memory_byte_s);
        }
        let gap_ms = self.memory_from_ms.saturating_sub(before.age_ms).min(running_ms);
        self.memory_byte_s.saturating_add(byte_s(self.memory.min(before.memory), gap_ms))
    }
}

/// As much of what a node says as can be an id.
pub(super) fn container_id(said: &str) -> String {
    said.chars().filter(char::is_ascii_alphanumeric).take(CONTAINER_MAX).collect()
}

/// Bytes times seconds.
pub(super) fn byte_s(bytes: u64, ms: u64) -> u64 {
    u64::try_from(u128::from(bytes) * u128::from(ms) / 1000).unwrap_or(u64::MAX)
}
