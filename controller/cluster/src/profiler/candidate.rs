//! On which node of each hardware class a task is measured.
//!
//! A node counts if it could take the task at all: ready, constraints hold, an image for its architecture,
//! requests within its capacity. Of a class the one with the fewest bytes to pull is chosen, then the
//! one with the most free CPU, among those that have room now: a measurement on a full node would disturb
//! what runs there and be disturbed by it.

use crate::model::{Image, Model};
use crate::nodes::Nodes;
use crate::pulls::Pulls;
use crate::views::requested;
use edgeloom_common::ids::NodeId;
use edgeloom_common::job::Task;
use edgeloom_common::units::{Bytes, MilliCores};
use edgeloom_sched::snapshot::Node;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// One node that could take the task, and what is free on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) node: NodeId,
    pub(super) free: Free,
    missing: Bytes,
    has_room: bool,
}

/// Capacity less requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Free {
    cpu: MilliCores,
    pub(super) memory: Bytes,
}

/// By class: a candidate with room, or why none has room now. An error: why no node can ever take the task.
pub(super) type Candidates = Result<BTreeMap<String, Result<Candidate, String>>, String>;

/// What candidates are looked for among.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) model: &'a Model,
    pub(super) nodes: &'a Nodes,
    pub(super) known: &'a [Node],
    pub(super) pulls: &'a Pulls<'a>,
}

impl Field<'_> {
    pub(super) fn candidates(&self, task: &Task, image: &Image) -> Candidates {
        let mut refusals = Vec::new();
        let mut classes: BTreeMap<String, Vec<Candidate>> = BTreeMap::new();
        for node in self.known {
            if let Some(reason) = self.refusal(node, task, image) {
                refusals.push(format!("{}: {reason}", node.id));
            } else {
                let all = classes.entry(node.class.clone()).or_default();
                all.push(self.candidate(node, task, image));
            }
        }
        if classes.is_empty() {
            let reasons =
                if refusals.is_empty() { "there is no node".to_owned() } else { refusals.join("; ") };
            return Err(format!("no node can take it ({reasons})"));
        }
        Ok(classes.into_iter().map(|(class, all)| (class, choose(all, task))).collect())
    }

    fn candidate(&self, node: &Node, task: &Task, image: &Image) -> Candidate {
        let (cpu, memory) = requested(self.model, &node.id);
        let free = Free {
            cpu: MilliCores(node.cpu.0.saturating_sub(cpu)),
            memory: Bytes(node.memory.0.saturating_sub(memory)),
        };
        let wanted = &task.program.resources;
        let has_room = free.cpu >= wanted.cpu && free.memory >= wanted.memory;
        let missing = self.pulls.missing_of(&node.id, image).unwrap_or(Bytes(0));
        Candidate { node: node.id.clone(), free, missing, has_room }
    }

    /// The first reason against the node.
    fn refusal(&self, node: &Node, task: &Task, image: &Image) -> Option<String> {
        if !node.ready {
            return Some("node is not ready".to_owned());
        }
        if node.class.is_empty() {
            return Some("its agent tells no hardware class; upgrade it".to_owned());
        }
        let inventory = self.nodes.table.get(&node.id)?.inventory.as_ref()?;
        if image.layers(&inventory.architecture).is_none() {
            return Some(format!(
                "image {} has no variant for {}",
                image.reference.name, inventory.architecture
            ));
        }
        if task.constraints.iter().any(|constraint| !constraint.holds(&node.id, &node.labels)) {
            return Some("a constraint does not hold".to_owned());
        }
        let wanted = &task.program.resources;
        if node.cpu < wanted.cpu {
            return Some(format!("has {} CPU, {} wanted", node.cpu, wanted.cpu));
        }
        if node.memory < wanted.memory {
            return Some(format!("has {} memory, {} wanted", node.memory, wanted.memory));
        }
        (node.disk < wanted.storage).then(|| format!("has {} disk, {} wanted", node.disk, wanted.storage))
    }
}

fn choose(mut all: Vec<Candidate>, task: &Task) -> Result<Candidate, String> {
    all.sort_by_key(|it| (it.missing, Reverse(it.free.cpu), it.node.clone()));
    if let Some(found) = all.iter().find(|candidate| candidate.has_room) {
        return Ok(found.clone());
    }
    let wanted = &task.program.resources;
    let lack =
        |it: &Candidate| format!("{} has {} CPU and {} memory free", it.node, it.free.cpu, it.free.memory);
    let lacks: Vec<String> = all.iter().map(lack).collect();
    Err(format!(
        "no room now: {}; {} and {} are wanted; stop a job or measure later",
        lacks.join(", "),
        wanted.cpu,
        wanted.memory
    ))
}
