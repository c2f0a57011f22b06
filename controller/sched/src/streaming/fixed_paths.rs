//! One fixed path between each pair of nodes: what the search judges placements by.
//!
//! The paths depend on the links alone, so one pair of tables serves all searches of a decision.

use crate::route::{Graph, tree};

/// Pools of the fixed path to each node; none where no path leads.
type Row = Vec<Option<Vec<usize>>>;

/// Fixed paths between all nodes, a row for each first node as it is asked for.
#[derive(Debug, Clone)]
pub(super) struct Table {
    rows: Vec<Option<Row>>,
    /// Length of a hop; the inverse widths of all links add up to half of one.
    hop: f64,
}

/// Both tables, and room to add up loads.
#[derive(Debug, Clone)]
pub(super) struct Tables<'a> {
    graph: &'a Graph,
    /// What the paths are chosen by; closed pools are no way.
    widths: Vec<f64>,
    pub(super) shortest: Table,
    pub(super) widest: Table,
    loads: Vec<f64>,
    loaded: Vec<usize>,
}

/// Which of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Paths of fewest hops; the wider of equally short ones.
    Shortest,
    /// Paths whose inverse widths add up to least: wide and short.
    Widest,
}

/// Something sent between two nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Wire bits an item.
    pub(super) bits: f64,
}

impl<'a> Tables<'a> {
    pub(super) fn new(graph: &'a Graph, widths: Vec<f64>) -> Self {
        let table = |hop| Table { rows: vec![None; graph.out.len()], hop };
        let loads = vec![0.0; widths.len()];
        Self { graph, widths, shortest: table(1.0), widest: table(0.0), loads, loaded: Vec::new() }
    }

    /// Items a second that the fixed paths carry over these capacities, and the bits an item summed over
    /// hops; none where no path leads. It stops where fewer than the least that matters are left.
    pub(super) fn carried(
        &mut self,
        kind: Kind,
        capacity: &[f64],
        (sent, least): (&[Sent], f64),
    ) -> Option<(f64, f64)> {
        let table = match kind {
            Kind::Shortest => &mut self.shortest,
            Kind::Widest => &mut self.widest,
        };
        self.loaded.drain(..).for_each(|pool| self.loads[pool] = 0.0);
        let (mut carried, mut bit_hops) = (f64::INFINITY, 0.0);
        for sent in sent {
            for pool in table.path(self.graph, &self.widths, (sent.from, sent.to))? {
                if self.loads[*pool] == 0.0 {
                    self.loaded.push(*pool);
                }
                self.loads[*pool] += sent.bits;
                bit_hops += sent.bits;
                carried = carried.min(capacity[*pool] / self.loads[*pool]);
            }
            if carried < least {
                break;
            }
        }
        Some((carried, bit_hops))
    }

    /// The bits an item summed over hops of the shortest paths.
    pub(super) fn least_bit_hops(&mut self, sent: &[Sent]) -> Option<f64> {
        let mut sum = 0.0;
        for sent in sent {
            let path = self.shortest.path(self.graph, &self.widths, (sent.from, sent.to))?;
            sum += path.iter().map(|_| sent.bits).sum::<f64>();
        }
        Some(sum)
    }
}

impl Table {
    /// Pools of the path between two nodes.
    fn path(&mut self, graph: &Graph, widths: &[f64], (from, to): (usize, usize)) -> Option<&Vec<usize>> {
        let hop = self.hop;
        let row = self.rows[from].get_or_insert_with(|| {
            let open = widths.iter().filter(|width| **width > 0.0);
            let all = open.map(|width| 1.0 / width).sum::<f64>() * 2.0;
            let tree = tree(graph, from, |arc| hop + 1.0 / widths[arc.pool] / all);
            let pools = |node| Some(graph.pools(&tree.path(graph, node)?).collect());
            (0..graph.out.len()).map(pools).collect()
        });
        row[to].as_ref()
    }
}
