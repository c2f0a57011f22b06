//! Options of `edgeloom sim`.

use clap::{Args, Subcommand, ValueEnum};
use edgeloom_common::units::{BitRate, Bytes};
use edgeloom_sched::snapshot::Processors;
use edgeloom_sim::streaming::{Mix, Settings, Sweep};
use std::path::PathBuf;

use super::layers::Layers;
use super::sla::Sla;

/// Options that say something about random clusters only.
const RANDOM_ONLY: [&str; 8] = ["nodes", "mix", "processors", "jobs", "bandwidth", "raw", "seeds", "sweep"];

#[derive(Debug, Subcommand)]
pub(crate) enum Experiment {
    /// Pipelines that arrive over time: how many items a second each profile makes of them.
    ///
    /// On random clusters with the workload of the ENTS paper; or, with --topology and --jobs-dir, on a
    /// cluster and jobs of your own.
    Streaming(Box<Streaming>),
    /// Containers of three service classes: in what order they run, and with how many cores.
    ///
    /// 90 containers on 15 nodes, as in the paper on SLA classes, under the profile sla, and under queues that
    /// serve by arrival or let the first one block the others.
    Sla(Sla),
    /// Many containers at once: how many find room, how soon they are done, and how long decisions take.
    ///
    /// On the machines of the ECSched paper, or on thousands of cloud instances; against the queues of
    /// Kubernetes and Swarm, blocking and not.
    Batch(Box<super::batch::Batch>),
    /// Containers asked for one after the other: how many bytes of their images each profile fetches.
    ///
    /// With real images, on the workers and with the request mix of the LRScheduler paper.
    Layers(Layers),
}

#[derive(Debug, Args)]
pub(crate) struct Streaming {
    /// Nodes of the random cluster.
    #[arg(long, default_value_t = 30)]
    nodes: usize,
    /// Kinds of nodes.
    #[arg(long, value_enum, default_value_t = MixName::Equal)]
    mix: MixName,
    /// Whether jobs on a node share its processor.
    #[arg(long, value_enum, default_value_t = ProcessorsName::PerJob)]
    processors: ProcessorsName,
    /// Jobs that arrive.
    #[arg(long, default_value_t = 50)]
    jobs: usize,
    /// Jobs a second that arrive on average: 0.5; with --topology all arrive at once unless this is given.
    #[arg(long)]
    pub(super) rate: Option<f64>,
    /// Mean bandwidth of a link.
    #[arg(long, default_value = "1Mbit/s")]
    bandwidth: BitRate,
    /// Size of an item as the camera makes it.
    #[arg(long, value_name = "SIZE", default_value = "6MB")]
    raw: Bytes,
    /// Mean stay of a placed job.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    duration: f64,
    /// How many seeds, each a cluster and a workload of its own.
    #[arg(long, default_value_t = 10)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    pub(super) seed_base: u64,
    /// Profiles that take part.
    #[arg(long, value_delimiter = ',', default_values_t = Settings::default().profiles)]
    pub(super) profiles: Vec<String>,
    /// Part of its max-min throughput that every job keeps, 0 to 1.
    #[arg(long, default_value_t = Settings::default().floor)]
    floor: f64,
    /// Seconds for which a job makes nothing when a task of it moves.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value_t = default_migration_s())]
    migration_s: f64,
    /// Seconds within which a move has to pay [default: the stay].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    horizon_s: Option<f64>,
    /// One setting over several values: nodes=10,20,..70, jobs=10,20,..80 or bandwidth=1Mbit/s,5Mbit/s.
    #[arg(long, value_name = "SETTING=VALUES")]
    sweep: Option<Sweep>,
    /// Also write the result as JSON.
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Draw the result, as SVG.
    #[arg(long, value_name = "FILE", conflicts_with = "topology")]
    pub(super) plot: Option<PathBuf>,
    /// Runs at a time; decisions are timed best with 1 [default: processors].
    #[arg(long)]
    pub(super) threads: Option<usize>,
    /// Tell of every run, also where standard error is no terminal.
    #[arg(long)]
    pub(super) progress: bool,
    /// A cluster of your own, as TOML.
    #[arg(long, value_name = "FILE", requires = "jobs_dir", conflicts_with_all = RANDOM_ONLY)]
    pub(super) topology: Option<PathBuf>,
    /// Job documents to place on it: each *.yaml, in the order of their names.
    #[arg(long, value_name = "DIR", requires = "topology")]
    pub(super) jobs_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ProcessorsName {
    /// Each job has a node's whole speed to itself, as in the paper's model.
    PerJob,
    /// As on a real cluster.
    Shared,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum MixName {
    /// Four kinds in equal parts.
    Equal,
    /// The paper's devices: four Pis, two Nanos, two NX, two servers, over and over.
    Table1,
}

impl Streaming {
    pub(super) fn settings(&self) -> Settings {
        let defaults = Settings::default();
        Settings {
            seeds: self.seeds,
            seed_base: self.seed_base,
            nodes: self.nodes,
            mix: match self.mix {
                MixName::Equal => Mix::Equal,
                MixName::Table1 => Mix::Table1,
            },
            processors: match self.processors {
                ProcessorsName::PerJob => Processors::PerJob,
                ProcessorsName::Shared => Processors::Shared,
            },
            jobs: self.jobs,
            link_bps: self.bandwidth.as_f64(),
            arrivals_per_s: self.rate.unwrap_or(defaults.arrivals_per_s),
            duration_s: self.duration,
            #[expect(clippy::cast_precision_loss, reason = "sizes beyond 2^52 are refused")]
            raw_bits: self.raw.0 as f64 * 8.0,
            floor: self.floor,
            migration_s: self.migration_s,
            horizon_s: self.horizon_s,
            profiles: self.profiles.clone(),
            sweep: self.sweep.clone(),
        }
    }
}

fn default_migration_s() -> f64 {
    Settings::default().migration_s
}

/// `60` or `60s`.
fn seconds(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('s').unwrap_or(text);
    number.parse().map_err(|_| "write seconds, as 60 or 60s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, Command, Output};
    use clap::Parser;

    fn parse(options: &str) -> Result<(Settings, Output), clap::Error> {
        let words = "edgeloom sim streaming ".split_whitespace().chain(options.split_whitespace());
        let arguments = Arguments::try_parse_from(words)?;
        let Command::Sim { experiment: Experiment::Streaming(streaming) } = arguments.command else {
            panic!("another command");
        };
        Ok((streaming.settings(), arguments.output))
    }

    #[test]
    fn the_defaults_are_the_papers() {
        let (settings, output) = parse("").unwrap();
        assert_eq!((settings, output), (Settings::default(), Output::Table));
        let paper = "--nodes 30 --jobs 50 --rate 0.5 --bandwidth 1Mbit/s --seeds 10 --seed-base 1 \
                     --duration 60s --raw 6MB -o json";
        assert_eq!(parse(paper).unwrap(), (Settings::default(), Output::Json));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for options in [
            "--topology c.toml",
            "--jobs-dir jobs",
            "--topology c.toml --jobs-dir jobs --sweep nodes=1,2",
            "--topology c.toml --jobs-dir jobs --plot x.svg",
            "--bandwidth 1Mbit",
            "--duration minute",
            "--sweep speed=1",
        ] {
            assert!(parse(options).is_err(), "{options}");
        }
        assert!(parse("--topology c.toml --jobs-dir jobs --rate 2").is_ok());
    }
}
