//! What is counted of containers, held against the kernel's account of each.

use super::charged::charged;
use super::drain::small;
use super::hole::MOVABLE;
use super::report::{CountRow, Report};
use super::stage::{Classed, Load, PATIENCE, Stage};
use crate::api::wait_for;
use crate::recovery::containers::Container;
use anyhow::{Context, Result};
use edgeloom_common::usage::UsageView;
use std::time::{Duration, Instant};

/// Nodes report every three seconds; a report takes its time on a node that is full.
const BEHIND: Duration = Duration::from_secs(4);
/// Or so much of all that was used, if that is more.
const OFF_MAX: f64 = 0.05;
/// The kernel is asked a moment before and after the controller is.
const AHEAD_US: u64 = 2_000;
/// How long load is counted.
const COUNTED: Duration = Duration::from_secs(12);
/// For how long the one that waits has no room.
const WAITS: Duration = Duration::from_secs(5);
/// Jobs that use what they may: name, class, node.
const BUSY: [(&str, &str, &str); 3] =
    [("dear", "premium", "n2"), ("plain", "advanced", "n2"), ("cheap", "best-effort", "n3")];

pub(super) fn play(stage: &Stage, report: &mut Report) -> Result<()> {
    start_busy(stage)?;
    let movable = stage.start(MOVABLE)?;
    stage.start(&format!("sla: {{ redundancy: advanced }}\n{}", small("copied", "")))?;
    let waited = wait_in_line(stage)?;
    std::thread::sleep(COUNTED);
    for job in busy() {
        counted(stage, report, ("running", job))?;
    }
    waiting(stage, report, waited)?;
    flows(stage, report, &movable.name)?;
    copied(stage, report)?;
    charged(stage, report, busy().chain(["movable", "waiter", "copied"]))?;
    stopped(stage, report, BUSY[0].0)
}

pub(super) fn start_busy(stage: &Stage) -> Result<()> {
    BUSY.iter().try_for_each(|(name, class, node)| {
        stage.start_classed(&Classed { name, profile: "edgeloom", class, node, load: Load::Busy })
    })
}

/// Busy jobs' names.
pub(super) fn busy() -> impl Iterator<Item = &'static str> {
    BUSY.iter().map(|(name, _, _)| *name)
}

/// One container's processor time: as counted, and by the kernel just before and after the question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub(super) told_us: u64,
    pub(super) before_us: u64,
    pub(super) after_us: u64,
}

impl Counted {
    pub(super) fn of(stage: &Stage, container: &Container) -> Result<Self> {
        let before_us = stage.cpu_us(container)?;
        let told_us = stage.records(container)?.iter().map(|record| record.cpu_us).sum();
        Ok(Self { told_us, before_us, after_us: stage.cpu_us(container)? })
    }

    /// The least that has to be told of a container with this limit, in thousandths of a core.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "minutes in microseconds"
    )]
    fn least_us(&self, limit: u32) -> u64 {
        let untold_us = BEHIND.as_secs_f64() * f64::from(limit) * 1000.0;
        let off_us = (self.before_us as f64 * OFF_MAX).max(untold_us);
        self.before_us.saturating_sub(off_us as u64)
    }
}

