//! What each profile fetched and how it filled the nodes: the paper's Table I, a line a container and the sums of
//! each profile, and the series of its figures.

use super::beside::BesideRow;
use super::cell::Cell;
use super::empty::Held;
use super::load::Load;
use super::means::{self, MeanRow};
use super::pull::Pull;
use crate::checks::{self, Checks, print_table};
use edgeloom_common::units::Bytes;
use serde::Serialize;

/// The profile that the others are measured by: the paper's default scheduler.
pub(super) const REFERENCE: &str = "kube";

/// A container under a profile.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct ContainerRow {
    pub(super) number: usize,
    pub(super) image: String,
    pub(super) cpu_millicores: u32,
    pub(super) memory_bytes: u64,
    pub(super) placed: bool,
    /// Why it was not.
    pub(super) detail: String,
    #[serde(flatten)]
    pub(super) pull: Pull,
    #[serde(flatten)]
    pub(super) load: Load,
    /// On all nodes' disks since the first container.
    pub(super) disk_bytes: u64,
    /// From the registry since the first container.
    pub(super) cumulative_bytes: u64,
}

impl ContainerRow {
    /// Its name without the registry.
    fn short_image(&self) -> &str {
        self.image.split_once('/').map_or(self.image.as_str(), |(_, name)| name)
    }

    pub(super) fn print(&self) {
        let Pull { node, bytes_predicted, bytes_fetched, seconds, .. } = &self.pull;
        let (number, image) = (self.number, self.short_image());
        if self.placed {
            let [predicted, fetched] = [bytes_predicted, bytes_fetched].map(|bytes| Bytes(*bytes));
            println!("  {number:3} {image} on {node}: {fetched} of {predicted} predicted, {seconds:.2} s");
        } else {
            println!("  {number:3} {image}: not placed, {}", self.detail);
        }
    }
}

/// All containers under a profile, on one lab.
#[derive(Debug, Clone, Serialize)]
pub(super) struct SeriesRow {
    pub(super) profile: String,
    #[serde(flatten)]
    pub(super) cell: Cell,
    /// The seed that its requests were drawn by.
    pub(super) order: u64,
    pub(super) placed: usize,
    /// From the registry.
    pub(super) bytes_fetched: u64,
    pub(super) bytes_predicted: u64,
    /// Of the layers that were asked for, each once: no placement fetches less.
    pub(super) bytes_least: u64,
    /// Over those of the reference; none without it.
    pub(super) bytes_ratio: Option<f64>,
    /// From acceptance to running, of all.
    pub(super) seconds: f64,
    /// Of them, pulls.
    pub(super) pull_s: f64,
    /// Means over containers placed.
    pub(super) std: f64,
    pub(super) std_nodes: f64,
    /// At the end.
    pub(super) cpu_share: f64,
    pub(super) memory_share: f64,
    pub(super) disk_bytes: u64,
    pub(super) containers: Vec<ContainerRow>,
}

/// Of what is there; 0 of nothing.
#[expect(clippy::cast_precision_loss, reason = "containers are few")]
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| (sum + value, count + 1));
    sum / count.max(1) as f64
}

impl SeriesRow {
    pub(super) fn new(cell: &Cell, profile: &str, containers: Vec<ContainerRow>) -> Self {
        let placed = || containers.iter().filter(|row| row.placed);
        let last = containers.last().cloned().unwrap_or_default();
        Self {
            profile: profile.to_owned(),
            cell: *cell,
            order: 0,
            placed: placed().count(),
            bytes_fetched: last.cumulative_bytes,
            bytes_predicted: placed().map(|row| row.pull.bytes_predicted).sum(),
            bytes_least: 0,
            bytes_ratio: None,
            seconds: placed().map(|row| row.pull.seconds).sum(),
            pull_s: placed().filter_map(|row| row.pull.pull_s_measured).sum(),
            std: mean(placed().map(|row| row.load.std)),
            std_nodes: mean(placed().map(|row| row.load.std_nodes)),
            cpu_share: last.load.cpu_share,
            memory_share: last.load.memory_share,
            disk_bytes: last.disk_bytes,
            containers,
        }
    }

    /// An image of each node that got any.
    pub(super) fn held(&self) -> Held {
        let placed = self.containers.iter().filter(|row| row.placed);
        placed.map(|row| (row.pull.node.clone(), row.image.clone())).collect()
    }

    /// The same requests on the same lab.
    pub(super) fn same_order(&self, other: &Self) -> bool {
        (self.cell, self.order) == (other.cell, other.order)
    }
}

/// A pull that the set of layers on a node does not tell.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ScenarioRow {
    pub(super) scenario: &'static str,
    pub(super) image: String,
    /// By what the images are made of.
    pub(super) bytes_expected: u64,
    pub(super) bytes_predicted: u64,
    pub(super) bytes_fetched: u64,
}

impl ScenarioRow {
    pub(super) fn print(&self) {
        let [predicted, fetched] = [self.bytes_predicted, self.bytes_fetched].map(Bytes);
        println!("  {}: {fetched} of {predicted} predicted", self.scenario);
    }
}

