//! The controller's state is damaged, then gone: containers run on, nothing is decided without the operator's word,
//! and what nodes run is taken back from them without a change on any.

use super::RECOVERY;
use super::report::{FaultRow, Report};
use super::stage::{PATIENCE, Stage};
use crate::api::wait_for;
use crate::command::{run, within};
use crate::ground::Ground;
use crate::network;
use anyhow::{Context, Result, ensure};
use edgeloom_common::view::JobState;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// The truth, twice; beside it lies a folder that is made from it.
const JOURNALS: [&str; 2] = ["journal", "journal.copy"];
const MADE_FROM_IT: &str = "store";
/// Acknowledged changes cannot be read (EX_DATAERR).
const LOSSES: i32 = 65;
/// What nodes show while they hold more than the controller knows.
const REMEDY: &str = "repair --regain";

pub(super) fn play(ground: &Ground, report: &mut Report) -> Result<()> {
    let stage = Stage::set(ground, RECOVERY)?;
    damaged(&stage, report)?;
    gone(&stage, report)?;
    stage.clear()
}

fn damaged(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    let before = stage.steady()?;
    stage.ground.lab.kill_controller()?;
    let bytes = JOURNALS.into_iter().map(|name| overwrite(&state(stage).join(name))).sum::<Result<u64>>()?;
    fs::remove_dir_all(state(stage).join(MADE_FROM_IT))?;
    let code = refused(stage)?;
    report.verdict.check("damaged state: the controller's exit code", code == Some(LOSSES), code, LOSSES);
    stage.expect_items()?;
    report.nothing("damaged state: what changed on the nodes meanwhile", &before.until(&stage.holding()?));
    let repaired = controller(stage, &["repair"])?;
    print!("{repaired}");
    let effect = format!("{bytes} bytes of both journals overwritten, exit code {}", code.unwrap_or(0));
    taken_back(stage, report, ("damaged state", effect))
}

fn gone(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    let lab = &stage.ground.lab;
    let before = stage.steady()?;
    lab.kill_controller()?;
    remove(stage)?;
    lab.start_controller()?;
    wait_for("every node to tell that it holds more", PATIENCE, || {
        // The controller is not up at once.
        let Ok(nodes) = stage.ground.api.nodes() else { return Ok(false) };
        let told = |problems: &[String]| problems.iter().any(|problem| problem.contains(REMEDY));
        Ok(nodes.nodes.len() == lab.nodes().len() && nodes.nodes.iter().all(|node| told(&node.problems)))
    })?;
    let jobs = stage.ground.api.job(&stage.document.name)?;
    ensure!(jobs.is_none(), "the controller knows the job although its state is gone");
    stage.expect_items()?;
    report.nothing("state gone: what changed on the nodes meanwhile", &before.until(&stage.holding()?));
    lab.kill_controller()?;
    print!("{}", controller(stage, &["repair", "--regain"])?);
    let effect = "no journal left, the job unknown, every node tells the remedy".to_owned();
    taken_back(stage, report, ("state gone", effect))
}

/// The controller starts on what is left and takes back the job, which changes nothing on any node.
fn taken_back(stage: &Stage<'_>, report: &mut Report, (what, effect): (&'static str, String)) -> Result<()> {
    let before = stage.steady()?;
    let begun = Instant::now();
    stage.ground.lab.start_controller()?;
    wait_for("the job to be back", PATIENCE, || {
        let job = stage.ground.api.job(&stage.document.name).ok().flatten();
        Ok(job.is_some_and(|job| job.state == JobState::Running))
    })?;
    stage.converged("after the job was taken back")?;
    let took = begun.elapsed();
    stage.expect_items()?;
    let changed = before.until(&stage.steady()?);
    report.nothing(&format!("{what}: what changed on the nodes when the job was taken back"), &changed);
    report.rows.push(FaultRow::new(("lost-state", what), effect, took, &changed));
    Ok(())
}

fn state(stage: &Stage<'_>) -> PathBuf {
    stage.ground.lab.state().join("controller")
}

/// Overwrites a file but for its first twentieth, which is older than the job, and its last; how many bytes that was.
fn overwrite(path: &std::path::Path) -> Result<u64> {
    let mut bytes = fs::read(path).with_context(|| path.display().to_string())?;
    let kept = bytes.len() / 20;
    let lost = kept..bytes.len() - kept;
    bytes[lost.clone()].fill(0xff);
    fs::write(path, bytes)?;
    Ok(lost.len() as u64)
}

/// Everything but the authority and the keys.
fn remove(stage: &Stage<'_>) -> Result<()> {
    for entry in fs::read_dir(state(stage))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == MADE_FROM_IT {
            fs::remove_dir_all(entry.path())?;
        } else if JOURNALS.iter().any(|journal| name.starts_with(journal)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The exit code of a controller that does not start; none if it still ran after a while.
fn refused(stage: &Stage<'_>) -> Result<Option<i32>> {
    let words = words(stage, &["run"]);
    let mut child = Command::new(&words[0]).args(&words[1..]).spawn()?;
    let ended = wait_for("the controller to refuse to start", Duration::from_secs(20), || {
        Ok(child.try_wait()?.is_some())
    });
    if ended.is_err() {
        child.kill()?;
    }
    Ok(child.wait()?.code())
}

/// Runs one of the controller's commands; what it printed.
fn controller(stage: &Stage<'_>, command: &[&str]) -> Result<String> {
    run(&words(stage, command).iter().map(String::as_str).collect::<Vec<_>>())
}

fn words(stage: &Stage<'_>, command: &[&str]) -> Vec<String> {
    let lab = &stage.ground.lab;
    let [binary, config] = ["edgeloom-controller", "controller.toml"].map(|name| lab.state().join(name));
    let (binary, config) = (binary.display().to_string(), config.display().to_string());
    let words: Vec<&str> = [&[binary.as_str()], command, &["--config", &config]].concat();
    within(&network::core(&lab.id), &words)
}
