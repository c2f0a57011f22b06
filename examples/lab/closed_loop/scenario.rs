//! The disturbances, one function each: a job runs, something changes, new plans are counted.

use super::report::ScenarioRow;
use super::watch::Watch;
use crate::checks::Checks;
use crate::document::Document;
use crate::ground::Ground;
use crate::network::{State, set_link, set_rate};
use anyhow::{Context, Result};
use clap::ValueEnum;
use edgeloom_common::ids::NodeId;
use edgeloom_common::units::BitRate;
use edgeloom_common::view::JobView;
use std::time::{Duration, Instant};

const NOISY: &str = include_str!("../jobs/noisy.yaml");
const STREAM: &str = include_str!("../jobs/stream.yaml");

/// After a link halved, the new plan has to be there by then.
const REPLAN_LIMIT: Duration = Duration::from_secs(30);
/// How long the flapping link stays in each state.
const FLAP_PERIOD: Duration = Duration::from_secs(20);
const FLAP_REPLANS_MAX: usize = 2;
/// How long throughput is measured.
const WINDOW: Duration = Duration::from_secs(20);
/// The job runs undisturbed for so long, so that what it usually reaches is known.
const UNDISTURBED: Duration = Duration::from_secs(40);
/// How far the throughput after a new plan may be from what that plan predicts.
const MISS_MAX: f64 = 0.10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Scenario {
    /// Each item's work up to a fifth more or less than declared.
    Noise,
    /// A used link carries half of what it did.
    Halved,
    /// A used link comes and goes.
    Flapping,
}

impl Scenario {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Noise => "noise",
            Self::Halved => "halved link",
            Self::Flapping => "flapping link",
        }
    }

    pub(super) fn play(self, ground: &Ground, length: Duration, checks: &mut Checks) -> Result<ScenarioRow> {
        match self {
            Self::Noise => noise(ground, length, checks),
            Self::Halved => halved_link(ground, length, checks),
            Self::Flapping => flapping_link(ground, length, checks),
        }
    }
}

/// Starts the scenario's job and lets it run undisturbed.
fn begin(ground: &Ground, document: &Document) -> Result<(JobView, f64)> {
    ground.start(document, |progress| println!("  {progress}"))?;
    println!("  undisturbed for {} s", UNDISTURBED.as_secs());
    std::thread::sleep(UNDISTURBED);
    let rate = ground.throughput(document, WINDOW)?;
    Ok((current(ground, document)?, rate))
}

fn current(ground: &Ground, document: &Document) -> Result<JobView> {
    ground.api.job(&document.name)?.with_context(|| format!("{} is gone", document.name))
}

fn end(
    ground: &Ground,
    document: &Document,
    before: (JobView, f64),
    watch: Watch<'_>,
) -> Result<ScenarioRow> {
    let during = watch.items_per_s()?;
    let after = current(ground, document)?;
    let rate = ground.throughput(document, WINDOW)?;
    Ok(ScenarioRow::new(before, (after, rate), watch.into_replans(), during))
}

fn noise(ground: &Ground, length: Duration, checks: &mut Checks) -> Result<ScenarioRow> {
    let document = Document::read(NOISY)?;
    let before = begin(ground, &document)?;
    let mut watch = Watch::begin(ground, &document)?;
    watch.go_on(length)?;
    let row = end(ground, &document, before, watch)?;
    checks.check("noise in the work: new plans", row.replans() == 0, row.replans(), 0);
    Ok(row)
}

/// The first link of the job's first flow.
fn used_link(ground: &Ground, view: &JobView) -> Result<usize> {
    let path = &view.flows.first().context("the job has no flow between nodes")?.path;
    let index = ground.lab.topology.link(path[0].as_str(), path[1].as_str())?;
    println!("  its stream goes by {}, first over {}-{}", way(path), path[0], path[1]);
    Ok(index)
}

fn way(path: &[NodeId]) -> String {
    path.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn halved_link(ground: &Ground, length: Duration, checks: &mut Checks) -> Result<ScenarioRow> {
    let document = Document::read(STREAM)?;
    let before = begin(ground, &document)?;
    let index = used_link(ground, &before.0)?;
    let whole = ground.lab.topology.links[index].rate;
    let mut watch = Watch::begin(ground, &document)?;
    set_rate(&ground.lab, index, BitRate(whole.0 / 2))?;
    println!("  halved: {whole} to {}", BitRate(whole.0 / 2));
    watch.go_on(REPLAN_LIMIT)?;
    let soon = watch.count();
    watch.go_on(length)?;
    let row = end(ground, &document, before, watch)?;
    checks.check("halved link: new plans within 30 s", soon == 1, soon, 1);
    checks.check("halved link: new plans in all", row.replans() == 1, row.replans(), 1);
    let miss = row.miss_after();
    checks.check(
        "halved link: throughput after the new plan against its prediction",
        miss <= MISS_MAX,
        miss,
        MISS_MAX,
    );
    Ok(row)
}

fn flapping_link(ground: &Ground, length: Duration, checks: &mut Checks) -> Result<ScenarioRow> {
    let document = Document::read(STREAM)?;
    let before = begin(ground, &document)?;
    let index = used_link(ground, &before.0)?;
    let mut watch = Watch::begin(ground, &document)?;
    let (begun, mut state) = (Instant::now(), State::Up);
    while begun.elapsed() < length {
        state = state.other();
        set_link(&ground.lab, index, state)?;
        println!("  {:4.0} s: the link is {}", begun.elapsed().as_secs_f64(), state.word());
        watch.go_on(FLAP_PERIOD)?;
    }
    set_link(&ground.lab, index, State::Up)?;
    let row = end(ground, &document, before, watch)?;
    let few = row.replans() <= FLAP_REPLANS_MAX;
    checks.check("flapping link: new plans", few, row.replans(), FLAP_REPLANS_MAX);
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::super::TOPOLOGY;
    use super::*;
    use crate::topology::Topology;

    #[test]
    fn the_jobs_read_and_no_link_is_declared() {
        assert!(Topology::parse(TOPOLOGY).unwrap().links.iter().all(|link| !link.declared));
        for text in [NOISY, STREAM] {
            assert_eq!(Document::read(text).unwrap().sinks.len(), 1);
        }
    }
}
