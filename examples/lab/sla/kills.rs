//! Accounts while daemons are killed: nothing is lost, and nothing is counted twice.

use super::report::Report;
use super::stage::{PATIENCE, Stage};
use super::usage::{busy, counted, start_busy};
use crate::api::wait_for;
use anyhow::Result;
use std::collections::BTreeMap;
use std::time::Duration;

/// Before the first kill: there is something to lose.
const RUNS: Duration = Duration::from_secs(6);
/// How long a service manager leaves a dead daemon down.
const DOWN: Duration = Duration::from_secs(2);
/// Every node has reported again.
const HEARD: Duration = Duration::from_secs(5);
/// Whose agent is killed.
const VICTIM: &str = "n2";

pub(super) fn play(stage: &Stage, report: &mut Report) -> Result<()> {
    start_busy(stage)?;
    std::thread::sleep(RUNS);
    let mut told = BTreeMap::new();
    look(stage, report, ("before the kills", &mut told))?;
    stage.restart_controller()?;
    std::thread::sleep(HEARD);
    look(stage, report, ("controller killed", &mut told))?;
    let node = stage.ground.lab.node(VICTIM)?;
    stage.ground.lab.kill_agent(&node)?;
    std::thread::sleep(DOWN);
    stage.ground.lab.start_agent(&node)?;
    stage.ground.await_converged("after the agent's restart", PATIENCE)?;
    // The last report before the kill may say so, too.
    std::thread::sleep(HEARD);
    look(stage, report, ("agent killed", &mut told))
}

/// Processor time of each job, as told so far.
type Told = BTreeMap<&'static str, u64>;

fn look(stage: &Stage, report: &mut Report, (when, told): (&'static str, &mut Told)) -> Result<()> {
    let mut fell = Vec::new();
    let mut again = Vec::new();
    for job in busy() {
        wait_for("the job to have a record", PATIENCE, || {
            Ok(!stage.records(&stage.container(job)?)?.is_empty())
        })?;
        let now = counted(stage, report, (when, job))?.told_us;
        if told.insert(job, now).is_some_and(|before| before > now) {
            fell.push(job.to_owned());
        }
        let records = stage.records(&stage.container(job)?)?;
        let runs: u32 = records.iter().map(|record| record.runs).sum();
        let open = records.iter().filter(|record| record.until_ms.is_none()).count();
        if (runs, open) != (1, 1) {
            again.push(format!("{job}: {runs} runs, {open} open"));
        }
    }
    report.none(&format!("{when}: counts that fell"), &fell);
    report.none(&format!("{when}: runs counted again"), &again);
    Ok(())
}
