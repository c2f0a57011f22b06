//! Processor shares of tasks whose job leaves them to the planner.
//!
//! A share is a limit: what the task needs for its job's throughput, at least its floor, and its part of
//! what is then left of the node. On each node they add up to no more than requests leave.

use edgeloom_common::ids::TaskName;
use edgeloom_common::units::{Bytes, MilliCores};
use std::collections::BTreeMap;

use super::room::Room;
use crate::plan::Share;
use crate::snapshot::Processors;

/// Of one member, by task.
pub(super) type Shares = BTreeMap<TaskName, Share>;

/// A task with a share to be found, in thousandths of a core.
#[derive(Debug, Clone, Copy)]
struct Sized {
    member: usize,
    vertex: usize,
    need: i64,
    /// What it has where it runs now.
    held: Option<i64>,
}

/// Shares of each member's sized tasks at these throughputs; none where each job has processors to itself.
pub(super) fn shares(room: &Room<'_>, items: &[f64]) -> Vec<Shares> {
    let mut shares = vec![Shares::new(); room.members.len()];
    if room.world.processors == Processors::PerJob {
        return shares;
    }
    let capacity = room.capacity(room.members.iter().map(|member| (member, &member.seat)));
    for node in 0..room.world.nodes.len() {
        let sized = sized(room, items, node);
        let room_for = thousandths(capacity[room.links.len() + node] / room.world.nodes[node].core_speed);
        for (task, cpu) in sized.iter().zip(split(room, &sized, room_for)) {
            let vertex = &room.members[task.member].graph.vertices[task.vertex];
            let cpu = MilliCores(u32::try_from(cpu.max(0)).unwrap_or(u32::MAX));
            let memory = Bytes(vertex.need.memory.max(0).unsigned_abs());
            shares[task.member].insert(vertex.name.clone(), Share { cpu, memory });
        }
    }
    shares
}

/// Whole thousandths of a core, rounded down.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates, and nodes have few cores")]
fn thousandths(cores: f64) -> i64 {
    (cores * 1000.0 + 1e-6) as i64
}

/// The sized tasks on a node that compute.
fn sized(room: &Room<'_>, items: &[f64], node: usize) -> Vec<Sized> {
    let mut found = Vec::new();
    for (index, member) in room.members.iter().enumerate() {
        let each = member.graph.vertices.iter().zip(&member.seat.nodes).enumerate();
        for (at, (vertex, _)) in each.filter(|(_, (vertex, of))| **of == node && vertex.sized) {
            let cores = items[index] * vertex.work_s[node] / room.world.nodes[node].core_speed;
            let need = (thousandths(cores) + 1).max(vertex.need.cpu);
            let held = member.held.filter(|_| !member.moves_to(room.world, &member.seat.nodes));
            let held = held.and_then(|held| held.plan.shares.get(&vertex.name));
            if vertex.work_s[node] > 0.0 || vertex.need.cpu > 0 {
                let held = held.map(|share| i64::from(share.cpu.0));
                found.push(Sized { member: index, vertex: at, need, held });
            }
        }
    }
    found
}

/// What each gets: what it has, while that suffices everybody; otherwise needs first, then the rest in
/// proportion to them.
fn split(room: &Room<'_>, sized: &[Sized], total: i64) -> Vec<i64> {
    let held: Option<Vec<i64>> =
        sized.iter().map(|task| task.held.filter(|held| *held >= task.need)).collect();
    if let Some(held) = held.filter(|held| held.iter().sum::<i64>() <= total) {
        return held;
    }
    let floor = |task: &Sized| room.members[task.member].graph.vertices[task.vertex].need.cpu;
    let floors: i64 = sized.iter().map(floor).sum();
    let above: i64 = sized.iter().map(|task| task.need - floor(task)).sum();
    let spare = (total - floors).max(0);
    let one = |task: &Sized| {
        let part = i128::from(task.need - floor(task)) * i128::from(spare) / i128::from(above.max(1));
        floor(task) + i64::try_from(part).unwrap_or(0)
    };
    sized.iter().map(one).collect()
}
