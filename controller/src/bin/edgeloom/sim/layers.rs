//! `edgeloom sim layers`: its options, its run, and its result for people.

use clap::{Args, ValueEnum};
use edgeloom_common::units::{BitRate, Bytes};
use edgeloom_sim::layers::{Choice, Experiment, Row, Settings, Store, run_layers};
use edgeloom_sim::streaming::Sweep;
use std::path::PathBuf;

use super::{OutputFile, watched};
use crate::commands::Printer;
use crate::error::Error;
use crate::table::Table;
use crate::units::UNKNOWN;

#[derive(Debug, Args)]
pub(crate) struct Layers {
    /// Workers of the cluster.
    #[arg(long, default_value_t = Settings::default().nodes)]
    nodes: usize,
    /// Containers that are asked for.
    #[arg(long, default_value_t = Settings::default().containers)]
    containers: usize,
    /// Of each node's line to the registry.
    #[arg(long, default_value = "20Mbit/s")]
    bandwidth: BitRate,
    /// Disks over those of the paper's workers.
    #[arg(long, default_value_t = Settings::default().disk_factor)]
    disk_factor: f64,
    /// How nodes keep images, which decides what a pull fetches.
    #[arg(long, value_enum, default_value_t = StoreName::Graphdriver)]
    store: StoreName,
    /// Which images are drawn from.
    #[arg(long, value_enum, default_value_t = ImagesName::All)]
    images: ImagesName,
    /// How many seeds, each an order of requests of its own.
    #[arg(long, default_value_t = Settings::default().seeds)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = Settings::default().seed_base)]
    seed_base: u64,
    /// Profiles that take part.
    #[arg(long, value_delimiter = ',', default_values_t = Settings::default().profiles)]
    profiles: Vec<String>,
    /// One setting over several values: nodes=3,4,5, bandwidth=5Mbit/s,20Mbit/s or, of containers, jobs=10,20.
    #[arg(long, value_name = "SETTING=VALUES")]
    sweep: Option<Sweep>,
    /// Also write the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw the result, as SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Runs at a time; decisions are timed best with 1 [default: processors].
    #[arg(long)]
    threads: Option<usize>,
    /// Tell of every run, also where standard error is no terminal.
    #[arg(long)]
    progress: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StoreName {
    /// Docker's own: layers by the chain of what is below them.
    Graphdriver,
    /// Layers by their digest alone, as the paper counts.
    Containerd,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ImagesName {
    /// All that are recorded.
    All,
    /// The six that the paper names.
    Named,
}

impl Layers {
    fn settings(&self) -> Settings {
        Settings {
            seeds: self.seeds,
            seed_base: self.seed_base,
            nodes: self.nodes,
            containers: self.containers,
            bandwidth_bps: self.bandwidth.as_f64(),
            disk_factor: self.disk_factor,
            store: match self.store {
                StoreName::Graphdriver => Store::Graphdriver,
                StoreName::Containerd => Store::Containerd,
            },
            images: match self.images {
                ImagesName::All => Choice::All,
                ImagesName::Named => Choice::Named,
            },
            profiles: self.profiles.clone(),
            sweep: self.sweep.clone(),
        }
    }
}

pub(super) fn run(arguments: &Layers, printer: &Printer) -> Result<(), Error> {
    let json = OutputFile::open(arguments.json.as_deref())?;
    let plot = OutputFile::open(arguments.plot.as_deref())?;
    let settings = arguments.settings();
    let experiment =
        watched((arguments.threads, arguments.progress), |execution| run_layers(&settings, execution))?;
    OutputFile::write(plot, || edgeloom_sim::plot::layers_svg(&experiment))?;
    OutputFile::write(json, || crate::commands::json(&experiment))?;
    printer.print(&experiment, table)
}

/// One line a profile and point: means over seeds with half their 95% intervals.
fn table(experiment: &Experiment) -> String {
    let mut header: Vec<String> =
        experiment.settings.sweep.iter().map(|sweep| sweep.axis.to_string().to_uppercase()).collect();
    header.extend(
        [
            "PROFILE",
            "DOWNLOADED",
            "SECONDS",
            "STD",
            "CPU",
            "MEMORY",
            "PLACED",
            "EVICTED",
            "BYTES/kube",
            "SHARED/kube",
        ]
        .map(str::to_owned),
    );
    header.extend(["DECISION MS", "MAX MS"].map(str::to_owned));
    let mut table = Table::new(header.iter().map(String::as_str));
    for (row, timing) in experiment.rows.iter().zip(&experiment.timing) {
        let mut cells: Vec<String> = row.sweep.iter().map(ToString::to_string).collect();
        cells.extend(metrics(row));
        cells.extend([timing.decision_ms_mean, timing.decision_ms_max].map(|ms| format!("{ms:.2}")));
        table.row(cells);
    }
    table.text() + &least(experiment)
}

/// What no profile gets below, at each point: it is the same for all.
fn least(experiment: &Experiment) -> String {
    let line = |rows: &[Row]| {
        let row = &rows[0];
        let at = row.sweep.map(|value| format!(" at {value}")).unwrap_or_default();
        let of_kube = match row.ratio_to_kube.as_ref() {
            Some(_) => format!(", {} of what kube downloads", ratio(row, "bytes_least")),
            None => String::new(),
        };
        format!("every layer once{at}: {}{of_kube}\n", bytes(row.bytes_least))
    };
    let points = experiment.rows.chunk_by(|one, next| one.sweep == next.sweep);
    "\nSHARED: from the registry, if nodes get layers from each other\n".to_owned()
        + &points.map(line).collect::<String>()
}

/// Over the reference's downloads, with half the 95% interval.
fn ratio(row: &Row, key: &str) -> String {
    let ratio = row.ratio_to_kube.as_ref().and_then(|ratios| ratios.get(key));
    ratio.map_or(UNKNOWN.to_owned(), |ratio| match ratio.ci95 {
        Some(half) => format!("{:.2} ±{half:.2}", ratio.mean),
        None => format!("{:.2}", ratio.mean),
    })
}

fn metrics(row: &Row) -> [String; 10] {
    let half = |key: &str| row.ci95.get(key).copied().flatten();
    let number = |key: &str, value: f64, digits: usize| match half(key) {
        Some(half) => format!("{value:.digits$} ±{half:.digits$}"),
        None => format!("{value:.digits$}"),
    };
    let downloaded = match half("bytes_fetched") {
        Some(half) => format!("{} ±{}", bytes(row.bytes_fetched), bytes(half)),
        None => bytes(row.bytes_fetched),
    };
    [
        row.profile.clone(),
        downloaded,
        number("seconds", row.seconds, 0),
        number("std", row.std, 3),
        format!("{:.1}%", row.cpu_share * 100.0),
        format!("{:.1}%", row.memory_share * 100.0),
        format!("{:.1}", row.placed),
        format!("{:.1}", row.evicted),
        ratio(row, "bytes_fetched"),
        ratio(row, "bytes_shared"),
    ]
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sums of bytes are positive")]
fn bytes(value: f64) -> String {
    Bytes(value as u64).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, Command};
    use crate::sim::Experiment as Kind;
    use clap::Parser;

    fn parse(options: &str) -> Result<Settings, clap::Error> {
        let words = "edgeloom sim layers ".split_whitespace().chain(options.split_whitespace());
        let Command::Sim { experiment: Kind::Layers(layers) } = Arguments::try_parse_from(words)?.command
        else {
            panic!("another command");
        };
        Ok(layers.settings())
    }

    #[test]
    fn the_defaults_are_the_papers() {
        assert_eq!(parse("").unwrap(), Settings::default());
        let paper = "--nodes 4 --containers 20 --bandwidth 20Mbit/s --store graphdriver";
        assert_eq!(parse(paper).unwrap(), Settings::default());
        assert!(parse("--bandwidth 20").is_err() && parse("--sweep speed=1").is_err());
    }

    #[test]
    fn a_row_says_how_it_compares() {
        let settings = Settings { seeds: 2, containers: 3, ..Settings::default() };
        let execution = edgeloom_sim::streaming::Execution { threads: 1, progress: &|_| () };
        let text = table(&run_layers(&settings, &execution).unwrap());
        assert!(text.lines().nth(1).unwrap().contains("1.00 ±0.00"), "{text}");
    }
}
