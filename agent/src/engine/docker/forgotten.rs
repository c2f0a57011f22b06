//! Processes of a container that Docker does not know of.
//!
//! A Docker that keeps containers when it ends (live-restore) and is killed after the start of a process, but
//! before its own note of it, comes back with a container that never ran, as it believes. It can neither stop that
//! process nor start the container beside it, and a container made anew would be the task's second. The kernel
//! still knows: the control group is named by the container's id, whichever version and driver.
//!
//! In: the id of a container that Docker says does not run. Out: no process of it is left.

use super::EngineError;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// Hex digits of a container's id. Anything shorter could be part of another control group's name.
const ID_LENGTH: usize = 64;
/// A killed process is gone once the kernel has taken its memory back.
const PATIENCE: Duration = Duration::from_secs(5);
const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Ends what is left of a container, and says how many processes that were.
pub(super) async fn end(id: &str) -> Result<usize, EngineError> {
    let found = processes(id);
    if found.is_empty() {
        return Ok(0);
    }
    tracing::warn!(
        container = id,
        processes = found.len(),
        "docker does not know of processes that run in the container: they are ended, or the task would run twice"
    );
    let begun = Instant::now();
    let mut left = found.clone();
    while !left.is_empty() {
        let refused = left.iter().fold(None, |refused, process| kill(*process).err().or(refused));
        if PATIENCE < begun.elapsed() || refused.is_some() {
            let reason = refused.map_or_else(|| "they do not end".to_owned(), |error| error.to_string());
            return Err(EngineError::Forgotten { id: id.to_owned(), processes: left.len(), reason });
        }
        tokio::time::sleep(AGAIN_AFTER).await;
        left = processes(id);
    }
    Ok(found.len())
}

/// One that ended by itself meanwhile is as good as killed.
fn kill(process: Pid) -> Result<(), Errno> {
    match kill_process(process, Signal::KILL) {
        Err(Errno::SRCH) => Ok(()),
        other => other,
    }
}

/// Whatever runs in the container's control group, or in one below it.
pub(super) fn processes(id: &str) -> Vec<Pid> {
    if id.len() != ID_LENGTH || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Vec::new();
    }
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
    pids.filter(|pid| is_in(*pid, id)).collect()
}

fn is_in(pid: Pid, id: &str) -> bool {
    let groups = Path::new("/proc").join(pid.as_raw_nonzero().to_string()).join("cgroup");
    // One that has ended meanwhile is in none.
    std::fs::read_to_string(groups).is_ok_and(|groups| groups.contains(id))
        && lives(pid.as_raw_nonzero().get())
}

/// The process is there, and not only for its parent to learn how it ended: field 3 of stat, proc(5).
pub(super) fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    // The name before it may hold anything.
    stat.is_ok_and(|stat| {
        stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with(['Z', 'X']))
    })
}

#[cfg(test)]
mod tests;
