//! What the processors let through.
//!
//! A node's level is what it gives each job that wants more: the level of water poured into the jobs' wants.
//! Levels depend on each other, since a job held up on one node wants less of another. They are found node by
//! node, round after round, until none changes; where they have not settled in the end, jobs on a node that
//! gave too much are slowed until it does not.

use edgeloom_sched::snapshot::Processors;

use super::{Ground, Load};

/// Nearly all settle within ten; few levels that creep towards their end are cut short.
const ROUNDS: usize = 100;
/// Relative change of a level that counts as none.
const SETTLED: f64 = 1e-9;

/// A job on a node, by number, with its reference-core seconds an item there.
struct Sharer {
    job: usize,
    limited_s: f64,
    free_s: f64,
}

impl Ground {
    /// Items a second of each load, given what source and flows allow.
    pub(super) fn by_compute(&self, loads: &[&Load], by_network: &[f64]) -> Vec<f64> {
        if self.processors == Processors::PerJob {
            return self.alone(loads, by_network);
        }
        let most = self.by_limits(loads, by_network);
        let sharers = self.sharers(loads);
        let mut levels = vec![f64::INFINITY; self.speed.len()];
        for _ in 0..ROUNDS {
            let mut settled = true;
            for node in 0..levels.len() {
                let items = |job: usize| pace(loads[job], most[job], &levels, Some(node));
                let level = level(self.speed[node], &sharers[node], items);
                settled &= same(levels[node], level);
                levels[node] = level;
            }
            if settled {
                break;
            }
        }
        let items: Vec<f64> =
            loads.iter().zip(&most).map(|(load, most)| pace(load, *most, &levels, None)).collect();
        self.within_speed(loads, &sharers, items)
    }

    /// Each job as if it had every node to itself.
    fn alone(&self, loads: &[&Load], by_network: &[f64]) -> Vec<f64> {
        let slowest = |(load, most): (&&Load, &f64)| {
            let limited = load.limited.iter().map(|task| task.speed / task.work_s);
            let nodes = load.work.iter().map(|work| self.speed[work.node] / (work.limited_s + work.free_s));
            limited.chain(nodes).fold(*most, f64::min)
        };
        loads.iter().zip(by_network).map(slowest).collect()
    }

    /// Limits hold as they are, but for a node whose limits together exceed it: there each gets its part.
    fn by_limits(&self, loads: &[&Load], by_network: &[f64]) -> Vec<f64> {
        let mut limits = vec![0.0; self.speed.len()];
        for limited in loads.iter().flat_map(|load| &load.limited) {
            limits[limited.node] += limited.speed;
        }
        let part = |node: usize| (self.speed[node] / limits[node]).min(1.0);
        let slowest = |(load, most): (&&Load, &f64)| {
            load.limited
                .iter()
                .fold(*most, |items, task| items.min(task.speed * part(task.node) / task.work_s))
        };
        loads.iter().zip(by_network).map(slowest).collect()
    }

    fn sharers(&self, loads: &[&Load]) -> Vec<Vec<Sharer>> {
        let mut sharers: Vec<Vec<Sharer>> = self.speed.iter().map(|_| Vec::new()).collect();
        for (job, load) in loads.iter().enumerate() {
            for work in &load.work {
                sharers[work.node].push(Sharer { job, limited_s: work.limited_s, free_s: work.free_s });
            }
        }
        sharers
    }

    /// Slows the jobs of every node that would be asked for more than it has.
    fn within_speed(&self, loads: &[&Load], sharers: &[Vec<Sharer>], items: Vec<f64>) -> Vec<f64> {
        let used = |node: &Vec<Sharer>| -> f64 {
            node.iter().map(|sharer| items[sharer.job] * (sharer.limited_s + sharer.free_s)).sum()
        };
        let over: Vec<f64> =
            sharers.iter().zip(&self.speed).map(|(node, speed)| (used(node) / speed).max(1.0)).collect();
        let slowed = |(load, items): (&&Load, &f64)| {
            items / load.work.iter().map(|work| over[work.node]).fold(1.0, f64::max)
        };
        loads.iter().zip(&items).map(slowed).collect()
    }
}

/// Items a second that the levels allow, one node's left aside.
fn pace(load: &Load, most: f64, levels: &[f64], aside: Option<usize>) -> f64 {
    let counts = load.work.iter().filter(|work| work.free_s > 0.0 && Some(work.node) != aside);
    counts.fold(most, |items, work| items.min(levels[work.node] / work.free_s))
}

/// How high what limited tasks leave of `speed` stands over the wants of the others; infinite where it
/// covers them all. `items` is a job's pace but for this node. A job with tasks of both kinds draws for both
/// what it makes of its want.
fn level(speed: f64, sharers: &[Sharer], items: impl Fn(usize) -> f64) -> f64 {
    let (mut left, mut parts) = (speed, 0.0);
    let mut wants = Vec::with_capacity(sharers.len());
    for sharer in sharers {
        let items = items(sharer.job);
        if sharer.free_s > 0.0 {
            let part = 1.0 + sharer.limited_s / sharer.free_s;
            wants.push((items * sharer.free_s, part));
            parts += part;
        } else {
            left -= items * sharer.limited_s;
        }
    }
    wants.sort_by(|one, other| one.0.total_cmp(&other.0));
    left = left.max(0.0);
    for (want, part) in wants {
        let share = left / parts;
        if want > share {
            return share;
        }
        (left, parts) = ((left - want * part).max(0.0), parts - part);
    }
    f64::INFINITY
}

fn same(old: f64, new: f64) -> bool {
    old == new || (old.is_finite() && (old - new).abs() <= SETTLED * old)
}
