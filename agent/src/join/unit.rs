//! Starting the agent's unit once this machine is a node: who joins wants it to be one from now on.
//!
//! In: the configuration that was joined with. Out: the unit runs, and starts at every boot; or there is none
//! to start. Invariant: another configuration than the unit's own starts nothing.

use crate::config::CONFIG_USUAL;
use std::path::Path;
use std::process::{Command, Output};

const UNIT: &str = "edgeloom-agent.service";
/// Is there where systemd is the service manager: sd_booted(3).
const BOOTED: &str = "/run/systemd/system";

/// What became of the unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Started,
    /// No systemd, no unit, or not its configuration.
    Absent,
}

/// Why the unit does not run; the membership stands.
#[derive(Debug, thiserror::Error)]
pub enum UnitError {
    #[error("systemctl does not start: {0}")]
    Systemctl(#[from] std::io::Error),
    #[error(
        "{UNIT} does not start ({reason}); `edgeloom-agent doctor` and `journalctl --unit {UNIT}` say why, `systemctl enable --now {UNIT}` tries again"
    )]
    Refused { reason: String },
}

/// Enables and starts the unit where there is one for this configuration, and waits until it is ready.
///
/// # Errors
/// When systemd cannot start it.
pub fn start_unit(config: &Path) -> Result<Unit, UnitError> {
    let ours = config == Path::new(CONFIG_USUAL) && Path::new(BOOTED).is_dir();
    if !ours || !systemctl(&["cat", UNIT])?.status.success() {
        return Ok(Unit::Absent);
    }
    let output = systemctl(&["enable", "--now", UNIT])?;
    if output.status.success() {
        return Ok(Unit::Started);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(UnitError::Refused { reason: said.split_whitespace().collect::<Vec<_>>().join(" ") })
}

fn systemctl(words: &[&str]) -> std::io::Result<Output> {
    Command::new("systemctl").args(words).output()
}
