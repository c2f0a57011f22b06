//! Against a solver of another kind: successive shortest paths over a full matrix of arcs.

use proptest::prelude::*;

use super::tree::exact;
use super::{Costs, Flow, Optimum, Units, least_cost};

/// Costs as a table; none: no arc.
#[derive(Debug, Clone)]
struct Table(Vec<Vec<Option<i64>>>);

impl Costs for Table {
    fn cheapest(&self, row: usize, prices: &[f64]) -> Option<(usize, i64)> {
        let arcs = self.0[row].iter().enumerate().filter_map(|(column, cost)| Some((column, (*cost)?)));
        let reduced = |(column, cost): &(usize, i64)| exact(*cost) - prices[*column];
        arcs.min_by(|x, y| reduced(x).total_cmp(&reduced(y)))
    }
}

#[derive(Debug, Clone)]
struct Instance {
    rows: Vec<i64>,
    columns: Vec<i64>,
    costs: Table,
    start: Vec<Flow>,
}

impl Instance {
    fn solve(&self) -> Optimum {
        least_cost(Units { rows: &self.rows, columns: &self.columns }, &self.costs, &self.start)
    }

    /// A flow within the units that columns are filled with while they last; what is wanted beyond that, or of columns that
    /// are filled, is where the row goes next.
    fn with_start(mut self, wanted: &[(usize, usize)]) -> Self {
        let mut left = self.rows.clone();
        for (row, column) in wanted.iter().map(|(r, c)| (r % self.rows.len(), c % self.columns.len())) {
            let units = self.columns[column];
            let free = self.start.iter().all(|flow| flow.column != column || flow.units == 0);
            if let Some(cost) = self.costs.0[row][column] {
                let units = if free && left[row] >= units { units } else { 0 };
                left[row] -= units;
                self.start.push(Flow { row, column, units, cost });
            }
        }
        self
    }
}

fn instances() -> impl Strategy<Value = Instance> {
    let sizes = (1..7usize, 1..7usize);
    sizes.prop_flat_map(|(rows, columns)| {
        let arc = prop_oneof![1 => Just(None), 4 => (-12..6i64).prop_map(Some)];
        let units = |most: usize| prop::collection::vec(1..4i64, most);
        let table = prop::collection::vec(prop::collection::vec(arc, columns), rows);
        let wanted = prop::collection::vec((0..8usize, 0..8usize), 0..6);
        (units(rows), units(columns), table, wanted).prop_map(|(rows, columns, table, wanted)| {
            Instance { rows, columns, costs: Table(table), start: Vec::new() }.with_start(&wanted)
        })
    })
}

/// Sends unit after unit the cheapest way, by Bellman and Ford, until none gains.
fn by_shortest_paths(instance: &Instance) -> i64 {
    let (rows, columns) = (instance.rows.len(), instance.columns.len());
    let mut flow = vec![vec![0; columns]; rows];
    let mut total = 0;
    loop {
        let sent = |row: usize| flow[row].iter().sum::<i64>();
        let mut row_cost: Vec<Option<i64>> =
            (0..rows).map(|row| (sent(row) < instance.rows[row]).then_some(0)).collect();
        let mut column_from: Vec<Option<(i64, usize)>> = vec![None; columns];
        let mut row_from: Vec<Option<usize>> = vec![None; rows];
        for _ in 0..rows + columns {
            for (row, reached) in row_cost.iter().enumerate() {
                for (from, cost) in column_from.iter_mut().zip(&instance.costs.0[row]) {
                    let way = reached.zip(*cost).map(|(so_far, cost)| so_far + cost);
                    if way.is_some_and(|way| from.is_none_or(|(known, _)| way < known)) {
                        *from = way.map(|way| (way, row));
                    }
                }
            }
            for row in 0..rows {
                for column in (0..columns).filter(|column| flow[row][*column] > 0) {
                    let cost = instance.costs.0[row][column].unwrap();
                    let way = column_from[column].map(|(so_far, _)| so_far - cost);
                    if way.is_some_and(|way| row_cost[row].is_none_or(|known| way < known)) {
                        (row_cost[row], row_from[row]) = (way, Some(column));
                    }
                }
            }
        }
        let taken = |column: usize| flow.iter().map(|row| row[column]).sum::<i64>();
        let ends = (0..columns).filter(|column| taken(*column) < instance.columns[*column]);
        let best = ends.filter_map(|column| Some((column_from[column]?.0, column))).min();
        let Some((cost, mut column)) = best.filter(|(cost, _)| *cost < 0) else { return total };
        total += cost;
        loop {
            let row = column_from[column].unwrap().1;
            flow[row][column] += 1;
            let Some(back) = row_from[row] else { break };
            flow[row][back] -= 1;
            column = back;
        }
    }
}

/// No arc's cost is below what its nodes' prices come to, and where units go it is not above.
fn certified(instance: &Instance, optimum: &Optimum) {
    let reduced =
        |row: usize, column: usize, cost: i64| cost - optimum.row_prices[row] - optimum.column_prices[column];
    for (row, arcs) in instance.costs.0.iter().enumerate() {
        assert!(optimum.row_prices[row] <= 0);
        for (column, cost) in arcs.iter().enumerate() {
            assert!(cost.is_none_or(|cost| reduced(row, column, cost) >= 0));
        }
    }
    let mut left = instance.rows.clone();
    let mut room = instance.columns.clone();
    for Flow { row, column, units, cost } in &optimum.flows {
        assert_eq!((instance.costs.0[*row][*column], reduced(*row, *column, *cost)), (Some(*cost), 0));
        left[*row] -= units;
        room[*column] -= units;
    }
    assert!(
        left.iter().zip(&optimum.row_prices).all(|(left, price)| *left == 0 || (*left > 0 && *price == 0))
    );
    let unused = optimum.unused_price;
    for (room, price) in room.iter().zip(&optimum.column_prices) {
        assert!(*price <= unused && (*room == 0 || (*room > 0 && *price == unused)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_cost_is_that_of_successive_shortest_paths_and_the_prices_prove_it(instance in instances()) {
        let optimum = instance.solve();
        certified(&instance, &optimum);
        prop_assert_eq!(optimum.cost, by_shortest_paths(&instance));
    }
}

#[test]
fn a_row_takes_the_second_best_column_where_that_costs_all_less() {
    let costs = Table(vec![vec![Some(-10), Some(-9)], vec![Some(-8), None]]);
    let instance = Instance { rows: vec![1, 1], columns: vec![1, 1], costs, start: Vec::new() };
    let optimum = instance.solve();
    let ways: Vec<_> = optimum.flows.iter().map(|flow| (flow.row, flow.column)).collect();
    assert_eq!((optimum.cost, ways), (-17, vec![(1, 0), (0, 1)]));
}

#[test]
fn nothing_to_send_and_nowhere_to_go_are_answered() {
    let none = Instance { rows: vec![], columns: vec![2], costs: Table(vec![]), start: Vec::new() };
    assert_eq!(none.solve().flows, []);
    let shut = Instance { rows: vec![3], columns: vec![], costs: Table(vec![vec![]]), start: Vec::new() };
    assert_eq!(shut.solve().cost, 0);
}