/// The whole experiment.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    pub(super) verdict: Checks,
    pub(super) rows: Vec<SeriesRow>,
    /// Of the rows, over orders.
    pub(super) means: Vec<MeanRow>,
    pub(super) scenarios: Vec<ScenarioRow>,
    /// One, where it is played.
    pub(super) beside: Vec<BesideRow>,
}

impl checks::Report for Report {
    fn checks(&mut self) -> &mut Checks {
        &mut self.verdict
    }
}

impl Report {
    /// Bytes of each row over those of the reference with the same requests, and means over orders.
    pub(super) fn sum_up(&mut self) {
        let all = self.rows.clone();
        for row in &mut self.rows {
            let reference = all.iter().find(|other| other.profile == REFERENCE && other.same_order(row));
            #[expect(clippy::cast_precision_loss, reason = "megabytes")]
            let ratio =
                |reference: &SeriesRow| row.bytes_fetched as f64 / reference.bytes_fetched.max(1) as f64;
            row.bytes_ratio = reference.map(ratio);
        }
        self.means = self.rows.chunk_by(|one, next| one.cell == next.cell).flat_map(means::of_cell).collect();
    }

    /// Per lab, one a profile.
    pub(super) fn means(&self) -> impl Iterator<Item = &[MeanRow]> {
        self.means.chunk_by(|one, next| one.cell == next.cell)
    }

    /// Per lab and order: bytes, seconds and STD of each container under each profile, and one line a profile. Then
    /// the orders' means.
    pub(super) fn print(&self) {
        for order in self.rows.chunk_by(SeriesRow::same_order) {
            let SeriesRow { cell, order: number, .. } = &order[0];
            println!("\n{cell}, order {number}: MB, seconds and STD of each container");
            print_containers(order);
            println!();
            print_sums(order);
            println!("  every layer once: {} MB", megabytes(order[0].bytes_least));
        }
        for means in self.means() {
            println!("\n{}: means of {} orders", means[0].cell, means[0].orders);
            means::print(means);
        }
        println!();
    }
}

pub(super) fn megabytes(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
    let megabytes = bytes as f64 / 1e6;
    format!("{megabytes:.2}")
}

fn print_containers(cell: &[SeriesRow]) {
    let longest = cell.iter().map(|row| row.containers.len()).max().unwrap_or(0);
    let line = |at: usize| {
        let image = cell.iter().find_map(|row| row.containers.get(at)).map(ContainerRow::short_image);
        let figures = |row: &SeriesRow| match row.containers.get(at) {
            Some(row) if row.placed => {
                let bytes = megabytes(row.pull.uplink_bytes());
                format!("{bytes} {:.2} {:.3}", row.pull.seconds, row.load.std)
            }
            _ => "-".to_owned(),
        };
        let name = vec![(at + 1).to_string(), image.unwrap_or_default().to_owned()];
        name.into_iter().chain(cell.iter().map(figures)).collect()
    };
    let lines: Vec<Vec<String>> = (0..longest).map(line).collect();
    let names = cell.iter().map(|row| row.profile.as_str());
    print_table(&["", "image"].into_iter().chain(names).collect::<Vec<_>>(), &lines);
}

fn print_sums(cell: &[SeriesRow]) {
    let line = |row: &SeriesRow| {
        let percent = |share: f64| format!("{:.0}%", share * 100.0);
        let ratio = row.bytes_ratio.map_or("-".to_owned(), |ratio| percent(ratio - 1.0));
        vec![
            row.profile.clone(),
            row.placed.to_string(),
            megabytes(row.bytes_fetched),
            ratio,
            format!("{:.1}", row.seconds),
            format!("{:.1}", row.pull_s),
            format!("{:.3}", row.std),
            format!("{:.3}", row.std_nodes),
            percent(row.cpu_share),
            percent(row.memory_share),
            megabytes(row.disk_bytes),
        ]
    };
    let header = [
        "profile",
        "placed",
        "MB",
        "to kube",
        "seconds",
        "of pulls",
        "STD",
        "of nodes",
        "CPU",
        "memory",
        "MB on disks",
    ];
    print_table(&header, &cell.iter().map(line).collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::units::BitRate;

    fn row(profile: &str, nodes: u8, bytes: u64) -> SeriesRow {
        let placed = ContainerRow { placed: true, cumulative_bytes: bytes, ..ContainerRow::default() };
        SeriesRow::new(&Cell { nodes, uplink: BitRate(1_000_000) }, profile, vec![placed])
    }

    #[test]
    fn ratios_are_to_the_reference_of_the_same_lab() {
        let rows = vec![row("kube", 3, 100), row("lrs", 3, 60), row("lrs", 4, 60)];
        let mut report = Report { rows, ..Report::default() };
        report.sum_up();
        let ratios: Vec<_> = report.rows.iter().map(|row| row.bytes_ratio).collect();
        assert_eq!(ratios, [Some(1.0), Some(0.6), None]);
    }
}
