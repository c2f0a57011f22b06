//! Kills of agent and controller while a job runs, and what they changed: nothing, if all is well.

use super::api::wait_for;
use super::kernel::{ClassCount, parse_classes, parse_flow_classes};
use super::report::Restarts;
use super::stage::Stage;
use anyhow::{Result, ensure};
use edgeloom_common::desired::FlowKey;
use edgeloom_common::view::JobView;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a killed daemon may take until it is seen working again.
const RETURN_LIMIT: Duration = Duration::from_secs(60);

/// Each flow's class with its byte count; a class that is made anew starts from 0.
type Classes = BTreeMap<(String, FlowKey), (String, ClassCount)>;

/// Kills the busiest node's agent, brings it back, does the same with the controller, and counts what
/// restarted.
pub(crate) fn kill_and_return(stage: &mut Stage, view: &JobView) -> Result<Restarts> {
    let name = view.name.to_string();
    let (lives, classes) = (stage.engines.lives(&name)?, flow_classes(stage)?);

    let victim = view.tasks.last().map_or("n1", |task| task.node.as_str()).to_owned();
    stage.kill_agent(&victim)?;
    println!("  agent of {victim} killed with -9");
    expect_progress(stage, &name)?;
    stage.start_agent(&victim)?;
    wait_until_converged(stage, "after the agent's return")?;

    stage.kill_controller()?;
    println!("  controller killed with -9");
    expect_progress(stage, &name)?;
    stage.start_controller()?;
    wait_until_converged(stage, "after the controller's return")?;
    expect_progress(stage, &name)?;

    let (lives_after, classes_after) = (stage.engines.lives(&name)?, flow_classes(stage)?);
    let kept = lives.iter().filter(|life| lives_after.contains(life)).count();
    let classes_kept = classes.iter().filter(|(flow, (class, count))| {
        classes_after.get(*flow).is_some_and(|(after, now)| after == class && now.bytes >= count.bytes)
    });
    ensure!(!lives.is_empty(), "no container to watch");
    Ok(Restarts {
        containers: lives.len().max(lives_after.len()) - kept,
        classes: classes.len() - classes_kept.count(),
    })
}

/// The job goes on: its sinks count further within ten seconds.
fn expect_progress(stage: &Stage, job: &str) -> Result<()> {
    let sinks = stage.sinks(job)?;
    for sink in sinks {
        let before = stage.engines.items(job, &sink)?.items;
        wait_for(&format!("{sink} to go on"), Duration::from_secs(10), || {
            Ok(stage.engines.items(job, &sink)?.items > before)
        })?;
    }
    println!("  the job goes on");
    Ok(())
}

/// Every node is online, ready and as wanted.
pub(crate) fn wait_until_converged(stage: &Stage, when: &str) -> Result<()> {
    wait_for(&format!("all nodes to converge {when}"), RETURN_LIMIT, || {
        let Ok(list) = stage.api.nodes() else { return Ok(false) };
        let settled = list.nodes.iter().filter(|node| {
            node.online && node.ready && node.converged && node.version_sent == node.version_observed
        });
        Ok(settled.count() == stage.node_names().len())
    })
}

fn flow_classes(stage: &Stage) -> Result<Classes> {
    let mut found = Classes::new();
    for node in stage.node_names() {
        let listing = stage.exec(&node, &["nft", "-j", "list", "map", "ip", "edgeloom", "flow_class"])?;
        let mut counts = BTreeMap::new();
        for interface in stage.link_interfaces(&node) {
            counts.extend(parse_classes(
                &stage.exec(&node, &["tc", "-s", "class", "show", "dev", &interface])?,
            ));
        }
        for (key, class) in parse_flow_classes(&listing)? {
            let count = counts.get(&class).copied().unwrap_or_default();
            found.insert((node.clone(), key), (class, count));
        }
    }
    Ok(found)
}
