//! `cargo lab layers`: the experiment of the LRScheduler paper (section V) on real Docker daemons and a real registry.
//!
//! Containers of real images at a fortieth of their size are asked for one after the other, and what each
//! pull fetches is read from the registry's log. In: profiles, numbers of nodes, rates of their lines to the
//! registry, seeds. Out: the paper's Table I and the series of its Fig. 3 to 5, for each order of requests and over
//! all of them. Every profile gets the same orders and begins each with empty image stores; `+neighbours` behind a
//! profile's name turns the agents' layer store on.

mod beside;
mod cell;
mod empty;
mod judge;
mod load;
mod means;
mod plot;
mod pull;
mod report;
mod requests;
mod scenarios;
mod series;

use crate::checks::conclude;
use crate::experiment::Experiment;
use crate::ground::{Ground, Stay};
use anyhow::{Result, ensure};
use cell::Cell;
use clap::Args;
use edgeloom_common::units::BitRate;
use empty::LayerStore;
use report::Report;
use requests::{Choice, Requests};
use std::path::PathBuf;

/// Behind a profile's name: with the agents' layer store.
const NEIGHBOURS: &str = "+neighbours";

#[derive(Debug, Clone, Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    experiment: Experiment,
    /// Profiles, in this order; with `+neighbours`, nodes get layers from each other.
    #[arg(long, value_delimiter = ',', default_value = "kube,layer,lrs,edgeloom,edgeloom+neighbours")]
    profiles: Vec<String>,
    /// Numbers of nodes, 3 to 5.
    #[arg(long, value_delimiter = ',', default_value = "4", value_parser = clap::value_parser!(u8).range(3..=5))]
    nodes: Vec<u8>,
    /// Rates of each node's line to the registry.
    #[arg(long, value_delimiter = ',', default_value = "20Mbit/s")]
    uplinks: Vec<BitRate>,
    /// 3, 4 and 5 nodes with 10, 20 and 40 Mbit/s each.
    #[arg(long, conflicts_with_all = ["nodes", "uplinks"])]
    full: bool,
    /// Containers asked for under each profile.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=200))]
    containers: u16,
    /// Which images they are drawn from.
    #[arg(long, value_enum, default_value = "named")]
    images: Choice,
    /// Which images and sizes are drawn, in which order.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many orders, drawn by the seed and those after it; what is judged is their mean.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    orders: u16,
    /// A folder for figures (SVG), one a lab, and one over nodes and over rates where there are several.
    #[arg(long)]
    plot: Option<PathBuf>,
    /// Without the pulls that sets of layers mispredict (a tag pushed again, a loaded image, a layer shared above
    /// another base), and without the pull beside a running job.
    #[arg(long)]
    no_scenarios: bool,
    /// Those alone, under no profile but the default.
    #[arg(long, conflicts_with_all = ["no_scenarios", "full"])]
    only_scenarios: bool,
}

impl Settings {
    fn cells(&self) -> Vec<Cell> {
        let (nodes, uplinks) = match self.full {
            true => (vec![3, 4, 5], [10, 20, 40].map(|mbit| BitRate(mbit * 1_000_000)).to_vec()),
            false => (self.nodes.clone(), self.uplinks.clone()),
        };
        let rated = |nodes: u8| uplinks.iter().map(move |uplink| Cell { nodes, uplink: *uplink });
        nodes.into_iter().flat_map(rated).collect()
    }
}

/// A profile, and whether nodes get layers from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Contender<'a> {
    /// As it is asked for.
    name: &'a str,
    profile: &'a str,
    store: LayerStore,
}

impl<'a> Contender<'a> {
    fn read(name: &'a str) -> Self {
        match name.strip_suffix(NEIGHBOURS) {
            Some(profile) => Self { name, profile, store: LayerStore::On },
            None => Self { name, profile: name, store: LayerStore::Off },
        }
    }
}

/// Runs the experiment; true if every check holds.
pub(crate) fn run(settings: &Settings) -> Result<bool> {
    let known = edgeloom_sched::profile_names();
    let contenders: Vec<Contender<'_>> = settings.profiles.iter().map(|name| Contender::read(name)).collect();
    for contender in &contenders {
        let profile = contender.profile;
        ensure!(known.contains(&profile), "there is no profile {profile}; there are {known:?}");
    }
    let results = settings.experiment.results()?;
    let mut report = Report::default();
    let played = play(settings, &contenders, &mut report);
    report.sum_up();
    report.print();
    judge::judge(&mut report);
    if let Some(folder) = &settings.plot {
        plot::draw(&report.rows, folder)?;
    }
    conclude(&mut report, played, &results)
}

fn play(settings: &Settings, contenders: &[Contender<'_>], report: &mut Report) -> Result<()> {
    let cells = settings.cells();
    for (at, cell) in cells.iter().enumerate() {
        let (ground, images) = cell.raise(&settings.experiment.build())?;
        let orders = requests::draw(&images, settings);
        let played = match at == 0 && !settings.no_scenarios {
            true => play_scenarios(&ground, report),
            false => Ok(()),
        };
        let contenders = if settings.only_scenarios { &[] } else { contenders };
        let played = played.and_then(|()| compare(&ground, cell, (contenders, &orders), report));
        if let Err(error) = played {
            ground.abandon()?;
            return Err(error);
        }
        let is_last = at + 1 == cells.len();
        ground.clear(if is_last { settings.experiment.stay() } else { Stay::Down })?;
    }
    Ok(())
}

/// What is played once, and leaves nothing.
fn play_scenarios(ground: &Ground, report: &mut Report) -> Result<()> {
    let held = scenarios::play(ground, report)?;
    empty::empty(ground, &held)?;
    beside::play(ground, report)?;
    empty::forget_lines(ground)
}

/// Each order under each profile, on one lab.
fn compare(
    ground: &Ground,
    cell: &Cell,
    (contenders, orders): (&[Contender<'_>], &[Requests]),
    report: &mut Report,
) -> Result<()> {
    let turn = |requests| contenders.iter().map(move |contender| (requests, contender));
    let mut turns = orders.iter().flat_map(turn).peekable();
    let mut store = LayerStore::Off;
    while let Some((requests, contender)) = turns.next() {
        let Cell { nodes, uplink } = cell;
        ground.chapter(&format!("order {}, {} on {nodes} nodes at {uplink}", requests.order, contender.name));
        // One that was on has layers of the profile before.
        if contender.store == LayerStore::On || store == LayerStore::On {
            store = contender.store;
            empty::set_layer_store(ground, store)?;
        }
        let row = series::play(ground, cell, contender, requests)?;
        let held = row.held();
        report.rows.push(row);
        if turns.peek().is_some() {
            empty::empty(ground, &held)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: Settings,
    }

    fn cells(words: &[&str]) -> usize {
        Line::try_parse_from([&["layers"], words].concat()).unwrap().settings.cells().len()
    }

    #[test]
    fn cells_are_all_numbers_of_nodes_at_all_rates() {
        assert_eq!(cells(&[]), 1);
        assert_eq!(cells(&["--nodes", "3,5", "--uplinks", "5Mbit/s,10Mbit/s,1Gbit/s"]), 6);
        assert_eq!(cells(&["--full"]), 9);
    }

    #[test]
    fn neighbours_are_asked_for_behind_the_profile() {
        let with = Contender::read("edgeloom+neighbours");
        assert_eq!((with.profile, with.store), ("edgeloom", LayerStore::On));
        assert_eq!(Contender::read("edgeloom").store, LayerStore::Off);
    }
}
