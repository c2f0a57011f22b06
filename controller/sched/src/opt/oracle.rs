//! The solvers against exact linear programs, over random small networks.
//!
//! The program is maximum concurrent flow by arcs: for each source a flow on each arc, conserved at each
//! node, and the congestion as the variable that is made small.

use microlp::{ComparisonOp, OptimizationDirection, Problem, Variable};
use proptest::prelude::*;
use std::collections::BTreeMap;

use super::congestion::{Demand, Network};
use super::least::{Least, least_congestion};
use super::relax::{GAP, relax};
use crate::route::{Arc, Graph};

/// Links as ends, capacity, and whether both directions share it.
#[derive(Debug, Clone)]
struct Instance {
    graph: Graph,
    capacity: Vec<f64>,
    demands: Vec<Demand>,
}

impl Instance {
    fn new(nodes: usize, links: &[(usize, usize, f64, bool)], demands: &[(usize, usize, f64)]) -> Self {
        let mut graph = Graph::new(nodes);
        let mut capacity = Vec::new();
        for (a, b, width, shared) in links {
            let (from, to) = (a % nodes, b % nodes);
            let there = capacity.len();
            capacity.push(*width);
            if !shared {
                capacity.push(*width);
            }
            graph.add(Arc { from, to, pool: there });
            graph.add(Arc { from: to, to: from, pool: capacity.len() - 1 });
        }
        let demand = |(from, to, volume): &(usize, usize, f64)| Demand {
            from: from % nodes,
            to: to % nodes,
            volume: *volume,
        };
        Self { graph, capacity, demands: demands.iter().map(demand).collect() }
    }

    fn network(&self) -> Network<'_> {
        Network { graph: &self.graph, capacity: &self.capacity }
    }

    /// The exact optimum; none if some demand cannot be sent.
    fn optimum(&self) -> Option<f64> {
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        let congestion = problem.add_var(1.0, (0.0, f64::INFINITY));
        let mut pools: BTreeMap<usize, Vec<(Variable, f64)>> = BTreeMap::new();
        let mut sources: BTreeMap<usize, Vec<&Demand>> = BTreeMap::new();
        for demand in &self.demands {
            sources.entry(demand.from).or_default().push(demand);
        }
        for demands in sources.into_values() {
            let mut at_node: Vec<Vec<(Variable, f64)>> = vec![Vec::new(); self.graph.out.len()];
            for arc in
                self.graph.arcs.iter().filter(|arc| arc.from != arc.to && self.capacity[arc.pool] > 0.0)
            {
                let flow = problem.add_var(0.0, (0.0, f64::INFINITY));
                at_node[arc.from].push((flow, 1.0));
                at_node[arc.to].push((flow, -1.0));
                pools.entry(arc.pool).or_default().push((flow, 1.0));
            }
            for (node, flows) in at_node.into_iter().enumerate() {
                let sent = |demand: &&Demand| {
                    let share = |end: usize| if end == node { demand.volume } else { 0.0 };
                    share(demand.from) - share(demand.to)
                };
                let sent: f64 = demands.iter().map(sent).sum();
                if flows.is_empty() && sent.abs() > 1e-12 {
                    return None;
                }
                problem.add_constraint(&flows, ComparisonOp::Eq, sent);
            }
        }
        for (pool, mut flows) in pools {
            flows.push((congestion, -self.capacity[pool]));
            problem.add_constraint(&flows, ComparisonOp::Le, 0.0);
        }
        problem.solve().ok()?.into_solution().ok().map(|solution| solution.objective())
    }
}

fn instances() -> impl Strategy<Value = Instance> {
    let width = prop_oneof![1 => Just(0.0), 9 => 0.1..10.0];
    let link = (0..12_usize, 0..12_usize, width, any::<bool>());
    let volume = prop_oneof![1 => Just(0.0), 9 => 0.01..5.0, 1 => 5.0..100.0];
    let demand = (0..12_usize, 0..12_usize, volume);
    let lists = (prop::collection::vec(link, 1..30), prop::collection::vec(demand, 1..20));
    (2..=12_usize, lists).prop_map(|(nodes, (links, demands))| Instance::new(nodes, &links, &demands))
}

