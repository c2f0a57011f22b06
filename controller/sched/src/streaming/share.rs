//! Fair shares between the jobs of the `edgeloom` profile.
//!
//! Placement and paths are given. Each job gets the same part of the throughput that it would have alone
//! (weighted max-min over jobs, limited by source and processors), each flow the rate that this throughput
//! needs, never less; what is left of the links goes to flows max-min, so that bursts pass. A running
//! flow keeps its rate wherever there is room for it. Jobs of other profiles are not touched.

use super::elastic::{Elastic, Sharer, Stream, limit, nodes_of, streams, without};
use super::online::whole_bits;
use super::params::{LEAST_RAISE, LEAST_RATE_BPS};
use super::predict::{compute_limit, predict};
use super::{Case, Routed};
use crate::job_graph::JobGraph;
use crate::ledger::{HeldJobs, Ledger};
use crate::opt::max_min::{Consumer, fill};
use crate::plan::JobPlan;
use crate::world::World;

/// Links as the jobs of other profiles leave them, and the jobs that share the rest.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    world: &'a World<'a>,
    others: &'a HeldJobs<'a>,
    elastic: Vec<Elastic<'a>>,
    capacity: Vec<f64>,
}

impl<'a> Room<'a> {
    /// Sorts the held jobs into those that share and those that keep what they have.
    pub(crate) fn of(world: &'a World<'a>, others: &'a HeldJobs<'a>) -> Self {
        let mut elastic = Vec::new();
        let mut fixed = Vec::new();
        for held in others.values() {
            match streams(world, held) {
                Some(streams) => elastic.push(Elastic { held, streams, limit: limit(world, others, held) }),
                None => fixed.push(held),
            }
        }
        let capacity = Ledger::of(world, fixed.into_iter()).residual(world);
        Self { world, others, elastic, capacity }
    }

    /// What a further job can count on: what is not needed, or its part among the jobs of a pool.
    pub(crate) fn for_newcomer(&self) -> Vec<f64> {
        let mut needed = vec![0.0; self.capacity.len()];
        let mut jobs = vec![1.0; self.capacity.len()];
        for job in &self.elastic {
            let mut touched = vec![false; self.capacity.len()];
            for stream in &job.streams {
                for pool in &stream.pools {
                    needed[*pool] += stream.bits * job.held.plan.prediction.items_per_s;
                    touched[*pool] = true;
                }
            }
            touched.iter().zip(&mut jobs).filter(|(touched, _)| **touched).for_each(|(_, jobs)| *jobs += 1.0);
        }
        let pools = self.capacity.iter().zip(needed).zip(jobs);
        super::jrba::open(
            pools.map(|((capacity, needed), jobs)| (capacity - needed).max(capacity / jobs)).collect(),
        )
    }

    /// Rates for the newcomer, and the plans of running jobs that change; none if a flow would get nothing.
    pub(crate) fn settle(
        &self,
        case: &Case<'_>,
        nodes: &[usize],
        mut flows: Vec<Routed>,
    ) -> Option<(Vec<Routed>, Vec<JobPlan>)> {
        let newcomer: Vec<Stream> = flows.iter().map(|flow| stream(case, flow)).collect();
        let mut jobs = self.sharers();
        jobs.push(Sharer { streams: &newcomer, limit: compute_limit(case, nodes).items_per_s, held: None });
        let rates = self.rates(&jobs);
        let own = rates.last().expect("the newcomer is the last job");
        flows.iter_mut().zip(own).for_each(|(flow, rate)| flow.rate = *rate);
        let enough = flows.iter().all(|flow| flow.rate >= 1.0);
        enough.then(|| (flows, self.changes(&rates)))
    }

    /// The plans of running jobs that change when none comes: what others left is shared out.
    pub(crate) fn rebalance(&self) -> Vec<JobPlan> {
        self.changes(&self.rates(&self.sharers()))
    }

