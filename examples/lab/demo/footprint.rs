//! What the agents cost at rest, read from outside: proportional set size and CPU time.

use super::report::AgentRow;
use super::stage::Stage;
use crate::document::Document;
use anyhow::{Context, Result};
use std::time::{Duration, Instant};

/// At most this much memory an agent (proportional set size, bytes).
pub(crate) const PSS_MAX: u64 = 8 * 1024 * 1024;
/// At most this share of a core.
pub(crate) const CPU_MAX: f64 = 0.005;
/// Desired states that every agent has gone through before it is measured.
const UPDATES: u64 = 100;
/// Clock ticks a second in /proc/PID/stat (`getconf CLK_TCK` on every Linux we run on).
const TICKS_PER_SECOND: f64 = 100.0;

/// Runs and stops a job until every node's generation has risen by a hundred.
pub(crate) fn hundred_updates(stage: &mut Stage, file: &str) -> Result<()> {
    let document = Document::example(file)?;
    let first = generations(stage)?;
    loop {
        let done = generations(stage)?.iter().zip(&first).map(|(now, then)| now - then).min().unwrap_or(0);
        println!("  {} of {UPDATES} desired states", done.min(UPDATES));
        if done >= UPDATES {
            return Ok(());
        }
        for _ in 0..5 {
            let view = stage.ground.api.post(&document.text)?;
            stage.ground.engines.wait_running(
                &format!("edgeloom.job={}", view.name),
                view.tasks.len(),
                |_| (),
            )?;
            stage.ground.api.stop(view.name.as_str())?;
        }
    }
}

fn generations(stage: &Stage) -> Result<Vec<u64>> {
    Ok(stage.ground.api.nodes()?.nodes.iter().map(|node| node.version_observed.1).collect())
}

/// Memory and CPU of each agent over `window`.
pub(crate) fn measure(stage: &Stage, window: Duration) -> Result<Vec<AgentRow>> {
    let agents: Vec<(String, u32)> = stage
        .ground
        .node_names()
        .into_iter()
        .map(|node| Ok((node.clone(), stage.agent_pid(&node)?)))
        .collect::<Result<_>>()?;
    let ticks = |pid: u32| cpu_ticks(pid);
    let before: Vec<f64> = agents.iter().map(|(_, pid)| ticks(*pid)).collect::<Result<_>>()?;
    let begun = Instant::now();
    println!("  measuring for {} s", window.as_secs());
    std::thread::sleep(window);
    let seconds = begun.elapsed().as_secs_f64();
    agents
        .iter()
        .zip(before)
        .map(|((node, pid), before)| {
            let cpu_share = (ticks(*pid)? - before) / TICKS_PER_SECOND / seconds;
            Ok(AgentRow { node: node.clone(), pss_bytes: pss(*pid)?, cpu_share })
        })
        .collect()
}

/// `Pss:` of /proc/PID/smaps_rollup, in bytes (proc(5)).
fn pss(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Pss:"))
        .with_context(|| format!("{path} has no Pss"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1024)
}

/// User and system time of /proc/PID/stat, fields 14 and 15 (proc(5)); the name in field 2 may hold spaces.
fn cpu_ticks(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let (_, rest) = text.rsplit_once(')').with_context(|| format!("{path} has no name"))?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |index: usize| -> Result<f64> { Ok(fields.get(index).context("short stat")?.parse()?) };
    Ok(field(11)? + field(12)?)
}
