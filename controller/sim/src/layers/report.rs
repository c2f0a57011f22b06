//! Runs summed up: one row a profile and point, means over seeds with their 95% intervals.

use serde::Serialize;
use std::collections::BTreeMap;

use super::Settings;
use super::run::Outcome;
use crate::statistics::{ci95, mean};
use crate::streaming::Ratio;

/// The profile that ratios compare with: the paper's default scheduler.
const COMPARED_WITH: &str = "kube";
/// What is compared counts as at least this.
const LEAST: f64 = 1e-9;

/// Its rows are by point of the sweep, then by profile as in the settings.
pub type Experiment = crate::Experiment<Settings, Row, Timing>;

/// One profile: means over seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub profile: String,
    /// The value of the swept setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<f64>,
    pub bytes_fetched: f64,
    /// From the registry, if nodes get from each other what any has: each layer that was pulled, once.
    pub bytes_shared: f64,
    /// Of the layers that were asked for, each once: no placement gets below it.
    pub bytes_least: f64,
    /// Of all pulls, one after the other.
    pub seconds: f64,
    /// Layers on all nodes at the end.
    pub disk_bytes: f64,
    /// Half the difference of CPU and memory share at each container's node, with it (Eq. 11).
    pub std: f64,
    pub placed: f64,
    /// Sent to a disk that their layers do not fit.
    pub evicted: f64,
    /// Mean requested shares of the nodes at the end.
    pub cpu_share: f64,
    pub memory_share: f64,
    /// After each container.
    pub cumulative_bytes: Vec<f64>,
    /// Half widths of the 95% intervals of the means above; none with one seed.
    pub ci95: BTreeMap<&'static str, Option<f64>>,
    /// Bytes, seconds, disk and std over those of `kube`, where that takes part; of the bytes that are counted once,
    /// over those that it fetches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_to_kube: Option<BTreeMap<&'static str, Ratio>>,
}

/// How long decisions took here and now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timing {
    pub profile: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<f64>,
    pub decision_ms_mean: f64,
    pub decision_ms_max: f64,
}

/// A metric's name, and its value of one run.
type Metric = (&'static str, fn(&Outcome) -> f64);

const FETCHED: &str = "bytes_fetched";

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
const METRICS: [Metric; 10] = [
    (FETCHED, |run| run.cumulative_bytes.last().copied().unwrap_or(0.0)),
    ("bytes_shared", |run| run.bytes_shared),
    ("bytes_least", |run| run.bytes_least),
    ("seconds", |run| run.seconds),
    ("disk_bytes", |run| run.disk_bytes),
    ("std", |run| mean(&run.std)),
    ("placed", |run| run.placed as f64),
    ("evicted", |run| run.evicted as f64),
    ("cpu_share", |run| run.cpu),
    ("memory_share", |run| run.memory),
];
/// What is compared, and with what of the other.
const COMPARED: [(&str, &str); 6] = [
    (FETCHED, FETCHED),
    ("bytes_shared", FETCHED),
    ("bytes_least", FETCHED),
    ("seconds", "seconds"),
    ("disk_bytes", "disk_bytes"),
    ("std", "std"),
];

/// Each metric, one value a seed.
type Samples = BTreeMap<&'static str, Vec<f64>>;

/// Sums up outcomes that are in the order of points, profiles and seeds.
pub(super) fn report(settings: &Settings, outcomes: &[Outcome]) -> Experiment {
    let profiles = &settings.profiles;
    let points = settings.sweep.as_ref().map_or(1, |sweep| sweep.values.len());
    let groups: Vec<&[Outcome]> = outcomes.chunks(outcomes.len() / (profiles.len() * points)).collect();
    let (mut rows, mut timing) = (Vec::new(), Vec::new());
    for (point, groups) in groups.chunks(profiles.len()).enumerate() {
        let sweep = settings.sweep.as_ref().map(|sweep| sweep.values[point]);
        let samples: Vec<Samples> = groups.iter().map(|group| samples(group)).collect();
        let compared = profiles.iter().position(|profile| profile == COMPARED_WITH).map(|at| &samples[at]);
        for ((profile, group), own) in profiles.iter().zip(groups).zip(&samples) {
            rows.push(Row { sweep, cumulative_bytes: cumulative(group), ..row(profile, own, compared) });
            let all: Vec<f64> = group.iter().flat_map(|run| run.decision_ms.iter().copied()).collect();
            timing.push(Timing {
                profile: profile.clone(),
                sweep,
                decision_ms_mean: mean(&all),
                decision_ms_max: all.iter().copied().fold(0.0, f64::max),
            });
        }
    }
    Experiment { experiment: "layers", seeds: settings.seeds, settings: settings.clone(), rows, timing }
}

fn samples(group: &[Outcome]) -> Samples {
    METRICS.iter().map(|(name, of)| (*name, group.iter().map(of).collect())).collect()
}

/// Per container, the mean over seeds.
fn cumulative(group: &[Outcome]) -> Vec<f64> {
    let containers = group.first().map_or(0, |run| run.cumulative_bytes.len());
    let at = |index: usize| mean(&group.iter().map(|run| run.cumulative_bytes[index]).collect::<Vec<_>>());
    (0..containers).map(at).collect()
}

fn row(profile: &str, own: &Samples, compared: Option<&Samples>) -> Row {
    let of = |name: &str| mean(&own[name]);
    let ratios = |other: &Samples| {
        let ratio = |(name, with)| (name, Ratio::of(&own[name], &other[with], LEAST));
        COMPARED.map(ratio).into()
    };
    Row {
        profile: profile.to_owned(),
        sweep: None,
        bytes_fetched: of(FETCHED),
        bytes_shared: of("bytes_shared"),
        bytes_least: of("bytes_least"),
        seconds: of("seconds"),
        disk_bytes: of("disk_bytes"),
        std: of("std"),
        placed: of("placed"),
        evicted: of("evicted"),
        cpu_share: of("cpu_share"),
        memory_share: of("memory_share"),
        cumulative_bytes: Vec::new(),
        ci95: own.iter().map(|(name, samples)| (*name, ci95(samples))).collect(),
        ratio_to_kube: compared.map(ratios),
    }
}
