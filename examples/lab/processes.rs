//! A lab's processes: found by pid file and by the mark in their environment, and ended.
//!
//! A process id alone proves nothing, it may belong to another by now; only the mark does.

use crate::command::MARK;
use anyhow::{Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use std::path::Path;
use std::time::{Duration, Instant};

/// Every process that carries the lab's mark.
pub(crate) fn marked(lab: &str) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| carries(*pid, lab))
        .collect()
}

fn carries(pid: i32, lab: &str) -> bool {
    let wanted = format!("{MARK}={lab}");
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes()))
}

/// The living process of a pid file, if it is really the lab's.
pub(crate) fn of_file(path: &Path, lab: &str) -> Option<i32> {
    let pid = std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
    (alive(pid) && carries(pid, lab)).then_some(pid)
}

pub(crate) fn alive(pid: i32) -> bool {
    // Our own ended children stay as zombies until waited for.
    let _ = waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG));
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| !rest.starts_with('Z')))
}

/// Signals the processes and waits until they are gone.
pub(crate) fn end(pids: &[i32], signal: Signal, patience: Duration) -> Result<()> {
    for pid in pids {
        // Gone already is what is wanted.
        let _ = kill(Pid::from_raw(*pid), signal);
    }
    let start = Instant::now();
    while pids.iter().any(|pid| alive(*pid)) {
        if start.elapsed() > patience {
            bail!("processes {pids:?} do not end after {signal}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
