//! `edgeloom sim batch`.

use super::OutputFile;
use super::progress::Line;
use crate::commands::Printer;
use crate::error::Error;
use crate::table::Table;
use crate::units::UNKNOWN;
use clap::{Args, ValueEnum};
use edgeloom_sim::batch::{Experiment, Mix, Row, Scenario, Settings, Timing, dump, frontier, run_batch};
use edgeloom_sim::streaming::Execution;
use std::fs;
use std::path::{Path, PathBuf};

/// Where there is always more to do than room: below, hardly anything has to wait.
const FRONTIER_LOAD: f64 = 1.3;
/// The largest trace that is read.
const TRACE_MAX: u64 = 256 * 1024 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Batch {
    /// How containers come: one-shot; with --frontier online.
    #[arg(long, value_enum)]
    scenario: Option<ScenarioName>,
    /// Which machines there are.
    #[arg(long, value_enum, default_value_t = MixName::Paper)]
    mix: MixName,
    #[arg(long, default_value_t = Settings::default().machines)]
    machines: usize,
    /// Containers: 300; over time 8300; of a trace all, or so many that are drawn from it.
    #[arg(long)]
    containers: Option<usize>,
    /// What is asked for over what there is: 1.4; over time 1.0; with --frontier 1.3.
    #[arg(long)]
    load: Option<f64>,
    /// Seconds within which the containers arrive.
    #[arg(long, value_name = "SECONDS", default_value_t = Settings::default().span_s)]
    span: f64,
    /// Mean time that a container runs.
    #[arg(long, value_name = "SECONDS", default_value_t = Settings::default().duration_s)]
    duration: f64,
    /// Seconds between two decisions.
    #[arg(long, value_name = "SECONDS", default_value_t = Settings::default().heartbeat_s)]
    heartbeat: f64,
    /// Part of the containers with an affinity, 0 to 1.
    #[arg(long, default_value_t = Settings::default().affinity)]
    affinity: f64,
    /// Seven times so many seconds of waiting halve what a size counts for, with profile edgeloom.
    #[arg(long, value_name = "SECONDS", default_value_t = Settings::default().ageing_s)]
    ageing: f64,
    /// Seconds of waiting after which a container that fits nowhere claims a machine, with profile edgeloom.
    #[arg(long, value_name = "SECONDS", default_value_t = Settings::default().patience_s)]
    patience: f64,
    /// A trace in place of drawn containers: lines of submitted s, duration s, CPU, memory; or task_events of Google's
    /// trace of 2011, or batch_task of Alibaba's of 2018.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["load", "affinity"])]
    trace: Option<PathBuf>,
    /// How many seeds, each a cluster and containers of its own.
    #[arg(long, default_value_t = Settings::default().seeds)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = Settings::default().seed_base)]
    seed_base: u64,
    /// Profiles that take part; also edgeloom@AGEING or edgeloom@AGEING/PATIENCE in seconds, edgeloom-count,
    /// edgeloom-utilisation.
    #[arg(long, value_delimiter = ',', default_values_t = Settings::default().profiles)]
    profiles: Vec<String>,
    /// In place of profiles, the default with many values of ageing and patience, beside kube and swarm: all that they
    /// span of mean completion and 99th percentile.
    #[arg(long, conflicts_with_all = ["profiles", "ageing", "patience", "dump"])]
    frontier: bool,
    /// Write the first seed's flow network with all its arcs and our optimum as JSON, and do nothing else.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "plot"])]
    dump: Option<PathBuf>,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScenarioName {
    /// All at once, and one decision.
    OneShot,
    /// Over time, each leaving when it is done.
    Online,
    /// All at the start, each leaving when it is done.
    Drain,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum MixName {
    /// 1 core and 3 GB, 2 and 6, 4 and 12, in equal parts.
    Paper,
    /// 19 sizes of cloud instances, each about half loaded.
    Ec2,
}

impl Batch {
    fn settings(&self) -> Settings {
        let defaults = Settings::default();
        let usual = if self.frontier { ScenarioName::Online } else { ScenarioName::OneShot };
        let scenario = self.scenario.unwrap_or(usual);
        let over_time = scenario != ScenarioName::OneShot;
        let load_over_time = if self.frontier { FRONTIER_LOAD } else { 1.0 };
        Settings {
            seeds: self.seeds,
            seed_base: self.seed_base,
            scenario: match scenario {
                ScenarioName::OneShot => Scenario::OneShot,
                ScenarioName::Online => Scenario::Online,
                ScenarioName::Drain => Scenario::Drain,
            },
            mix: match self.mix {
                MixName::Paper => Mix::Paper,
                MixName::Ec2 => Mix::Ec2,
            },
            machines: self.machines,
            sample: self.trace.as_ref().and(self.containers),
            containers: self.containers.unwrap_or(if over_time { 8300 } else { defaults.containers }),
            load: self.load.unwrap_or(if over_time { load_over_time } else { defaults.load }),
            span_s: self.span,
            duration_s: self.duration,
            heartbeat_s: self.heartbeat,
            affinity: self.affinity,
            ageing_s: self.ageing,
            patience_s: self.patience,
            profiles: if self.frontier { frontier() } else { self.profiles.clone() },
        }
    }
}

/// Runs it, or writes one instance.
pub(super) fn run(arguments: &Batch, printer: &Printer) -> Result<(), Error> {
    let settings = arguments.settings();
    let trace = arguments.trace.as_deref().map(read).transpose()?;
    if let Some(path) = &arguments.dump {
        let file = OutputFile::open(Some(path))?;
        let dump = dump(&settings, trace.as_deref())?;
        // Millions of arcs: no line is spent on each number.
        let text = || serde_json::to_string(&dump).expect("a dump is plain numbers");
        return OutputFile::write(file, text);
    }
    let json = OutputFile::open(arguments.json.as_deref())?;
    let plot = OutputFile::open(arguments.plot.as_deref())?;
    let line = Line::new(arguments.progress);
    let threads = arguments.threads.unwrap_or_else(edgeloom_sim::available_threads);
    let execution = Execution { threads, progress: &|done| line.show(&done) };
    let experiment = run_batch(&settings, trace.as_deref(), &execution);
    line.clear();
    let experiment = experiment?;
    OutputFile::write(plot, || edgeloom_sim::plot::batch_svg(&experiment))?;
    OutputFile::write(json, || crate::commands::json(&experiment))?;
    printer.print(&experiment, table)
}

fn read(path: &Path) -> Result<String, Error> {
    let wrong = |source| Error::Input { path: path.to_owned(), source };
    let size = fs::metadata(path).map_err(wrong)?.len();
    if size > TRACE_MAX {
        let text = format!("{size} bytes, at most {TRACE_MAX} are read");
        return Err(wrong(std::io::Error::new(std::io::ErrorKind::FileTooLarge, text)));
    }
    fs::read_to_string(path).map_err(wrong)
}

/// One line a profile: means over seeds with half their 95% intervals.
fn table(experiment: &Experiment) -> String {
    let over_time = experiment.settings.scenario != Scenario::OneShot;
    let mut header = vec!["PROFILE", "SCHEDULED", "USED"];
    if over_time {
        header.extend([
            "MEAN S",
            "MEDIAN S",
            "P99 S",
            "MEAN/kube",
            "P99/kube",
            "UNBEATEN",
            "FACTOR 50% 60% 80%",
        ]);
    } else {
        header.extend(["COST", "BUILD MS", "SOLVE MS"]);
    }
    header.extend(["DECISION MS", "MAX MS"]);
    let mut table = Table::new(header);
    for (row, timing) in experiment.rows.iter().zip(&experiment.timing) {
        let number = |key: &str, value: Option<f64>, digits: usize| cell(row, key, (value, digits));
        let mut cells = vec![
            row.profile.clone(),
            number("scheduled", Some(row.scheduled), 1),
            number("utilisation", Some(row.utilisation), 3),
        ];
        if over_time {
            cells.extend([
                number("completion_s_mean", row.completion_s_mean, 0),
                number("completion_s_p50", row.completion_s_p50, 0),
                number("completion_s_p99", row.completion_s_p99, 0),
            ]);
            cells.extend(compared(row));
        } else {
            cells.push(number("cost", row.cost, 0));
            cells.extend(flow_times(timing));
        }
        cells.extend([timing.decision_ms_mean, timing.decision_ms_max].map(|ms| format!("{ms:.2}")));
        table.row(cells);
    }
    table.text()
}

fn cell(row: &Row, key: &str, (value, digits): (Option<f64>, usize)) -> String {
    let Some(value) = value else { return UNKNOWN.to_owned() };
    match row.ci95.get(key).copied().flatten() {
        Some(half) => format!("{value:.digits$} ±{half:.digits$}"),
        None => format!("{value:.digits$}"),
    }
}

fn compared(row: &Row) -> [String; 4] {
    let ratios = [&row.completion_mean_to_kube, &row.completion_p99_to_kube].map(|ratio| {
        let Some(ratio) = ratio else { return UNKNOWN.to_owned() };
        let half = ratio.ci95.map_or_else(String::new, |half| format!(" ±{half:.3}"));
        format!("{:.3}{half}", ratio.mean)
    });
    let [mean, p99] = ratios;
    let factors = row.improvement.as_ref().map_or_else(
        || UNKNOWN.to_owned(),
        |factors| format!("{:.2} {:.2} {:.2}", factors.p50, factors.p60, factors.p80),
    );
    let unbeaten = if row.unbeaten == Some(true) { "yes" } else { UNKNOWN };
    [mean, p99, unbeaten.to_owned(), factors]
}

fn flow_times(timing: &Timing) -> [String; 2] {
    [timing.build_ms, timing.solve_ms]
        .map(|ms| ms.map_or_else(|| UNKNOWN.to_owned(), |ms| format!("{ms:.2}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, Command};
    use crate::sim::Experiment as Kind;
    use clap::Parser;

    fn parse(options: &str) -> Result<Settings, clap::Error> {
        let words = "edgeloom sim batch ".split_whitespace().chain(options.split_whitespace());
        let Command::Sim { experiment: Kind::Batch(batch) } = Arguments::try_parse_from(words)?.command
        else {
            panic!("another command");
        };
        Ok(batch.settings())
    }

    #[test]
    fn the_defaults_are_the_papers_cluster_at_once_and_its_trace_over_time() {
        assert_eq!(parse("").unwrap(), Settings::default());
        let online = parse("--scenario online").unwrap();
        assert_eq!((online.containers, online.load), (8300, 1.0));
        let drain = parse("--scenario drain").unwrap();
        assert_eq!((drain.containers, drain.load), (8300, 1.0));
        let frontier = parse("--frontier").unwrap();
        assert_eq!((frontier.scenario, frontier.load), (Scenario::Online, 1.3));
        assert!(frontier.profiles.len() > 40 && frontier.profiles[2..4] == ["edgeloom", "edgeloom@1/3600"]);
        let large = parse("--mix ec2 --machines 5000 --containers 3000 --profiles ecsched-dp").unwrap();
        assert_eq!((large.mix, large.machines, large.containers), (Mix::Ec2, 5000, 3000));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let wrong = [
            "--dump x --json y",
            "--trace t --load 1",
            "--scenario often",
            "--frontier --ageing 9",
            "--machines -1",
        ];
        for options in wrong {
            assert!(parse(options).is_err(), "{options}");
        }
    }
}
