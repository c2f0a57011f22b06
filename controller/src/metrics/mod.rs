//! The cluster's figures as Prometheus reads them.
//!
//! In: [`Figures`]. Out: text. Labels are nodes, registries and words of ours, never jobs, images or users: what
//! users name does not add series.

#[cfg(test)]
pub(crate) mod read;
mod text;

use edgeloom_cluster::{Figures, NodeFigures};
use edgeloom_common::images::ImageState;
use edgeloom_common::view::{JobState, NodeState};
use text::{Kind, Text};

/// What the text is.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All of it.
pub(crate) fn text(figures: &Figures) -> String {
    let mut text = Text::default();
    let version = env!("CARGO_PKG_VERSION");
    text.family("edgeloom_build_info", Kind::Gauge, "The controller's version.")
        .sample(&[("version", version)], 1);
    nodes(&mut text, figures);
    pulls(&mut text, figures);
    jobs(&mut text, figures);
    registries(&mut text, figures);
    text.finish()
}

/// A family with one sample a node, where it has the figure.
fn each<T: std::fmt::Display>(
    text: &mut Text,
    (name, kind, help): (&'static str, Kind, &str),
    (figures, figure): (&Figures, impl Fn(&NodeFigures) -> Option<T>),
) {
    let mut family = text.family(name, kind, help);
    for (node, its) in &figures.nodes {
        if let Some(value) = figure(its) {
            family.sample(&[("node", node.as_str())], value);
        }
    }
}

fn nodes(text: &mut Text, figures: &Figures) {
    let mut family = text.family("edgeloom_nodes", Kind::Gauge, "Nodes by state.");
    for state in NodeState::ALL {
        let count = figures.nodes.values().filter(|node| node.state == state).count();
        family.sample(&[("state", state.word())], count);
    }
    let cordoned = figures.nodes.values().filter(|node| node.is_cordoned).count();
    let help = "Nodes that take nothing new, whatever their state.";
    text.family("edgeloom_nodes_cordoned", Kind::Gauge, help).sample(&[], cordoned);
    let family = ("edgeloom_node_disk_used_bytes", Kind::Gauge, "Used of the disk that holds images.");
    each(text, family, (figures, |node| Some(node.disk_used_bytes)));
    let family = ("edgeloom_node_disk_bytes", Kind::Gauge, "Size of the disk that holds images.");
    each(text, family, (figures, |node| Some(node.disk_capacity_bytes)));
    let help = "Payload that pulls get over the line to the registries, as learnt from them.";
    let family = ("edgeloom_node_goodput_bytes_per_second", Kind::Gauge, help);
    each(text, family, (figures, |node| node.goodput_bps.map(|bits| bits / 8)));
}

fn pulls(text: &mut Text, figures: &Figures) {
    let family = ("edgeloom_pulls_total", Kind::Counter, "Pulls that ended well.");
    each(text, family, (figures, |node| Some(node.pulled.finished)));
    let help = "Of them those whose bytes were predicted, since tasks waited for them.";
    let family = ("edgeloom_pulls_predicted_total", Kind::Counter, help);
    each(text, family, (figures, |node| Some(node.pulled.predicted)));
    let help = "Of the predicted ones those that fetched the predicted bytes to the byte.";
    let family = ("edgeloom_pulls_exact_total", Kind::Counter, help);
    each(text, family, (figures, |node| Some(node.pulled.exact)));
    let help = "Bytes of layers predicted, over the predicted pulls.";
    let family = ("edgeloom_pulls_predicted_bytes_total", Kind::Counter, help);
    each(text, family, (figures, |node| Some(node.pulled.bytes_predicted)));
    let help = "Bytes of layers fetched, over the predicted pulls.";
    let family = ("edgeloom_pulls_fetched_bytes_total", Kind::Counter, help);
    each(text, family, (figures, |node| Some(node.pulled.bytes_fetched)));
    let family = ("edgeloom_pulls_failing", Kind::Gauge, "Pulls that failed last time and are tried again.");
    each(text, family, (figures, |node| Some(node.pulls_failing)));
    let help = "How far the predicted seconds of a pull were off, as a part of those taken.";
    let mut family = text.family("edgeloom_pull_seconds_error_ratio", Kind::Histogram, help);
    for (node, its) in &figures.nodes {
        family.histogram(&[("node", node.as_str())], &its.pulled.seconds_error);
    }
}

fn jobs(text: &mut Text, figures: &Figures) {
    let mut family = text.family("edgeloom_jobs", Kind::Gauge, "Jobs by state.");
    // A planned job is an answer to a dry run, and nowhere.
    let states = JobState::ALL.into_iter().zip(figures.jobs);
    for (state, count) in states.filter(|(state, _)| *state != JobState::Planned) {
        family.sample(&[("state", state.word())], count);
    }
    let help = "Seconds that the scheduler took for a decision, dry runs among them.";
    text.family("edgeloom_decision_seconds", Kind::Histogram, help).histogram(&[], &figures.decisions);
    let mut family = text.family("edgeloom_events_total", Kind::Counter, "Events by kind.");
    for (kind, count) in &figures.events {
        family.sample(&[("kind", kind)], count);
    }
}

fn registries(text: &mut Text, figures: &Figures) {
    let help = "Requests to a registry, token services apart.";
    let mut family = text.family("edgeloom_registry_requests_total", Kind::Counter, help);
    for (registry, count) in &figures.asked {
        for (method, count) in [("HEAD", count.heads), ("GET", count.gets)] {
            family.sample(&[("registry", registry), ("method", method)], count);
        }
    }
    let help = "Questions to a registry that it did not answer, or refused.";
    let mut family = text.family("edgeloom_registry_errors_total", Kind::Counter, help);
    for (registry, count) in &figures.asked {
        family.sample(&[("registry", registry)], count.errors);
    }
    let help = "1 while a watched registry answers, 0 while it is out of reach.";
    let mut family = text.family("edgeloom_registry_up", Kind::Gauge, help);
    for tally in &figures.registries {
        family.sample(&[("registry", tally.registry.as_str())], u8::from(!tally.away));
    }
    let mut family = text.family("edgeloom_registry_images", Kind::Gauge, "Watched images by state.");
    for tally in &figures.registries {
        for (state, count) in ImageState::ALL.into_iter().zip(tally.images) {
            family.sample(&[("registry", tally.registry.as_str()), ("state", state.word())], count);
        }
    }
}
