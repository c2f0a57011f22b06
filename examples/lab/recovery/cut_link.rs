//! A link under load is cut, with its carrier or silently: its flows take another way.

use super::RECOVERY;
use super::report::{FaultRow, Report};
use super::stage::{PATIENCE, Stage};
use super::ways::way;
use crate::api::wait_for;
use crate::ground::Ground;
use crate::meter::Meter;
use crate::network::{State, set_link, set_middle};
use anyhow::{Context, Result, ensure};
use edgeloom_common::view::{FlowView, LinkView};
use std::time::{Duration, Instant};

/// From the cut until every flow has delivered an item by another way.
const BOUND: Duration = Duration::from_secs(3);
/// How long flows are seen to use the link before it is cut.
const USED_FOR: Duration = Duration::from_secs(2);
/// How often the meters are read.
const POLL: Duration = Duration::from_millis(10);

/// How a link dies.
#[derive(Debug, Clone, Copy)]
enum Cut {
    /// Both ends lose their carrier.
    Carrier,
    /// Both ends look well, and nothing comes through.
    Silent,
}

impl Cut {
    fn word(self) -> &'static str {
        match self {
            Self::Carrier => "carrier lost",
            Self::Silent => "silent",
        }
    }

    fn set(self, ground: &Ground, link: usize, state: State) -> Result<()> {
        match self {
            Self::Carrier => set_link(&ground.lab, link, state),
            Self::Silent => set_middle(&ground.lab, link, state),
        }
    }
}

pub(super) fn play(ground: &Ground, report: &mut Report) -> Result<()> {
    for cut in [Cut::Carrier, Cut::Silent] {
        let stage = Stage::set(ground, RECOVERY)?;
        one(&stage, cut, report)?;
        stage.clear()?;
    }
    Ok(())
}

fn one(stage: &Stage<'_>, cut: Cut, report: &mut Report) -> Result<()> {
    let ground = stage.ground;
    let before = stage.steady()?;
    let view = stage.view()?;
    let path = &view.flows.iter().max_by_key(|flow| flow.path.len()).context("no flow between nodes")?.path;
    let ends = [path[0].to_string(), path[1].to_string()];
    let target = format!("{}-{}, {}", ends[0], ends[1], cut.word());
    let link = ground.lab.topology.link(&ends[0], &ends[1])?;
    let flows: Vec<&FlowView> = view.flows.iter().filter(|flow| crosses(flow, &ends)).collect();

    let cable = Cable { meter: Meter::start(&ground.lab)?, flows, ends };
    let used = cable.used()?;
    let cut_at = Instant::now();
    cut.set(ground, link, State::Down)?;
    let watched = cable.await_other_ways(cut_at);
    let items = stage.expect_items();
    cut.set(ground, link, State::Up)?;
    let (took, after) = watched?;
    items?;
    let effect = format!(
        "{} flows carried {used} B over it in {} s, then {after} B",
        cable.flows.len(),
        USED_FOR.as_secs()
    );
    println!("  {target}: {effect}");
    report.verdict.check(&format!("cut link {target}: nothing passes it"), after == 0, after, 0);
    report.within(&format!("cut link {target}: its flows deliver by another way, s"), took, BOUND);

    await_links(stage)?;
    stage.converged("after the link's return")?;
    let changed = before.until(&stage.steady()?).only(|thing| thing.kind == super::holding::CONTAINER);
    report.nothing(&format!("cut link {target}: containers that changed"), &changed);
    report.rows.push(FaultRow::new(("cut-link", &target), effect, took, &changed));
    Ok(())
}

fn crosses(flow: &FlowView, ends: &[String; 2]) -> bool {
    let on = |hop: &[edgeloom_common::ids::NodeId]| {
        hop.iter().all(|node| ends.iter().any(|end| *end == node.as_str()))
    };
    flow.path.windows(2).any(on)
}

/// A link with the flows over it.
struct Cable<'a> {
    meter: Meter,
    flows: Vec<&'a FlowView>,
    ends: [String; 2],
}

impl Cable<'_> {
    /// Bytes of the flows that came over the link; every flow has to use it.
    fn used(&self) -> Result<u64> {
        let before = self.meter.snapshot();
        std::thread::sleep(USED_FOR);
        let now = self.meter.snapshot().since(&before);
        let mut sum = 0;
        for flow in &self.flows {
            let bytes = self.bytes(flow, &now)?;
            ensure!(bytes > 0, "{} -> {} does not use the link {:?}", flow.from, flow.to, self.ends);
            sum += bytes;
        }
        Ok(sum)
    }

    fn bytes(&self, flow: &FlowView, counted: &crate::meter::Snapshot) -> Result<u64> {
        let links = counted.links_of(&flow.key.context("a running flow has a key")?);
        let here = |(from, to): &(String, String)| self.ends.contains(from) && self.ends.contains(to);
        Ok(links.iter().filter(|(link, _)| here(link)).map(|(_, bytes)| bytes).sum())
    }

    /// Waits until every flow has delivered a whole item by a way without this link; how long that took since
    /// the cut, and what still came over the link.
    fn await_other_ways(&self, cut_at: Instant) -> Result<(Duration, u64)> {
        let before = self.meter.snapshot();
        loop {
            let now = self.meter.snapshot().since(&before);
            let mut found = 0;
            for flow in &self.flows {
                let links = now.links_of(&flow.key.context("a running flow has a key")?);
                found += usize::from(way(flow, &links).is_some_and(|way| !self.is_on(&way)));
            }
            if found == self.flows.len() {
                let over = self.flows.iter().map(|flow| self.bytes(flow, &now)).sum::<Result<u64>>()?;
                return Ok((cut_at.elapsed(), over));
            }
            ensure!(
                cut_at.elapsed() < PATIENCE,
                "{found} of {} flows found another way within {} s",
                self.flows.len(),
                PATIENCE.as_secs()
            );
            std::thread::sleep(POLL);
        }
    }

    fn is_on(&self, way: &[String]) -> bool {
        way.windows(2).any(|hop| hop.iter().all(|node| self.ends.contains(node)))
    }
}

/// Waits until every node says that all of its links are up.
fn await_links(stage: &Stage<'_>) -> Result<()> {
    wait_for("every link to be up", PATIENCE, || {
        let nodes = stage.ground.api.nodes()?.nodes;
        Ok(nodes.iter().flat_map(|node| &node.links).all(|link: &LinkView| link.up))
    })
}
