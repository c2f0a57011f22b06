//! Cores by class: what the kernel enforces is what the job's view says, in the order of the classes; it changes in
//! place when others come and go, and by what each uses.

use super::report::{LimitRow, Report};
use super::stage::{Classed, Load, PATIENCE, Stage};
use crate::api::wait_for;
use anyhow::Result;
use edgeloom_common::view::JobState;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Best first.
const CLASSES: [&str; 3] = ["premium", "advanced", "best-effort"];
/// Where all three meet, under the default profile, and where two do under another.
const COMMON: &str = "n2";
const OTHER: &str = "n3";
/// Who comes when the node is full.
const GUEST: &str = "guest";
/// The least of premium, in thousandths of a core: more than two thirds of the smaller node of that reputation.
const PREMIUM_LEAST: u32 = 267;
/// A container gives after a minute, of which the first ten seconds settle; a look every five seconds.
const GIVES_WITHIN: Duration = Duration::from_secs(95);
/// Cores are divided anew every five seconds: what stays for longer is settled.
const STEADY_FOR: Duration = Duration::from_secs(7);
/// How long a busy container is watched, and how far its use may be off its limit: quotas of containers and node
/// are of periods that do not begin together.
const WATCHED: Duration = Duration::from_secs(5);
const OFF_MAX: f64 = 0.15;

pub(super) fn play(stage: &Stage, report: &mut Report) -> Result<()> {
    for (class, node, profile) in [
        (CLASSES[0], COMMON, "edgeloom"),
        (CLASSES[1], COMMON, "edgeloom"),
        (CLASSES[2], COMMON, "edgeloom"),
        (CLASSES[0], OTHER, "sla"),
        (CLASSES[2], OTHER, "sla"),
    ] {
        let load = if class == CLASSES[0] { Load::Idle } else { Load::Busy };
        stage.start_classed(&Classed { name: &name(class, node), profile, class, node, load })?;
    }
    let first = settled(stage, report, "by class")?;
    let lives = lives(stage)?;
    ordered(report, &first);

    let begun = Instant::now();
    let guest =
        Classed { name: GUEST, profile: "edgeloom", class: CLASSES[2], node: COMMON, load: Load::Busy };
    stage.start_classed(&guest)?;
    println!("  {GUEST} runs after {:.1} s", begun.elapsed().as_secs_f64());
    let second = settled(stage, report, "a fourth comes")?;
    let lowered = |class: &str| second[&name(class, COMMON)] < first[&name(class, COMMON)];
    let count = CLASSES.iter().filter(|class| lowered(class)).count();
    report.verdict.check("a fourth that comes lowers the others' limits", count == 3, count, 3);
    unharmed(stage, report, ("one comes", &lives))?;

    stage.ground.api.stop(GUEST)?;
    let common = |limits: &Limits| CLASSES.map(|class| limits.get(&name(class, COMMON)).copied()).to_vec();
    let before = common(&first);
    wait_for("limits to be raised again", PATIENCE, || Ok(common(&limits(stage)?) == before))?;
    let third = settled(stage, report, "it has gone")?;
    let now = common(&third);
    report.verdict.check("when it goes they are raised to what they were", now == before, now, before);
    by_use(stage, report, &third)?;
    unharmed(stage, report, ("one goes and limits follow use", &lives))
}

fn name(class: &str, node: &str) -> String {
    format!("{class}-{node}")
}

/// Limits in the kernel, by job.
type Limits = BTreeMap<String, u32>;

fn jobs(stage: &Stage) -> Result<Vec<String>> {
    let own = |job: &String| job == GUEST || CLASSES.iter().any(|class| job.starts_with(class));
    let found = [COMMON, OTHER].iter().map(|node| stage.tasks_on(node)).collect::<Result<Vec<_>>>()?;
    let jobs = found.into_iter().flatten().filter_map(|task| Some(task.split_once('/')?.0.to_owned()));
    Ok(jobs.filter(own).collect())
}

fn limits(stage: &Stage) -> Result<Limits> {
    jobs(stage)?.into_iter().map(|job| Ok((job.clone(), stage.limit(&stage.container(&job)?)?))).collect()
}

