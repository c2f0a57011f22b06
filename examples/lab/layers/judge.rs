//! The bounds: predictions against what was fetched, and the default profile against the others.

use super::NEIGHBOURS;
use super::means::{self, MeanRow};
use super::pull::Pull;
use super::report::Report;
use crate::checks::Checks;
use serde_json::Value;

/// Of the pulls.
const PREDICTED_MIN: f64 = 0.99;
/// Of the pull time, in the median.
const SECONDS_MISS_MAX: f64 = 0.10;
/// Of the reference's bytes, with neighbours; the mean over orders. What each layer once comes to is told beside it:
/// with few containers on few nodes it is above this.
const NEIGHBOURS_RATIO_MAX: f64 = 0.4;

/// Records all checks that the rows allow.
pub(super) fn judge(report: &mut Report) {
    predictions(report);
    for means in report.means.chunk_by(|one, next| one.cell == next.cell) {
        compare(&mut report.verdict, means);
    }
}

/// Pulls without the layer store, which takes from neighbours what is foretold of the registry, and those of
/// the scenarios.
#[expect(clippy::cast_precision_loss, reason = "pulls are few")]
fn predictions(report: &mut Report) {
    let plain = report.rows.iter().filter(|row| !row.profile.ends_with(NEIGHBOURS));
    let containers = plain.flat_map(|row| &row.containers).filter(|row| row.placed);
    let pulls: Vec<&Pull> = containers.map(|row| &row.pull).filter(|pull| pull.counts()).collect();
    let scenarios = &report.scenarios;
    for row in scenarios {
        let right = row.bytes_predicted == row.bytes_expected && row.bytes_fetched == row.bytes_expected;
        let told = format!("{} predicted, {} fetched", row.bytes_predicted, row.bytes_fetched);
        report.verdict.check(&format!("bytes: {}", row.scenario), right, told, row.bytes_expected);
    }
    let exact = pulls.iter().filter(|pull| pull.bytes_predicted == pull.uplink_bytes()).count();
    let exact = exact + scenarios.iter().filter(|row| row.bytes_predicted == row.bytes_fetched).count();
    let count = pulls.len() + scenarios.len();
    if count > 0 {
        let share = exact as f64 / count as f64;
        report.verdict.check(
            "share of pulls that fetch what was predicted",
            share >= PREDICTED_MIN,
            share,
            PREDICTED_MIN,
        );
    }
    if !pulls.is_empty() {
        let miss = median(pulls.iter().copied().filter_map(miss).collect());
        let held = miss.is_some_and(|miss| miss <= SECONDS_MISS_MAX);
        let told = miss.map_or(Value::from("no pull time was predicted"), Value::from);
        report.verdict.check("median miss of the predicted pull time", held, told, SECONDS_MISS_MAX);
    }
}

/// How far the predicted time of a pull is from the measured one.
fn miss(pull: &Pull) -> Option<f64> {
    let (predicted, measured) = pull.pull_s_predicted.zip(pull.pull_s_measured)?;
    (pull.bytes_fetched > 0).then(|| (predicted - measured).abs() / measured)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn compare(verdict: &mut Checks, means: &[MeanRow]) {
    let row = |profile: &str| means.iter().find(|row| row.profile == profile);
    if let Some((ours, layer)) = row("edgeloom").zip(row("layer")) {
        let (name, bytes) = (format!("{}: bytes of edgeloom against layer", ours.cell), ours.bytes_fetched);
        verdict.check(&name, bytes <= layer.bytes_fetched, bytes, layer.bytes_fetched);
    }
    if let Some((ours, lrs)) = row("edgeloom").zip(row("lrs")) {
        let name = format!("{}: STD of edgeloom against lrs", ours.cell);
        verdict.check(&name, ours.std <= lrs.std, ours.std, lrs.std);
    }
    let with = means.iter().filter(|row| row.profile.ends_with(NEIGHBOURS));
    for (row, ratio) in with.filter_map(|row| Some((row, row.bytes_ratio.as_ref()?))) {
        let name = format!("{}: bytes of {} over those of kube", row.cell, row.profile);
        verdict.check(&name, ratio.mean <= NEIGHBOURS_RATIO_MAX, ratio.mean, NEIGHBOURS_RATIO_MAX);
        if let Some(least) = &row.least_ratio {
            println!("       {} if every layer came once", means::told(least));
        }
    }
    if let Some(ours) = row("edgeloom") {
        let most = means.iter().map(|row| row.placed).max().unwrap_or(0);
        let name = format!("{}: containers placed by edgeloom", ours.cell);
        verdict.check(&name, ours.placed == most, ours.placed, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_of_pulls_with_both_times() {
        let pull = |predicted, measured| Pull {
            pull_s_predicted: predicted,
            pull_s_measured: measured,
            bytes_fetched: 1,
            ..Pull::default()
        };
        let pulls = [pull(Some(1.1), Some(1.0)), pull(Some(1.0), Some(2.0)), pull(Some(3.0), None)];
        let found = median(pulls.iter().filter_map(miss).collect()).unwrap();
        assert!((found - 0.5).abs() < 1e-12);
        assert_eq!(median(Vec::new()), None);
    }
}