/// What is counted of a job's container lies between what the kernel has and what the last seconds may lack.
pub(super) fn counted(
    stage: &Stage,
    report: &mut Report,
    (when, job): (&'static str, &str),
) -> Result<Counted> {
    let container = stage.container(job)?;
    let counted = Counted::of(stage, &container)?;
    let least_us = counted.least_us(stage.limit(&container)?);
    let within = (least_us..=counted.after_us + AHEAD_US).contains(&counted.told_us);
    let [told, least, most] = [counted.told_us, least_us, counted.after_us].map(seconds);
    let name = format!("{job}, {when}: core-seconds counted, by the kernel {most:.3}");
    report.verdict.check(&name, within, told, format!("{least:.3} to {most:.3}"));
    report.counts.push(CountRow { when, job: job.to_owned(), counted_s: told, kernel_s: most });
    Ok(counted)
}

pub(super) fn seconds(us: u64) -> f64 {
    Duration::from_micros(us).as_secs_f64()
}

/// A job waits for another one's room; how long it did, as seen from outside.
fn wait_in_line(stage: &Stage) -> Result<Duration> {
    let rules = "    constraints: [\"node.name == n4\"]\n";
    let large = |name: &str| small(name, rules).replace("20m", "150m");
    stage.start(&large("holder"))?;
    let begun = Instant::now();
    stage.ground.api.post(&large("waiter"))?;
    std::thread::sleep(WAITS);
    stage.ground.api.stop("holder")?;
    stage.ground.engines.wait_running("edgeloom.job=waiter", 1, |_| ())?;
    Ok(begun.elapsed())
}

fn waiting(stage: &Stage, report: &mut Report, waited: Duration) -> Result<()> {
    let records = stage.records(&stage.container("waiter")?)?;
    let queued_ms: u64 = records.iter().map(|record| record.queued_ms).sum();
    let waited_ms: u64 = records.iter().map(UsageView::waited_ms).sum();
    let (least, most) = (WAITS.as_secs_f64(), waited.as_secs_f64());
    let queued = Duration::from_millis(queued_ms).as_secs_f64();
    let all = Duration::from_millis(waited_ms).as_secs_f64();
    let within = queued >= least && all <= most + 1.0;
    report.verdict.check(
        "seconds that the one in line waited",
        within,
        queued,
        format!("{least:.1} to {most:.1}"),
    );
    Ok(())
}

/// What a container received and sent, by the counters of its own interfaces.
fn passed(container: &Container) -> Result<(u64, u64)> {
    let path = format!("/proc/{}/net/dev", container.pid);
    let text = std::fs::read_to_string(&path).context(path)?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("eth0:")).context("an interface")?;
    let number =
        |at: usize| line.split_whitespace().nth(at).and_then(|word| word.parse().ok()).context("a counter");
    Ok((number(0)?, number(8)?))
}

fn flows(stage: &Stage, report: &mut Report, job: &str) -> Result<()> {
    for container in stage.containers(job)? {
        let before = passed(&container)?;
        let records = stage.records(&container)?;
        let sum = |of: fn(&UsageView) -> u64| records.iter().map(of).sum::<u64>();
        let told = (sum(|record| record.received_bytes), sum(|record| record.sent_bytes));
        let after = passed(&container)?;
        // Ten items of 10 KB a second, and what belongs to them.
        let untold = 150_000 * BEHIND.as_secs();
        let within =
            |told: u64, before: u64, after: u64| told > 0 && told + untold >= before && told <= after;
        let holds = within(told.0, before.0, after.0) && within(told.1, before.1, after.1);
        let name = format!("{job}/{}: bytes received and sent, by its interfaces {after:?}", container.task);
        report.verdict.check(&name, holds, format!("{told:?}"), "within the last seconds of those");
    }
    Ok(())
}

/// Copies are on different nodes, and each record says how many there are.
fn copied(stage: &Stage, report: &mut Report) -> Result<()> {
    let containers = stage.containers("copied")?;
    let mut nodes: Vec<&str> = containers.iter().map(|one| one.node.as_str()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let records = stage.ground.api.usage("copied")?;
    let of_two = records.iter().filter(|record| record.copies == 2).count();
    let second = records.iter().filter(|record| record.copy_of.is_some()).count();
    let told =
        format!("{of_two} records of two copies, {second} of a further one, on {}", nodes.join(" and "));
    let holds = (of_two, second, nodes.len(), containers.len()) == (2, 1, 2, 2);
    report.verdict.check("a job with two copies", holds, told, "2 records, 1 further, 2 nodes");
    Ok(())
}

/// A stopped job's records stay, with what its container used to its end.
fn stopped(stage: &Stage, report: &mut Report, job: &str) -> Result<()> {
    let container = stage.container(job)?;
    let limit_us = u64::from(stage.limit(&container)?) * 1000;
    let before_us = stage.cpu_us(&container)?;
    stage.ground.api.stop(job)?;
    let closed =
        |records: &[UsageView]| !records.is_empty() && records.iter().all(|record| record.number.is_some());
    wait_for("the stopped job's record to be closed", PATIENCE, || Ok(closed(&stage.records(&container)?)))?;
    let records = stage.records(&container)?;
    let told_us: u64 = records.iter().map(|record| record.cpu_us).sum();
    let kept = records.iter().all(|record| record.memory_byte_s > 0 && record.charge.is_some());
    // It goes on until the node hears that it is over: a few seconds.
    let (least, most) =
        (seconds(before_us.saturating_sub(limit_us / 10)), seconds(before_us + 10 * limit_us));
    let told = seconds(told_us);
    let name = format!("{job}, stopped: its record stays, core-seconds");
    report.verdict.check(
        &name,
        kept && (least..=most).contains(&told),
        told,
        format!("{least:.3} and what its end took"),
    );
    report.counts.push(CountRow {
        when: "stopped",
        job: job.to_owned(),
        counted_s: told,
        kernel_s: seconds(before_us),
    });
    Ok(())
}
