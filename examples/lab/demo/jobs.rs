//! Jobs on the stage: post and follow them, time their start, measure their throughput and flows.

use super::kernel::{parse_classes, parse_flow_classes};
use super::report::{FlowRow, JobRow, TaskRow};
use super::stage::Stage;
use crate::checks::print_table;
use crate::document::Document;
use anyhow::{Context, Result};
use edgeloom_common::desired::FlowKey;
use edgeloom_common::units::{BitRate, Bytes};
use edgeloom_common::view::{Bound, FlowView, JobView};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Starts an example and shows progress with the bytes that came from the registry.
pub(crate) fn start(stage: &Stage, file: &str) -> Result<(JobView, Duration)> {
    stage.ground.start(&Document::example(file)?, |progress| {
        let fetched = Bytes(stage.fetched_in_all().unwrap_or(0));
        println!("  {progress}, {fetched} fetched from the registry so far");
    })
}

/// Items a second that the tasks without outputs finish, counted by the application over `window`.
pub(crate) fn throughput(stage: &Stage, view: &JobView, window: Duration) -> Result<JobRow> {
    let document = Document::example(&format!("{}.yaml", view.name))?;
    let prediction = view.prediction.as_ref().context("the job has no prediction")?;
    Ok(JobRow {
        bound: if prediction.bound == Bound::Network { "network" } else { "compute" }.to_owned(),
        items_per_s_predicted: prediction.items_per_s_predicted,
        items_per_s_measured: stage.ground.throughput(&document, window)?,
        name: document.name,
    })
}

/// Counts every flow of the job for `window` where frames leave the links' own namespaces, and how often
/// its class had a backlog.
pub(crate) fn flows(stage: &Stage, view: &JobView, window: Duration) -> Result<Vec<FlowRow>> {
    let before = stage.meter.snapshot();
    let begun = Instant::now();
    let mut backlogged: BTreeMap<FlowKey, u32> = BTreeMap::new();
    let mut samples = 0_u32;
    while begun.elapsed() < window {
        for flow in &view.flows {
            if let Some(key) = flow.key.filter(|key| backlog(stage, flow, key).is_ok_and(|bytes| bytes > 0)) {
                *backlogged.entry(key).or_default() += 1;
            }
        }
        samples += 1;
        std::thread::sleep(Duration::from_millis(500));
    }
    let counted = stage.meter.snapshot().since(&before);
    let seconds = begun.elapsed().as_secs_f64();
    view.flows
        .iter()
        .map(|flow| {
            let key = flow.key.context("a running flow has a key")?;
            let links = counted.links_of(&key);
            let busy = backlogged.get(&key).copied().unwrap_or(0);
            Ok(flow_row(view, flow, &links, Sampled { seconds, busy, samples }))
        })
        .collect()
}

/// What the window gave besides the meters' counts.
#[derive(Debug, Clone, Copy)]
struct Sampled {
    seconds: f64,
    /// Samples in which the class had a backlog.
    busy: u32,
    samples: u32,
}

fn flow_row(view: &JobView, flow: &FlowView, links: &[((String, String), u64)], sampled: Sampled) -> FlowRow {
    let path: Vec<String> = flow.path.iter().map(ToString::to_string).collect();
    let observed = observed_path(&path[0], links);
    let last_hop = observed.len().checked_sub(2).map(|i| (observed[i].clone(), observed[i + 1].clone()));
    let bytes = links.iter().find(|(link, _)| Some(link) == last_hop.as_ref()).map_or(0, |(_, bytes)| *bytes);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate below 2^52 bit/s"
    )]
    let rate_measured_bps = (bytes as f64 * 8.0 / sampled.seconds) as u64;
    FlowRow {
        job: view.name.to_string(),
        from: flow.from.to_string(),
        to: flow.to.to_string(),
        path_observed: observed,
        path,
        rate_given_bps: flow.rate_given_bps,
        rate_measured_bps,
        // A queue that stands in four samples of five: the flow wants more than it is given.
        saturated: sampled.samples > 0 && sampled.busy * 5 >= sampled.samples * 4,
    }
}

/// Follows the busiest link from each node on, from the flow's first node.
pub(crate) fn observed_path(first: &str, links: &[((String, String), u64)]) -> Vec<String> {
    let floor = links.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0) / 2;
    let mut path = vec![first.to_owned()];
    while let Some(((_, next), _)) = links
        .iter()
        .filter(|((from, to), bytes)| *bytes > floor && Some(from) == path.last() && !path.contains(to))
        .max_by_key(|(_, bytes)| *bytes)
    {
        path.push(next.clone());
    }
    path
}

