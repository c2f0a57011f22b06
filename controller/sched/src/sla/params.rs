//! The room's choices: the paper's, and others to compare them with.

use edgeloom_common::job::{Service, Sla};

use super::promethee::{CRITERIA, Criterion};

/// The usual preference function and equal weights (section 5.1).
const USUAL: Criterion = Criterion { weight: 1, indifference: 0, preference: 0 };

/// How the queue is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    pub order: Order,
    pub blocked: Blocked,
    pub cores: Cores,
    /// Satisfaction, reputation, resources, redundancy.
    pub criteria: [Criterion; CRITERIA],
}

/// Who is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The highest net flow of PROMETHEE II, ties by arrival.
    NetFlow,
    /// First come, first served.
    Arrival,
}

/// What follows when the next one finds no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked {
    /// It stays queued and the one after it is tried.
    Skipped,
    /// All wait behind it.
    Blocks,
}

/// How many cores a container gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cores {
    /// Formula 1: its part of what is idle, within its class's interval.
    Shared,
    /// The middle of its class's interval, as a user would ask who has to fix a number.
    Fixed,
}

impl Rules {
    /// The profile `sla`.
    pub const PAPER: Self = Self {
        order: Order::NetFlow,
        blocked: Blocked::Skipped,
        cores: Cores::Shared,
        criteria: [USUAL; CRITERIA],
    };
}

/// The priority values that PROMETHEE compares; no class counts as best effort.
pub(super) fn levels(sla: &Sla) -> [i32; CRITERIA] {
    [sla.satisfaction, sla.reputation, sla.resources, sla.redundancy].map(|service| match service {
        Some(Service::Premium) => 3,
        Some(Service::Advanced) => 2,
        Some(Service::BestEffort) | None => 1,
    })
}