/// Waits until the kernel enforces what the views say, and notes both.
fn settled(stage: &Stage, report: &mut Report, when: &'static str) -> Result<Limits> {
    let mut rows = Vec::new();
    let mut since = Instant::now();
    let waited = wait_for("the kernel to enforce what views say, and that to last", PATIENCE, || {
        let now = look(stage, when)?;
        if now != rows || now.iter().any(|row| row.kernel != row.view) {
            (rows, since) = (now, Instant::now());
        }
        Ok(since.elapsed() >= STEADY_FOR)
    });
    let off = rows.iter().filter(|row| row.kernel != row.view).count();
    let name = format!("{when}: limits in the kernel that are not the view's, of {}", rows.len());
    report.verdict.check(&name, waited.is_ok(), off, 0);
    let has = stage.ground.lab.node(COMMON)?.spec.cores * 1000.0;
    let there = rows.iter().filter(|row| row.node == COMMON);
    let given: u32 = there.map(|row| row.kernel).sum();
    report.verdict.check(
        &format!("{when}: no more is given than {COMMON} has"),
        f64::from(given) <= has,
        given,
        has,
    );
    report.limits.extend(rows.clone());
    Ok(rows.into_iter().map(|row| (row.job, row.kernel)).collect())
}

fn look(stage: &Stage, when: &'static str) -> Result<Vec<LimitRow>> {
    let row = |job: String| {
        let (container, view) = (stage.container(&job)?, stage.view(&job)?);
        let shown = view.tasks.first().filter(|_| view.state == JobState::Running);
        let view = shown.map_or(0, |task| task.cpu_millicores);
        Ok(LimitRow { when, job, node: container.node.clone(), kernel: stage.limit(&container)?, view })
    };
    jobs(stage)?.into_iter().map(row).collect()
}

fn ordered(report: &mut Report, limits: &Limits) {
    for node in [COMMON, OTHER] {
        let of_class = CLASSES.iter().filter_map(|class| limits.get(&name(class, node)));
        let there: Vec<u32> = of_class.copied().collect();
        let falls = there.windows(2).all(|pair| pair[0] > pair[1]);
        report.verdict.check(
            &format!("{node}: better classes have more"),
            falls,
            there,
            "each more than the next",
        );
    }
}

/// Id, start, first process and restarts of each container, by job.
type Lives = BTreeMap<String, (String, i32, i64)>;

fn lives(stage: &Stage) -> Result<Lives> {
    let life = |job: String| {
        let container = stage.container(&job)?;
        Ok((job, (container.life, container.pid, container.restarts)))
    };
    jobs(stage)?.into_iter().map(life).collect()
}

/// Containers that were there before are which they were.
fn unharmed(stage: &Stage, report: &mut Report, (meanwhile, before): (&str, &Lives)) -> Result<()> {
    let now = lives(stage)?;
    let changed: Vec<String> = before
        .iter()
        .filter(|(job, life)| now.get(*job) != Some(*life))
        .map(|(job, _)| job.clone())
        .collect();
    report.none(&format!("containers with another process, start or restart while {meanwhile}"), &changed);
    Ok(())
}

/// Who is idle gives down to its least, and who is busy gets it.
fn by_use(stage: &Stage, report: &mut Report, before: &Limits) -> Result<()> {
    let [premium, advanced, best_effort] = CLASSES.map(|class| name(class, COMMON));
    let begun = Instant::now();
    let gave = wait_for("the idle one to give", GIVES_WITHIN, || {
        std::thread::sleep(Duration::from_millis(500));
        Ok(limits(stage)?[&premium] < before[&premium])
    });
    let took = begun.elapsed().as_secs_f64();
    report.verdict.check(
        "an idle premium container gives, s",
        gave.is_ok(),
        took,
        GIVES_WITHIN.as_secs_f64(),
    );
    let after = settled(stage, report, "one was idle for a minute")?;
    let least = after[&premium] == PREMIUM_LEAST;
    report.verdict.check("and has the least of its class", least, after[&premium], PREMIUM_LEAST);
    for busy in [&advanced, &best_effort] {
        let (more, name) = (after[busy] > before[busy], format!("{busy}, which is busy, gets more"));
        report.verdict.check(&name, more, after[busy], before[busy]);
        let used = used(stage, busy)?;
        let off = (used / f64::from(after[busy]) - 1.0).abs();
        report.verdict.check(
            &format!("and uses it, by the kernel: part it is off by, of {used:.0}m"),
            off <= OFF_MAX,
            off,
            OFF_MAX,
        );
    }
    Ok(())
}

/// Thousandths of a core over a while.
#[expect(clippy::cast_precision_loss, reason = "some seconds in microseconds")]
fn used(stage: &Stage, job: &str) -> Result<f64> {
    let container = stage.container(job)?;
    let (begun, before) = (Instant::now(), stage.cpu_us(&container)?);
    std::thread::sleep(WATCHED);
    let used = stage.cpu_us(&container)? - before;
    Ok(used as f64 / 1000.0 / begun.elapsed().as_secs_f64())
}
