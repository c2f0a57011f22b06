//! What would become of a user's own jobs on a user's own cluster, under each profile.
//!
//! In: a cluster file and job documents. Out: for each profile where tasks and flows go, what is predicted,
//! what the simulator finds, and which jobs wait and why. Links are used as a controller uses them. A job's
//! own choice of profile is set aside: here each profile in turn decides on all.

mod answer;
mod fields;
mod links;
mod topology;

pub use answer::{Answer, FlowRow, JobRow, Row, Timing, WaitingRow};
pub use topology::{Cluster, cluster};

use edgeloom_common::job::{self, Job};
use edgeloom_common::units::TCP_GOODPUT;
use edgeloom_common::view::ProblemItem;
use edgeloom_sched::snapshot::{Policy, Processors};
use serde::Serialize;
use std::collections::BTreeMap;

use crate::SimError;
use crate::random::Draw;
use crate::simulation::{Arrival, Setting, Simulation};

/// Share of a link that flows may reserve: the controller's.
const LINK_SHARE: f64 = 0.95;

/// A file's name, for problems, and what is in it.
#[derive(Debug, Clone)]
pub struct File {
    pub name: String,
    pub text: Vec<u8>,
}

/// Something wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    pub file: String,
    pub item: ProblemItem,
}

/// A cluster, and jobs in the order in which they arrive.
#[derive(Debug, Clone)]
pub struct Scenario {
    cluster: Cluster,
    jobs: Vec<Job>,
}

/// How the jobs come, and who decides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    pub seed_base: u64,
    /// Jobs that arrive in a second, on average; none: all arrive at once.
    pub arrivals_per_s: Option<f64>,
    pub floor: f64,
    pub migration_s: f64,
    pub horizon_s: f64,
    pub profiles: Vec<String>,
}

/// Reads all files.
///
/// # Errors
/// Every problem of every file; jobs of the same name, and no job at all, are problems too.
pub fn read(topology: &File, documents: &[File]) -> Result<Scenario, Vec<FileProblem>> {
    let mut problems = Vec::new();
    let mut tell = |file: &str, items: Vec<ProblemItem>| {
        problems.extend(items.into_iter().map(|item| FileProblem { file: file.to_owned(), item }));
    };
    let cluster = match std::str::from_utf8(&topology.text) {
        Ok(text) => cluster(text).map_err(|items| tell(&topology.name, items)).ok(),
        Err(_) => {
            tell(&topology.name, vec![whole_file("the file is not UTF-8", "write TOML")]);
            None
        }
    };
    let mut jobs: Vec<Job> = Vec::new();
    let mut files = BTreeMap::new();
    for file in documents {
        let Ok(job) = job::parse(&file.text).map_err(|items| tell(&file.name, items)) else { continue };
        if let Some(other) = files.insert(job.name.clone(), &file.name) {
            let problem = format!("job {} is in {other} too", job.name);
            tell(&file.name, vec![whole_file(&problem, "give one of them another name")]);
        }
        jobs.push(Job { profile: None, ..job });
    }
    if documents.is_empty() {
        tell(
            &topology.name,
            vec![whole_file("there is no job to place", "put job documents there as *.yaml")],
        );
    }
    match cluster {
        Some(cluster) if problems.is_empty() => Ok(Scenario { cluster, jobs }),
        _ => Err(problems),
    }
}

fn whole_file(problem: &str, remedy: &str) -> ProblemItem {
    ProblemItem { line: 0, field: String::new(), problem: problem.to_owned(), remedy: remedy.to_owned() }
}

/// Places the jobs under each profile; they stay for ever.
///
/// # Errors
/// A profile that the scheduler does not have, a setting out of bounds, or a decision that breaks a rule.
pub fn run(scenario: &Scenario, settings: &Settings) -> Result<Answer, SimError> {
    settings.check()?;
    let arrivals = settings.arrivals(&scenario.jobs);
    let (mut rows, mut timing) = (Vec::new(), Vec::new());
    for profile in crate::profiles(&settings.profiles)? {
        let setting = Setting {
            nodes: scenario.cluster.nodes.clone(),
            links: scenario.cluster.links.clone(),
            goodput: TCP_GOODPUT,
            link_share: LINK_SHARE,
            processors: Processors::Shared,
            policy: settings.policy(),
            seed: settings.seed_base,
        };
        let mut simulation = Simulation::new(setting, &arrivals, profile);
        simulation.run()?;
        let mut row = Row::of(profile.name(), &simulation);
        let outcome = simulation.into_outcome();
        (row.migrations, row.reroutes) = (outcome.migrations, outcome.reroutes);
        rows.push(row);
        timing.push(Timing::of(profile.name(), &outcome.decision_ms));
    }
    Ok(Answer { experiment: "streaming", seeds: 1, settings: settings.clone(), rows, timing })
}

impl Settings {
    fn check(&self) -> Result<(), SimError> {
        crate::within("arrivals a second", self.arrivals_per_s.unwrap_or(1.0), (1e-6, 1e6))?;
        crate::within("floor", self.floor, (0.0, 1.0))?;
        crate::within("migration in seconds", self.migration_s, (0.0, 1e7))?;
        crate::within("horizon in seconds", self.horizon_s, (0.0, 1e7))
    }

    fn policy(&self) -> Policy {
        let Self { floor, migration_s, horizon_s, .. } = *self;
        Policy { floor, migration_s, horizon_s, ..Policy::default() }
    }

    fn arrivals(&self, jobs: &[Job]) -> Vec<Arrival> {
        let mut draw = Draw::new(self.seed_base);
        let mut at_s = 0.0;
        let mut arrive = |job: &Job| {
            at_s += self.arrivals_per_s.map_or(0.0, |rate| draw.exponential(1.0 / rate));
            Arrival { at_s, duration_s: f64::INFINITY, job: job.clone() }
        };
        jobs.iter().map(&mut arrive).collect()
    }
}
