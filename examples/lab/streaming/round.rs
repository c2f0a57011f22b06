//! One round: all jobs posted, settled, measured over the same window, and stopped.

use super::report::JobRow;
use crate::api::{Submitted, wait_for};
use crate::document::Document;
use crate::ground::Ground;
use crate::throughput::{self, WARM_UP};
use anyhow::Result;
use edgeloom_common::view::{JobState, JobView};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long images may take to arrive and jobs to start.
const START_LIMIT: Duration = Duration::from_secs(180);
/// For so long no plan may change before the jobs count as settled.
const STILL: Duration = Duration::from_secs(6);
/// A window in which a plan changed is measured again, so often at most.
const WINDOWS_MAX: usize = 3;

type Views = BTreeMap<String, JobView>;

/// Plays the round and leaves nothing behind.
pub(super) fn play(ground: &Ground, documents: &[Document], window: Duration) -> Result<Vec<JobRow>> {
    let mut refused = BTreeMap::new();
    for document in documents {
        match ground.api.submit(&document.text)? {
            Submitted::Accepted(view) => println!("  {}: {:?}", view.name, view.state),
            Submitted::Refused(why) => {
                println!("  {}: refused, {why}", document.name);
                refused.insert(document.name.clone(), why);
            }
        }
    }
    let measured = settle(ground, documents).and_then(|()| measure(ground, documents, window));
    for document in documents.iter().filter(|document| !refused.contains_key(&document.name)) {
        ground.api.stop(&document.name)?;
    }
    let (views, rates) = measured?;
    Ok(documents.iter().map(|document| row(document, &views, &rates)).collect())
}

fn views(ground: &Ground, documents: &[Document]) -> Result<Views> {
    let mut views = Views::new();
    for document in documents {
        views.extend(ground.api.job(&document.name)?.map(|view| (document.name.clone(), view)));
    }
    Ok(views)
}

/// Waits until every job runs or waits for room, and no plan has changed for a while.
fn settle(ground: &Ground, documents: &[Document]) -> Result<()> {
    let begun = Instant::now();
    let (mut last, mut since, mut told) = (Views::new(), Instant::now(), usize::MAX);
    wait_for("every job to run or wait, and plans to stay", START_LIMIT, || {
        let now = views(ground, documents)?;
        if !same_plans(&now, &last) {
            since = Instant::now();
        }
        let underway = now.values().filter(|view| !is_settled(view.state)).count();
        if underway != told {
            let seconds = begun.elapsed().as_secs_f64();
            println!("  {seconds:4.1} s: {} jobs known, {underway} of them on their way", now.len());
            told = underway;
        }
        last = now;
        Ok(underway == 0 && since.elapsed() >= STILL)
    })?;
    ground.await_converged("with the jobs at work", START_LIMIT)
}

fn is_settled(state: JobState) -> bool {
    matches!(state, JobState::Running | JobState::Waiting | JobState::Failed)
}

/// Whether each job is still in its state, where it was, and expected to reach what it was.
fn same_plans(now: &Views, before: &Views) -> bool {
    let plan = |view: &JobView| {
        let nodes: Vec<_> = view.tasks.iter().map(|task| (task.name.clone(), task.node.clone())).collect();
        let flows: Vec<_> =
            view.flows.iter().map(|flow| (flow.key, flow.path.clone(), flow.rate_given_bps)).collect();
        (view.state, view.prediction.clone(), nodes, flows)
    };
    now.len() == before.len()
        && now.iter().all(|(name, view)| before.get(name).is_some_and(|old| plan(old) == plan(view)))
}

/// The jobs as they were, and items a second of those that ran.
fn measure(
    ground: &Ground,
    documents: &[Document],
    window: Duration,
) -> Result<(Views, BTreeMap<String, f64>)> {
    std::thread::sleep(WARM_UP);
    let mut tries = 0;
    loop {
        let before = views(ground, documents)?;
        let runs = |document: &&Document| {
            before.get(&document.name).is_some_and(|view| view.state == JobState::Running)
        };
        let running: Vec<&Document> = documents.iter().filter(runs).collect();
        println!("  measuring {} running jobs for {} s", running.len(), window.as_secs());
        let rates = throughput::measure(&ground.engines, &running, window);
        tries += 1;
        let after = views(ground, documents)?;
        if tries == WINDOWS_MAX || (same_plans(&before, &after) && rates.is_ok()) {
            let names = running.iter().map(|document| document.name.clone());
            return Ok((after, names.zip(rates?).collect()));
        }
        println!("  a plan changed meanwhile: once more");
    }
}

fn row(document: &Document, views: &Views, rates: &BTreeMap<String, f64>) -> JobRow {
    let view = views.get(&document.name);
    let prediction = view.and_then(|view| view.prediction.as_ref());
    JobRow {
        name: document.name.clone(),
        state: view.map_or("refused".to_owned(), |view| format!("{:?}", view.state).to_lowercase()),
        bound: prediction.map(|found| format!("{:?}", found.bound).to_lowercase()).unwrap_or_default(),
        bound_by: prediction.map(|found| found.bound_by.clone()).unwrap_or_default(),
        items_per_s_predicted: prediction.map_or(0.0, |found| found.items_per_s_predicted),
        items_per_s_measured: rates.get(&document.name).copied().unwrap_or(0.0),
    }
}
