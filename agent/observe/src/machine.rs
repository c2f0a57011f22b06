//! CPU and memory of the whole machine.
//!
//! Only CPU usage and RAM are ever refreshed (some 15 us a reading): a refresh of everything walks all
//! tasks of the machine and keeps files open for each of them.

use crate::meter::{Capacity, Load};
use edgeloom_common::units::{Bytes, MilliCores};
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

/// Why the machine could not be read.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    #[error("cannot read the machine's cpu and memory: {0}")]
    System(#[from] sysinfo::Error),
    #[error("the machine lists no cpu in /proc/stat")]
    NoCpu,
}

/// The machine, as of the last reading.
#[derive(Debug)]
pub struct Machine {
    system: System,
}

impl Machine {
    /// Takes the first reading, from which the next one counts.
    ///
    /// # Errors
    /// When /proc does not read or lists no CPU.
    pub fn open() -> Result<Self, MachineError> {
        let kinds = RefreshKind::nothing()
            .with_cpu(CpuRefreshKind::nothing().with_usage())
            .with_memory(MemoryRefreshKind::nothing().with_ram());
        let system = System::new_with_specifics(kinds)?;
        if system.cpus().is_empty() {
            return Err(MachineError::NoCpu);
        }
        Ok(Self { system })
    }

    /// All CPUs that are on line, and the installed memory.
    #[must_use]
    pub fn capacity(&self) -> Capacity {
        let cores = u32::try_from(self.system.cpus().len()).unwrap_or(u32::MAX);
        Capacity { cpu: MilliCores(cores.saturating_mul(1000)), memory: Bytes(self.system.total_memory()) }
    }

    /// The model name of the first CPU; empty where the kernel has none.
    #[must_use]
    pub fn cpu_model(&self) -> &str {
        self.system.cpus().first().map_or("", |cpu| cpu.brand().trim())
    }

    /// CPU used since the reading before, and the memory that is not available to new programs.
    pub fn load(&mut self) -> Load {
        self.system.refresh_cpu_usage();
        self.system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
        let share = f64::from(self.system.global_cpu_usage()).clamp(0.0, 100.0) / 100.0;
        let capacity = self.capacity();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a u32")]
        let cpu = (f64::from(capacity.cpu.0) * share).round() as u32;
        Load { cpu: MilliCores(cpu), memory: Bytes(self.system.used_memory()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_cpu_and_memory_and_uses_no_more_than_it_has() {
        let mut machine = Machine::open().unwrap();
        let capacity = machine.capacity();
        assert!(capacity.cpu.0 >= 1000 && capacity.cpu.0.is_multiple_of(1000));
        assert!(capacity.memory.0 > 16 << 20);
        let load = machine.load();
        assert!(load.cpu <= capacity.cpu);
        assert!(load.memory > Bytes(0) && load.memory < capacity.memory);
    }
}
