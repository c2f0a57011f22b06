//! Kills of agent and controller while a job runs, and what they changed: nothing, if all is well.

use super::kernel::{ClassCount, parse_classes, parse_flow_classes};
use super::report::Restarts;
use super::stage::Stage;
use crate::document::Document;
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
    let (lives, classes) = (stage.ground.engines.lives(&name)?, flow_classes(stage)?);

    let victim = view.tasks.last().map_or("n1", |task| task.node.as_str()).to_owned();
    let lab = &stage.ground.lab;
    lab.kill_agent(&lab.node(&victim)?)?;
    println!("  agent of {victim} killed with -9");
    expect_progress(stage, &name)?;
    lab.start_agent(&lab.node(&victim)?)?;
    stage.ground.await_converged("after the agent's return", RETURN_LIMIT)?;

    lab.kill_controller()?;
    println!("  controller killed with -9");
    expect_progress(stage, &name)?;
    lab.start_controller()?;
    stage.ground.await_converged("after the controller's return", RETURN_LIMIT)?;
    expect_progress(stage, &name)?;

    let (lives_after, classes_after) = (stage.ground.engines.lives(&name)?, flow_classes(stage)?);
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

fn expect_progress(stage: &Stage, job: &str) -> Result<()> {
    stage.ground.expect_items(&Document::example(&format!("{job}.yaml"))?)?;
    println!("  the job goes on");
    Ok(())
}

fn flow_classes(stage: &Stage) -> Result<Classes> {
    let mut found = Classes::new();
    for node in stage.ground.node_names() {
        let listing =
            stage.ground.exec(&node, &["nft", "-j", "list", "map", "ip", "edgeloom", "flow_class"])?;
        let mut counts = BTreeMap::new();
        for interface in stage.link_interfaces(&node) {
            counts.extend(parse_classes(
                &stage.ground.exec(&node, &["tc", "-s", "class", "show", "dev", &interface])?,
            ));
        }
        for (key, class) in parse_flow_classes(&listing)? {
            let count = counts.get(&class).copied().unwrap_or_default();
            found.insert((node.clone(), key), (class, count));
        }
    }
    Ok(found)
}
