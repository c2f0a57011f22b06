//! `cargo lab demo`: a real pipeline over four real nodes, and every promise checked from outside.
//!
//! The order is that of a user's day: images arrive and tasks start, a compute-bound job runs, daemons
//! die and come back, a network-bound job fills its paths, everything stops, nothing is left, the
//! agents idle. Each step fills its part of the [`report::Report`]; the exit code is 0 only if every
//! check holds.

mod faults;
mod footprint;
mod jobs;
mod kernel;
mod report;
mod stage;

use crate::checks::conclude;
use crate::experiment::Experiment;
use crate::ground::Stay;
use anyhow::Result;
use edgeloom_common::view::JobView;
use report::{FlowRow, JobRow};
use stage::Stage;
use std::time::Duration;

/// The ten-module pipeline: compute-bound on the default topology.
const PIPELINE: &str = "object-attributes.yaml";
/// Two flows over two relays: network-bound on the default topology.
const FAN_OUT: &str = "three-tasks.yaml";
/// How often the start of the pipeline is timed against Docker's API alone, in turns.
const START_ROUNDS: usize = 3;

/// Runs the demo; true if every check holds.
pub(crate) fn run(options: &Experiment) -> Result<bool> {
    let results = options.results()?;
    let mut stage = Stage::raise(&options.build())?;
    let played = play(&mut stage);
    let ok = conclude(&mut stage.report, played, &results)?;
    let stay = options.stay();
    if stay == Stay::Up {
        stage.revive()?;
    }
    drop(stage.meter);
    stage.ground.clear(stay)?;
    Ok(ok)
}

fn play(stage: &mut Stage) -> Result<()> {
    let pipeline = pull_and_run(stage)?;
    survive_kills(stage, &pipeline)?;
    time_starts(stage, &pipeline)?;
    fill_the_links(stage)?;
    idle(stage)?;
    clear(stage)
}

/// Images come from the registry, the pipeline starts, its throughput is as predicted.
fn pull_and_run(stage: &mut Stage) -> Result<JobView> {
    stage.ground.chapter("the pipeline starts on empty nodes");
    let (view, took) = jobs::start(stage, PIPELINE)?;
    println!("  all {} containers run after {:.1} s, images pulled", view.tasks.len(), took.as_secs_f64());
    account_for_bytes(stage, &view)?;

    stage.ground.chapter("its throughput");
    let row = jobs::throughput(stage, &view, Duration::from_secs(20))?;
    judge_throughput(stage, row, "compute");
    let flows = jobs::flows(stage, &view, Duration::from_secs(5))?;
    jobs::print_flows(&flows);
    stage.report.flows.extend(flows);
    Ok(view)
}

/// What the registry sent, node by node and image by image, against what was predicted.
fn account_for_bytes(stage: &mut Stage, view: &JobView) -> Result<()> {
    let rows = jobs::task_rows(stage, view)?;
    jobs::print_tasks(&rows);
    let predicted: u64 = rows.iter().map(|row| row.bytes_predicted).sum();
    let fetched: u64 = rows.iter().map(|row| row.bytes_fetched).sum();
    let each = rows.iter().all(|row| row.bytes_predicted == row.bytes_fetched);
    let name = format!("bytes fetched for {}, by the registry's log", view.name);
    stage.report.check(&name, each && fetched == predicted, fetched, predicted);
    stage.report.tasks.extend(rows);
    Ok(())
}

fn judge_throughput(stage: &mut Stage, row: JobRow, bound: &str) {
    jobs::print_throughput(&row);
    let miss = (row.items_per_s_measured / row.items_per_s_predicted - 1.0).abs();
    let name = format!("{bound}-bound job {}: measured against predicted", row.name);
    stage.report.check(&name, row.bound == bound && miss <= 0.10, miss, "0.10");
    stage.report.jobs.push(row);
}

/// Agents and controller are killed and come back: nothing restarts, nothing loses its class.
fn survive_kills(stage: &mut Stage, view: &JobView) -> Result<()> {
    stage.ground.chapter("an agent and the controller are killed and come back");
    let restarts = faults::kill_and_return(stage, view)?;
    stage.report.check("containers restarted by the kills", restarts.containers == 0, restarts.containers, 0);
    stage.report.check("flows that lost their class", restarts.classes == 0, restarts.classes, 0);
    stage.report.restarts = restarts;
    Ok(())
}