/// Bytes that wait in the flow's class at its first node.
fn backlog(stage: &Stage, flow: &FlowView, key: &FlowKey) -> Result<u64> {
    let first = flow.path[0].as_str();
    let listing = stage.ground.exec(first, &["nft", "-j", "list", "map", "ip", "edgeloom", "flow_class"])?;
    let classes = parse_flow_classes(&listing)?;
    let class = classes.get(key).context("the flow has no class")?;
    let interface = format!("to-{}", flow.path[1]);
    let counts = parse_classes(&stage.ground.exec(first, &["tc", "-s", "class", "show", "dev", &interface])?);
    Ok(counts.get(class).map_or(0, |count| count.backlog))
}

/// Rows for the report: predicted bytes from the controller, fetched bytes from the registry's log.
pub(crate) fn task_rows(stage: &Stage, view: &JobView) -> Result<Vec<TaskRow>> {
    let mut fetched = stage.fetched_by_node_and_image()?;
    let rows = view.tasks.iter().map(|task| TaskRow {
        job: view.name.to_string(),
        name: task.name.to_string(),
        node: task.node.to_string(),
        container: task.container.clone(),
        bytes_predicted: task.bytes_predicted,
        // An image that several tasks of a node share is fetched once: counted where it was predicted.
        bytes_fetched: match task.bytes_predicted {
            0 => 0,
            _ => fetched.remove(&(task.node.to_string(), repository(&task.image))).unwrap_or(0),
        },
    });
    let mut rows: Vec<TaskRow> = rows.collect();
    // What nobody predicted must still show: it goes to the first task of that node and image.
    for ((node, image), bytes) in fetched {
        let unpredicted = view
            .tasks
            .iter()
            .zip(&mut rows)
            .find(|(task, row)| row.node == node && repository(&task.image) == image);
        if let Some((_, row)) = unpredicted {
            row.bytes_fetched += bytes;
        }
    }
    Ok(rows)
}

/// `10.60.0.1:5000/vision/detect:1.0` -> `vision/detect`.
fn repository(image: &str) -> String {
    let path = image.split_once('/').map_or(image, |(_, path)| path);
    path.split(['@', ':']).next().unwrap_or(path).to_owned()
}

/// Prints the tasks as people read them.
pub(crate) fn print_tasks(rows: &[TaskRow]) {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let container = row.container.chars().take(12).collect();
            let bytes = [row.bytes_predicted, row.bytes_fetched].map(|bytes| Bytes(bytes).to_string());
            [vec![row.name.clone(), row.node.clone(), container], bytes.to_vec()].concat()
        })
        .collect();
    print_table(&["task", "node", "container", "predicted", "fetched"], &cells);
}

/// Prints the flows as people read them.
pub(crate) fn print_flows(rows: &[FlowRow]) {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                format!("{} -> {}", row.from, row.to),
                row.path.join(" "),
                row.path_observed.join(" "),
                BitRate(row.rate_given_bps).to_string(),
                BitRate(row.rate_measured_bps).to_string(),
                if row.saturated { "saturated" } else { "" }.to_owned(),
            ]
        })
        .collect();
    print_table(&["flow", "path decided", "path observed", "given", "measured", ""], &cells);
}

/// Prints a job's throughput, predicted beside measured.
pub(crate) fn print_throughput(row: &JobRow) {
    println!(
        "  {}: {:.2} items/s predicted ({}-bound), {:.2} measured",
        row.name, row.items_per_s_predicted, row.bound, row.items_per_s_measured
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_observed_path_follows_the_bytes() {
        let link = |a: &str, b: &str, bytes| ((a.to_owned(), b.to_owned()), bytes);
        let links = [link("n1", "n3", 900), link("n3", "n4", 890), link("n1", "n2", 3), link("n4", "n3", 40)];
        assert_eq!(observed_path("n1", &links), ["n1", "n3", "n4"]);
        assert_eq!(observed_path("n1", &[]), ["n1"]);
    }

    #[test]
    fn an_image_name_gives_its_repository() {
        assert_eq!(repository("10.60.0.1:5000/vision/detect:1.0"), "vision/detect");
        assert_eq!(repository("10.60.0.1:5000/vision/detect@sha256:00"), "vision/detect");
    }
}
