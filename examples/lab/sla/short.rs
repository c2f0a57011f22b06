//! Containers that live for a second: together they are charged what the node's own group says that they used.

use super::report::{CountRow, Report};
use super::stage::{PATIENCE, Stage};
use super::usage::seconds;
use crate::api::wait_for;
use crate::cgroup;
use anyhow::Result;
use edgeloom_common::view::JobState;

const SHORT: &str = include_str!("../jobs/short.yaml");
const NAME: &str = "short";
/// Where they run, alone.
const NODE: &str = "n4";
/// As the document says.
const CONTAINERS: usize = 12;
/// The part of what they used that is counted, at least.
const COUNTED_MIN: f64 = 0.95;
/// And at most: the node's group holds all of it.
const COUNTED_MAX: f64 = 1.001;

pub(super) fn play(stage: &Stage, report: &mut Report) -> Result<()> {
    let begun_us = used_us(stage)?;
    stage.ground.api.post(SHORT)?;
    wait_for("the short ones to be over", 2 * PATIENCE, || {
        let view = stage.ground.api.job(NAME)?;
        Ok(view.is_some_and(|view| matches!(view.state, JobState::Succeeded | JobState::Failed)))
    })?;
    let kernel_us = used_us(stage)? - begun_us;
    let mut told_us = 0;
    let closed = wait_for("their records to be closed", PATIENCE, || {
        let records = stage.ground.api.usage(NAME)?;
        told_us = records.iter().map(|record| record.cpu_us).sum();
        Ok(records.iter().all(|record| record.number.is_some()))
    });
    let records = stage.ground.api.usage(NAME)?;
    let once = records.iter().filter(|record| record.number.is_some() && record.runs == 1).count();
    let holds = closed.is_ok() && once == CONTAINERS && records.len() == CONTAINERS;
    report.verdict.check(
        "records of those that have ended, closed, of one run each",
        holds,
        once,
        CONTAINERS,
    );
    let part = seconds(told_us) / seconds(kernel_us).max(f64::MIN_POSITIVE);
    let within = (COUNTED_MIN..=COUNTED_MAX).contains(&part);
    report.verdict.check("part counted of what short containers used", within, part, COUNTED_MIN);
    let [counted_s, kernel_s] = [told_us, kernel_us].map(seconds);
    report.counts.push(CountRow { when: "over", job: NAME.to_owned(), counted_s, kernel_s });
    Ok(())
}

/// Processor time of a node's containers, gone ones too: all but the agent's.
fn used_us(stage: &Stage) -> Result<u64> {
    let lab = &stage.ground.lab.id;
    Ok(cgroup::cpu_us(lab, NODE, None)? - cgroup::cpu_us(lab, NODE, Some("agent"))?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_batch_reads() {
        let job = edgeloom_common::job::parse(super::SHORT.as_bytes()).unwrap();
        assert_eq!((job.name.as_str(), job.tasks.len()), (super::NAME, super::CONTAINERS));
    }
}
