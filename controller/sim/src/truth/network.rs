//! What the links let through.
//!
//! A medium is what flows share: one for both directions of a half-duplex link, two of a full-duplex one.

use edgeloom_common::ids::NodeId;
use edgeloom_common::job::Job;
use edgeloom_sched::plan::{FlowPlan, JobPlan};
use edgeloom_sched::snapshot::{Duplex, Link};
use std::collections::BTreeMap;

use super::{Ground, Load};

/// Capacities by number, and which one a hop uses.
#[derive(Debug, Default)]
pub(super) struct Media {
    hops: BTreeMap<(usize, usize), usize>,
    /// Wire bits a second.
    capacity: Vec<f64>,
}

/// A flow with a rate.
#[derive(Debug)]
pub(super) struct Flow {
    media: Vec<usize>,
    /// Wire bits a second.
    rate: f64,
    /// Items a second at that rate.
    items: f64,
}

impl Media {
    /// Links to unknown nodes are left out; of two links between the same nodes the first counts.
    pub(super) fn new(numbers: &BTreeMap<NodeId, usize>, links: &[Link]) -> Self {
        let mut media = Self::default();
        for link in links {
            let (Some(&a), Some(&b)) = (numbers.get(&link.a), numbers.get(&link.b)) else {
                continue;
            };
            if media.hops.contains_key(&(a, b)) {
                continue;
            }
            let there = media.add(link.a_to_b.as_f64());
            let back = match link.duplex {
                Duplex::Half => there,
                Duplex::Full => media.add(link.b_to_a.as_f64()),
            };
            media.hops.insert((a, b), there);
            media.hops.insert((b, a), back);
        }
        media
    }

    fn add(&mut self, capacity: f64) -> usize {
        self.capacity.push(capacity);
        self.capacity.len() - 1
    }
}

impl Ground {
    /// An edge between two nodes needs a flow on links that are there, and gets nothing without.
    pub(super) fn add_flows(&self, load: &mut Load, job: &Job, plan: &JobPlan) {
        for (from, to, volume) in job.edges() {
            if plan.placement.get(&from) == plan.placement.get(&to) {
                continue;
            }
            #[expect(clippy::cast_precision_loss, reason = "volumes stay far below 2^52")]
            let bits = volume.0 as f64 * 8.0;
            let planned = plan.flows.iter().find(|flow| flow.id.from == from && flow.id.to == to);
            match planned.and_then(|flow| self.flow(flow, bits)) {
                Some(flow) => load.flows.push(flow),
                None => load.most = 0.0,
            }
        }
    }

    fn flow(&self, flow: &FlowPlan, bits: f64) -> Option<Flow> {
        let hop = |ends: &[NodeId]| {
            let (a, b) = (self.nodes.get(&ends[0])?, self.nodes.get(&ends[1])?);
            self.media.hops.get(&(*a, *b)).copied()
        };
        let media = flow.path.windows(2).map(hop).collect::<Option<Vec<usize>>>()?;
        let rate = flow.rate.as_f64();
        let items = if bits > 0.0 { rate * self.goodput / bits } else { f64::INFINITY };
        Some(Flow { media, rate, items })
    }

    /// Items a second that source and flows allow.
    pub(super) fn by_network(&self, loads: &[&Load]) -> Vec<f64> {
        let mut given = vec![0.0; self.media.capacity.len()];
        for flow in loads.iter().flat_map(|load| &load.flows) {
            flow.media.iter().for_each(|medium| given[*medium] += flow.rate);
        }
        let overload: Vec<f64> =
            given.iter().zip(&self.media.capacity).map(|(given, has)| overload(*given, *has)).collect();
        let slowest = |load: &&Load| {
            load.flows.iter().fold(load.most, |items, flow| {
                let worst = flow.media.iter().map(|medium| overload[*medium]).fold(1.0, f64::max);
                items.min(flow.items / worst)
            })
        };
        loads.iter().map(slowest).collect()
    }
}

/// By how much more was given away than there is; 1 where all is well.
fn overload(given: f64, capacity: f64) -> f64 {
    if given <= capacity { 1.0 } else { given / capacity }
}
