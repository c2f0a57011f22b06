//! Which nodes may take a task, and why the others may not.
//!
//! In: a node, what is free on it, a task. Out: nothing, or the first reason against the node, object
//! first, then wanted and found. The order of the questions is fixed: ready, constraints, taints, speed, CPU,
//! memory, storage; then what `rules` has of other tasks.

mod rules;

pub(crate) use rules::{Resident, Rules, looks_at, place, selects};

use edgeloom_common::job::{Attribute, Constraint, Effect, Resources, Taint};
use edgeloom_common::units::{Bytes, MilliCores};
use std::ops::{AddAssign, SubAssign};

use crate::cordon::is_cordon;
use crate::job_graph::Vertex;
use crate::snapshot::{Node, PLATFORM};

/// Resources as signed numbers: a node whose capacity shrank may have less than nothing free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Amount {
    /// Thousandths of a core.
    pub(crate) cpu: i64,
    pub(crate) memory: i64,
    pub(crate) storage: i64,
}

impl From<&Resources> for Amount {
    fn from(resources: &Resources) -> Self {
        Self {
            cpu: i64::from(resources.cpu.0),
            memory: signed(resources.memory),
            storage: signed(resources.storage),
        }
    }
}

impl From<&Node> for Amount {
    fn from(node: &Node) -> Self {
        Self { cpu: i64::from(node.cpu.0), memory: signed(node.memory), storage: signed(node.disk) }
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.memory = self.memory.saturating_add(other.memory);
        self.storage = self.storage.saturating_add(other.storage);
    }
}

impl SubAssign for Amount {
    fn sub_assign(&mut self, other: Self) {
        self.cpu = self.cpu.saturating_sub(other.cpu);
        self.memory = self.memory.saturating_sub(other.memory);
        self.storage = self.storage.saturating_sub(other.storage);
    }
}

fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.0).unwrap_or(i64::MAX)
}

/// When a request counts as fitting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Free is at least the request.
    AtLeast,
    /// The paper's test: free is more than the request.
    Strict,
}

impl Fit {
    fn holds(self, free: i64, wanted: i64) -> bool {
        match self {
            Self::AtLeast => wanted == 0 || free >= wanted,
            Self::Strict => wanted == 0 || free > wanted,
        }
    }
}

/// The first reason against a node, or none.
pub(crate) fn refusal(
    (index, node): (usize, &Node),
    free: &Amount,
    vertex: &Vertex<'_>,
    fit: Fit,
) -> Option<String> {
    if !node.ready {
        return Some("node is not ready".to_owned());
    }
    let broken = vertex.constraints.iter().find(|constraint| !constraint.holds(&node.id, &node.labels));
    if let Some(constraint) = broken {
        return Some(unmet(constraint));
    }
    if let Some(taint) = untolerated(node, vertex) {
        if is_cordon(taint) {
            return Some("it is cordoned or drained and takes nothing new".to_owned());
        }
        return Some(format!("taint {} is not tolerated", tainted(taint)));
    }
    if vertex.work_s[index] > 0.0 && node.speed() <= 0.0 {
        return Some("speed of the node is 0".to_owned());
    }
    shortage(free, &vertex.need, fit)
}

/// The first taint that keeps the task away.
pub(crate) fn untolerated<'n>(node: &'n Node, vertex: &Vertex<'_>) -> Option<&'n Taint> {
    let covered = |taint: &Taint| {
        let mut tolerations = vertex.placement.tolerations.iter();
        tolerations.any(|it| it.covers(taint) && (it.key.is_some() || !is_cordon(taint)))
    };
    let keeps_away = |taint: &&Taint| taint.effect != Effect::PreferNoSchedule && !covered(taint);
    // A source belongs to its node, whatever keeps others away.
    node.hosting.taints.iter().find(keeps_away).filter(|_| !vertex.name.is_source())
}

fn tainted(taint: &Taint) -> String {
    if taint.value.is_empty() { taint.key.clone() } else { format!("{}={}", taint.key, taint.value) }
}

/// Whether the resources suffice.
pub(crate) fn holds(free: &Amount, need: &Amount) -> bool {
    let fit = Fit::AtLeast;
    fit.holds(free.cpu, need.cpu)
        && fit.holds(free.memory, need.memory)
        && fit.holds(free.storage, need.storage)
}

/// The first resource that is short, with what is asked and what is there.
pub(crate) fn shortage(free: &Amount, need: &Amount, fit: Fit) -> Option<String> {
    if !fit.holds(free.cpu, need.cpu) {
        return Some(format!("cpu {} requested, {} unused", cores(need.cpu), cores(free.cpu)));
    }
    let bytes = [("memory", free.memory, need.memory), ("storage", free.storage, need.storage)];
    let short = bytes.into_iter().find(|(_, free, need)| !fit.holds(*free, *need));
    short.map(|(what, free, need)| format!("{what} {} requested, {} unused", size(need), size(free)))
}

fn cores(value: i64) -> MilliCores {
    MilliCores(u32::try_from(value.max(0)).unwrap_or(u32::MAX))
}

fn size(value: i64) -> Bytes {
    Bytes(value.max(0).unsigned_abs())
}

fn unmet(constraint: &Constraint) -> String {
    match &constraint.attribute {
        Attribute::Label(key) if key == PLATFORM => {
            format!("its image has no variant for {}", constraint.value)
        }
        _ => format!("constraint {} does not hold", written(constraint)),
    }
}

fn written(constraint: &Constraint) -> String {
    let attribute = match &constraint.attribute {
        Attribute::Name => "node.name".to_owned(),
        Attribute::Label(key) => format!("node.labels.{key}"),
    };
    let sign = if constraint.equal { "==" } else { "!=" };
    format!("{attribute} {sign} {}", constraint.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_fit_fits_unless_the_test_is_strict() {
        let amount = Amount { cpu: 500, memory: 1024, storage: 0 };
        assert_eq!(shortage(&amount, &amount, Fit::AtLeast), None);
        assert_eq!(shortage(&amount, &amount, Fit::Strict), Some("cpu 500m requested, 500m unused".into()));
    }

    #[test]
    fn the_reason_names_the_resource_that_is_short() {
        let free = Amount { cpu: 500, memory: 1_000_000, storage: 0 };
        let need = Amount { cpu: 500, memory: 2_000_000, storage: 0 };
        let text = shortage(&free, &need, Fit::AtLeast);
        assert_eq!(text.as_deref(), Some("memory 2 MB requested, 1 MB unused"));
    }
}