/// HTTP 201 to all running, against Docker's API alone, in turns; medians.
fn time_starts(stage: &mut Stage, view: &JobView) -> Result<()> {
    stage.ground.chapter("start with images present, in turns with Docker's API alone");
    let name = view.name.to_string();
    let models = stage.ground.engines.inspect_job(&name)?;
    stage.ground.api.stop(&name)?;
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for round in 1..=START_ROUNDS {
        let alone = stage.ground.engines.start_copies(&models)?;
        let (_, took) = jobs::start(stage, PIPELINE)?;
        stage.ground.api.stop(&name)?;
        println!(
            "  round {round}: {:.2} s ours, {:.2} s Docker's API",
            took.as_secs_f64(),
            alone.as_secs_f64()
        );
        ours.push(took.as_secs_f64());
        peer.push(alone.as_secs_f64());
    }
    let start = report::Start { ours_s: median(ours), docker_api_s: median(peer) };
    let ratio = start.ours_s / start.docker_api_s;
    stage.report.check("start, ours over Docker's API", ratio <= 1.5, ratio, 1.5);
    stage.report.start = start;
    stage.check_leftovers("after the pipeline stopped")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Two flows fill two paths, one of them off the main route.
fn fill_the_links(stage: &mut Stage) -> Result<()> {
    stage.ground.chapter("a network-bound job fills its paths");
    let (view, _) = jobs::start(stage, FAN_OUT)?;
    account_for_bytes(stage, &view)?;
    let row = jobs::throughput(stage, &view, Duration::from_secs(15))?;
    judge_throughput(stage, row, "network");
    let flows = jobs::flows(stage, &view, Duration::from_secs(10))?;
    jobs::print_flows(&flows);
    judge_flows(stage, &view, &flows)?;
    stage.report.flows.extend(flows);
    stage.ground.api.stop(view.name.as_str())?;
    stage.check_leftovers("after the network-bound job stopped")
}

fn judge_flows(stage: &mut Stage, view: &JobView, flows: &[FlowRow]) -> Result<()> {
    let saturated: Vec<&FlowRow> = flows.iter().filter(|flow| flow.saturated).collect();
    let relayed = saturated.iter().filter(|flow| flow.path_observed.len() > 2).count();
    stage.report.check("saturated flows", saturated.len() >= 2, saturated.len(), "at least 2");
    stage.report.check("saturated flows through a relay", relayed >= 1, relayed, "at least 1");
    for flow in saturated {
        #[expect(clippy::cast_precision_loss, reason = "rates far below 2^52")]
        let miss = (flow.rate_measured_bps as f64 / flow.rate_given_bps as f64 - 1.0).abs();
        let name = format!("wire rate of {} -> {} against given", flow.from, flow.to);
        stage.report.check(&name, miss <= 0.05, miss, 0.05);
    }
    let straight = flows.iter().all(|flow| flow.path == flow.path_observed);
    stage.report.check("observed paths are the decided ones", straight, straight, true);
    let share = stage.bypassed_share(view, flows)?;
    let held = share.is_some_and(|share| share < 0.05);
    let value = share.map_or_else(|| "no flow leaves the main route".into(), serde_json::Value::from);
    stage.report.check("share of a re-routed flow's bytes on the bypassed link", held, value, 0.05);
    Ok(())
}

/// A hundred desired states later, the agents idle beside their containers.
fn idle(stage: &mut Stage) -> Result<()> {
    stage.ground.chapter("the agents at rest, after 100 desired states");
    footprint::hundred_updates(stage, FAN_OUT)?;
    let (view, _) = jobs::start(stage, PIPELINE)?;
    let rows = footprint::measure(stage, Duration::from_secs(60))?;
    for row in &rows {
        let pss = row.pss_bytes <= footprint::PSS_MAX;
        stage.report.check(
            &format!("memory of {}'s agent (PSS)", row.node),
            pss,
            row.pss_bytes,
            footprint::PSS_MAX,
        );
        let cpu = row.cpu_share <= footprint::CPU_MAX;
        stage.report.check(&format!("cores of {}'s agent", row.node), cpu, row.cpu_share, footprint::CPU_MAX);
    }
    stage.report.agents = rows;
    stage.ground.api.stop(view.name.as_str())
}

/// Jobs stopped, agents purged: nothing of ours remains on any node.
fn clear(stage: &mut Stage) -> Result<()> {
    stage.ground.chapter("everything stops");
    stage.check_leftovers("after the jobs stopped")?;
    stage.purge_agents()?;
    let total = stage.count_leftovers_since_birth()?;
    let fetched = stage.fetched_in_all()?;
    let predicted: u64 = stage.report.tasks.iter().map(|row| row.bytes_predicted).sum();
    stage.report.check("bytes the registry sent to anybody", fetched == predicted, fetched, predicted);
    let none = total == report::LeftoverCount::default();
    stage.report.check("left over on any node after purge", none, serde_json::to_value(total)?, 0);
    stage.report.leftovers = total;
    Ok(())
}