/// The largest load over capacity, from the columns alone.
fn carried(instance: &Instance, least: &Least) -> f64 {
    let mut loads = vec![0.0; instance.capacity.len()];
    for (demand, columns) in instance.demands.iter().zip(&least.relaxed.columns) {
        for column in columns {
            let mut at = demand.from;
            for arc in column.path.iter().map(|arc| instance.graph.arcs[*arc]) {
                assert_eq!(arc.from, at, "arcs of a path follow each other");
                at = arc.to;
                loads[arc.pool] += demand.volume * column.fraction;
            }
            assert_eq!(at, demand.to, "a path ends where its demand does");
        }
    }
    instance.network().congestion(&loads)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_relaxation_encloses_the_exact_optimum_within_its_gap(instance in instances()) {
        let reachable = instance.demands.iter().filter(|demand| demand.volume > 0.0);
        let all = Instance { demands: reachable.copied().collect(), ..instance.clone() };
        let solved = relax(all.network(), &all.demands);
        let exact = all.optimum();
        prop_assert_eq!(solved.is_some(), exact.is_some());
        if let (Some(relaxed), Some(exact)) = (solved, exact) {
            let (lower, upper) = (relaxed.lower_bound, relaxed.congestion);
            prop_assert!(lower <= exact * (1.0 + 1e-6) + 1e-9, "{} over {}", lower, exact);
            prop_assert!(upper >= exact * (1.0 - 1e-6) - 1e-9, "{} under {}", upper, exact);
            prop_assert!(upper <= lower * (1.0 + GAP) + 1e-12, "{} against {}", upper, lower);
        }
    }

    #[test]
    fn the_bound_the_split_and_the_single_paths_are_in_order(instance in instances()) {
        let Some(least) = least_congestion(instance.network(), &instance.demands) else {
            return Ok(());
        };
        let of = |paths: &[Vec<usize>]| {
            instance.network().congestion(&instance.network().loads(&instance.demands, paths))
        };
        let (single, rounded) = (of(&least.paths), of(&least.rounded));
        let upper = least.relaxed.congestion;
        prop_assert!(least.relaxed.lower_bound <= upper);
        prop_assert!(upper <= single + 1e-9, "{} against {}", upper, single);
        prop_assert!(single <= rounded, "{} against {}", single, rounded);
        prop_assert!((carried(&instance, &least) - upper).abs() <= 1e-9 * upper);
        for columns in &least.relaxed.columns {
            let sum: f64 = columns.iter().map(|column| column.fraction).sum();
            prop_assert!((sum - 1.0).abs() < 1e-9 && columns.iter().all(|column| column.fraction >= 0.0));
        }
    }

    #[test]
    fn four_times_the_capacity_is_a_quarter_of_the_congestion(instance in instances()) {
        let wide = instance.capacity.iter().map(|width| width * 4.0).collect();
        let wide = Instance { capacity: wide, ..instance.clone() };
        let narrow = relax(instance.network(), &instance.demands);
        let wide = relax(wide.network(), &wide.demands);
        prop_assert_eq!(wide.is_some(), narrow.is_some());
        if let (Some(wide), Some(narrow)) = (wide, narrow) {
            prop_assert_eq!(wide.congestion * 4.0, narrow.congestion);
            prop_assert_eq!(wide.lower_bound * 4.0, narrow.lower_bound);
        }
    }
}

#[test]
fn a_lone_demand_splits_over_equal_ways() {
    let links = [(0, 1, 2.0, true), (1, 3, 2.0, true), (0, 2, 2.0, false), (2, 3, 2.0, false)];
    let instance = Instance::new(4, &links, &[(0, 3, 4.0)]);
    let least = least_congestion(instance.network(), &instance.demands).unwrap();
    assert!((instance.optimum().unwrap() - 1.0).abs() < 1e-9);
    assert!(least.relaxed.congestion <= 1.0 + GAP, "{}", least.relaxed.congestion);
    assert_eq!(least.relaxed.columns[0].len(), 2);
    let single = instance.network().congestion(&instance.network().loads(&instance.demands, &least.paths));
    assert!((single - 2.0).abs() < 1e-12, "{single}");
}

#[test]
fn both_directions_of_a_half_duplex_link_share_it() {
    let demands = [(0, 1, 1.0), (1, 0, 1.0)];
    for (shared, expected) in [(true, 2.0), (false, 1.0)] {
        let instance = Instance::new(2, &[(0, 1, 1.0, shared)], &demands);
        let relaxed = relax(instance.network(), &instance.demands).unwrap();
        assert!((relaxed.congestion - expected).abs() < 1e-9, "{}", relaxed.congestion);
        assert!((relaxed.lower_bound - expected).abs() < 0.01 * expected, "{}", relaxed.lower_bound);
    }
}

#[test]
fn a_demand_without_a_way_has_no_solution_and_one_without_volume_costs_nothing() {
    let links = [(0, 1, 1.0, true), (1, 2, 0.0, true)];
    let apart = Instance::new(3, &links, &[(0, 1, 1.0), (0, 2, 1.0)]);
    assert_eq!(least_congestion(apart.network(), &apart.demands), None);
    let still = Instance::new(3, &links, &[(0, 1, 0.0), (2, 2, 5.0)]);
    let least = least_congestion(still.network(), &still.demands).unwrap();
    assert_eq!((least.relaxed.congestion, least.relaxed.lower_bound), (0.0, 0.0));
    assert_eq!(least.paths, vec![vec![0], vec![]]);
}

#[test]
fn equal_input_gives_equal_output() {
    let links =
        [(0, 1, 1.0, true), (1, 2, 1.5, false), (0, 2, 0.7, true), (2, 3, 1.1, true), (1, 3, 0.9, false)];
    let demands = [(0, 3, 0.4), (1, 2, 0.9), (3, 0, 0.3), (2, 0, 0.8), (0, 3, 0.4)];
    let instance = Instance::new(4, &links, &demands);
    let once = least_congestion(instance.network(), &instance.demands).unwrap();
    assert_eq!(least_congestion(instance.network(), &instance.demands), Some(once));
}