    fn sharers(&self) -> Vec<Sharer<'_>> {
        self.elastic.iter().map(Elastic::sharer).collect()
    }

    fn changes(&self, rates: &[Vec<f64>]) -> Vec<JobPlan> {
        self.elastic.iter().zip(rates).filter_map(|(job, rates)| self.changed(job, rates)).collect()
    }

    /// Items a second of each job: fair, and as before where little would be gained.
    fn items_per_s(&self, jobs: &[Sharer<'_>]) -> Vec<f64> {
        let consumers: Vec<Consumer> = jobs.iter().map(|job| self.consumer(job.streams, job.limit)).collect();
        let mut items = fill(&consumers, &self.capacity);
        for (items, job) in items.iter_mut().zip(jobs) {
            if let Some(held) = job.held.filter(|held| *items >= *held && *items < held * (1.0 + LEAST_RAISE))
            {
                *items = held;
            }
        }
        items
    }

    /// A job as a consumer of pools; its weight is what it would have alone.
    fn consumer(&self, streams: &[Stream], limit: f64) -> Consumer {
        let mut load = vec![0.0; self.capacity.len()];
        for stream in streams {
            stream.pools.iter().for_each(|pool| load[*pool] += stream.bits);
        }
        let uses: Vec<(usize, f64)> = load.into_iter().enumerate().filter(|(_, bits)| *bits > 0.0).collect();
        let alone = uses.iter().map(|(pool, bits)| self.capacity[*pool] / bits).fold(limit, f64::min);
        Consumer { uses, weight: alone, limit }
    }

    /// Per job and flow: what the throughput needs, what a running flow can keep, then the rest max-min.
    fn rates(&self, jobs: &[Sharer<'_>]) -> Vec<Vec<f64>> {
        let mut left = self.capacity.clone();
        let mut rates: Vec<Vec<f64>> = Vec::new();
        for (job, items) in jobs.iter().zip(self.items_per_s(jobs)) {
            rates.push(job.streams.iter().map(|stream| stream.bits * items).collect());
        }
        let all = || {
            let each = jobs.iter().enumerate();
            each.flat_map(|(j, job)| job.streams.iter().enumerate().map(move |(f, stream)| (j, f, stream)))
        };
        for (job, flow, stream) in all() {
            stream.pools.iter().for_each(|pool| left[*pool] -= rates[job][flow]);
        }
        let mut hungry = Vec::new();
        for (job, flow, stream) in all() {
            let more = stream.held_bps - rates[job][flow];
            if stream.held_bps > 0.0 && more.abs() <= 1.0 {
                rates[job][flow] = stream.held_bps.min(rates[job][flow]);
            } else if more > 0.0 && stream.pools.iter().all(|pool| left[*pool] >= more) {
                rates[job][flow] = stream.held_bps;
                stream.pools.iter().for_each(|pool| left[*pool] -= more);
            } else {
                hungry.push((job, flow, stream));
            }
        }
        left.iter_mut().filter(|left| **left < LEAST_RATE_BPS).for_each(|left| *left = 0.0);
        let one = |stream: &Stream| stream.pools.iter().map(|pool| (*pool, 1.0)).collect();
        let consumers: Vec<Consumer> = hungry
            .iter()
            .map(|(_, _, stream)| Consumer { uses: one(stream), weight: 1.0, limit: f64::INFINITY })
            .collect();
        for ((job, flow, _), more) in hungry.into_iter().zip(fill(&consumers, &left)) {
            rates[job][flow] += more;
        }
        rates
    }

    /// The running job's plan with its new rates, if they are new.
    fn changed(&self, job: &Elastic<'_>, rates: &[f64]) -> Option<JobPlan> {
        let mut plan = job.held.plan.clone();
        for (flow, rate) in plan.flows.iter_mut().zip(rates) {
            flow.rate = whole_bits(*rate);
        }
        if plan.flows == job.held.plan.flows {
            return None;
        }
        let graph = JobGraph::of(self.world, job.held.job, job.held.profiles);
        let ledger = without(self.world, self.others, job.held);
        let case = Case { world: self.world, graph: &graph, ledger: &ledger };
        let nodes = nodes_of(self.world, &graph, &plan)?;
        let edges = case.flows(&nodes);
        let find = |flow: &crate::plan::FlowPlan| {
            let name = |vertex: usize| &graph.vertices[vertex].name;
            edges
                .iter()
                .find(|edge| *name(edge.from) == flow.id.from && *name(edge.to) == flow.id.to)
                .copied()
        };
        let routed = plan.flows.iter().filter_map(|flow| {
            Some(Routed { edge: find(flow)?, path: Vec::new(), rate: flow.rate.as_f64() })
        });
        let routed: Vec<Routed> = routed.collect();
        plan.prediction = predict(&case, &nodes, &routed);
        Some(plan)
    }
}

fn stream(case: &Case<'_>, flow: &Routed) -> Stream {
    let pools = case.world.graph.pools(&flow.path).collect();
    Stream { pools, bits: case.wire_bits(&flow.edge), held_bps: 0.0 }
}
