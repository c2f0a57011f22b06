//! What a job's class of resources comes to on these nodes: the interval of cores of its tasks.
//!
//! "SLA classes" (section 5.3): with N the cores of the smallest machine, best effort gets 1 to N/3 cores,
//! advanced from there to 2N/3, premium from there to N. Where the smallest machine has fewer than three
//! cores the intervals would be empty: there they are in thousandths, and N is over the nodes of the job's
//! reputation.

use edgeloom_common::job::{Service, Sla, reputation};

use crate::snapshot::Node;

/// Thousandths of a whole core.
const CORE: i64 = 1000;

/// Cores of a container, in thousandths, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) least: i64,
    pub(crate) most: i64,
    /// What numbers of cores are multiples of.
    pub(crate) unit: i64,
}

impl Interval {
    /// Of a job of these classes; one without a class of resources counts as best effort.
    pub(crate) fn of(nodes: &[&Node], sla: &Sla) -> Self {
        let smallest = |suits: &dyn Fn(&Node) -> bool| {
            let sizes = nodes.iter().filter(|node| node.cpu.0 > 0 && suits(node));
            sizes.map(|node| i64::from(node.cpu.0)).min().unwrap_or(0)
        };
        let everywhere = smallest(&|_| true);
        let (n, unit) = if everywhere >= 3 * CORE {
            (everywhere / CORE, CORE)
        } else {
            (smallest(&|node| suits(node, sla.reputation)), 1)
        };
        let (below, most) = match sla.resources {
            Some(Service::Premium) => (2 * n / 3, n),
            Some(Service::Advanced) => (n / 3, 2 * n / 3),
            Some(Service::BestEffort) | None => (0, n / 3),
        };
        let least = (below + 1) * unit;
        Self { least, most: (most * unit).max(least), unit }
    }

    /// So many thousandths rounded down to the unit, and into the interval.
    pub(crate) fn clip(&self, cpu: i64) -> i64 {
        (cpu / self.unit * self.unit).clamp(self.least, self.most)
    }
}

/// Whether a node is of that reputation; any is where none is asked for.
pub(crate) fn suits(node: &Node, asked: Option<Service>) -> bool {
    asked.is_none_or(|service| reputation(&node.labels) == service)
}
