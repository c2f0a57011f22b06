//! A consolidation: nodes that could be emptied are named, and are empty once that is applied.

use super::drain::small;
use super::hole::{Hole, MOVABLE};
use super::report::{MoveRow, Report};
use super::stage::Stage;
use crate::document::Document;
use anyhow::Result;
use edgeloom_common::view::ConsolidationView;
use std::time::Instant;

const PLAN: [&str; 4] = ["plan", "--consolidate", "-o", "json"];
/// Exit code of a plan that would change something.
const CHANGES: i32 = 1;
/// A job that may run anywhere.
const LOOSE: &str = "loose";

pub(super) fn play(stage: &Stage, report: &mut Report) -> Result<()> {
    let document = spread(stage)?;
    let (code, plan) = stage.edgeloom(&PLAN)?;
    let plan: ConsolidationView = serde_json::from_str(&plan)?;
    let named: Vec<String> = plan.nodes.iter().map(|it| it.node.to_string()).collect();
    let names = code == CHANGES && !named.is_empty() && !plan.applied;
    report.verdict.check(
        "plan --consolidate names nodes, and changes nothing",
        names,
        named.join(", "),
        "one or more",
    );
    let moves = plan.nodes.iter().flat_map(|it| &it.moves).filter(|it| it.job.as_str() == LOOSE).count();
    report.verdict.check("among them the one whose only task can go elsewhere", moves == 1, moves, 1);
    let kept: Vec<String> = plan.kept.iter().map(|it| format!("{}: {}", it.node, it.reason)).collect();
    println!("  kept: {}", kept.join("; "));

    let hole = Hole::watch(stage, &document)?;
    let begun = Instant::now();
    let (_, applied) = stage.edgeloom(&[&PLAN[..], &["--apply"]].concat())?;
    let applied: ConsolidationView = serde_json::from_str(&applied)?;
    let drained: Vec<String> = applied.nodes.iter().map(|it| it.node.to_string()).collect();
    report.verdict.check("--apply drains those", drained == named, drained.join(", "), named.join(", "));
    for node in &drained {
        stage.await_empty(node)?;
    }
    let empty_s = begun.elapsed().as_secs_f64();
    stage.ground.engines.wait_running(&format!("edgeloom.job={LOOSE}"), 1, |_| ())?;
    let hole_s = hole.seconds()?;
    let running = [stage.containers(&document.name)?, stage.containers(LOOSE)?].concat();
    let elsewhere = running.iter().all(|one| !drained.contains(&one.node));
    report.verdict.check(
        "and all tasks run on the others",
        elsewhere && running.len() == 4,
        running.len(),
        4,
    );
    report.moves.push(MoveRow { how: "plan --consolidate", node: drained.join(", "), empty_s, hole_s });
    Ok(())
}

/// Jobs as they might come to lie: one on n1 and n3, another one alone on n4.
fn spread(stage: &Stage) -> Result<Document> {
    let all = |verb: &str, nodes: &[&str]| {
        nodes.iter().try_for_each(|node| stage.edgeloom(&[verb, node]).map(drop))
    };
    all("cordon", &["n2", "n4"])?;
    let document = stage.start(MOVABLE)?;
    stage.ground.expect_items(&document)?;
    all("uncordon", &["n4"])?;
    all("cordon", &["n1", "n3"])?;
    stage.start(&small(LOOSE, ""))?;
    all("uncordon", &["n1", "n2", "n3"])?;
    Ok(document)
}
