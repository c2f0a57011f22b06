//! Demands and what is free as integers, each resource a part of the largest machine's, and which machines matter.
//!
//! A part of 1 is [`ONE`]. Costs are sums of products of two parts; along any path of the solver's tree they stay
//! far within 64 bits.

use super::{Batch, RESOURCES, Vector};

/// The largest capacity of the batch.
pub(super) const ONE: i64 = 1 << 16;

/// Turns amounts into parts.
#[derive(Debug, Clone)]
pub(super) struct Scale([i64; RESOURCES]);

impl Scale {
    pub(super) fn of(batch: &Batch) -> Self {
        let mut most = [1; RESOURCES];
        for machine in &batch.machines {
            for (most, capacity) in most.iter_mut().zip(machine.capacity) {
                *most = capacity.max(*most);
            }
        }
        Self(most)
    }

    /// Each resource, rounded down, at most [`ONE`].
    pub(super) fn parts(&self, amounts: &Vector) -> Vector {
        let mut parts = [0; RESOURCES];
        for ((part, amount), most) in parts.iter_mut().zip(amounts).zip(self.0) {
            let exact = i128::from((*amount).clamp(0, most)) * i128::from(ONE) / i128::from(most);
            *part = i64::try_from(exact).unwrap_or(ONE);
        }
        parts
    }
}

/// The machines that an optimum needs: those to which at most `rows` others are at least equal in everything. Any other has
/// a better one that is idle, whatever the solution: a unit would cost no more there, and the idle one's price proves
/// that the optimum of those that are left is one of all.
///
/// `worth` is what decides: what is free, and the load where it sets the cost. In and out: indices of machines,
/// ascending.
pub(super) fn that_matter<const N: usize>(
    machines: &[usize],
    worth: impl Fn(usize) -> [i64; N],
    rows: usize,
) -> Vec<usize> {
    if machines.len() <= rows + 1 {
        return machines.to_vec();
    }
    let mut order: Vec<(f64, usize, [i64; N])> = machines
        .iter()
        .map(|machine| {
            let worth = worth(*machine);
            (size(&worth), *machine, worth)
        })
        .collect();
    // Nobody is smaller than one it is better than, but for rounding, which keeps a machine too many at most.
    order.sort_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)));
    let mut kept: Vec<usize> = Vec::new();
    let mut columns: [Vec<i64>; N] = std::array::from_fn(|_| Vec::new());
    for (_, machine, worth) in order {
        if betters(&columns, &worth, rows + 1) <= rows {
            kept.push(machine);
            columns.iter_mut().zip(worth).for_each(|(column, part)| column.push(part));
        }
    }
    kept.sort_unstable();
    kept
}

/// Grows with every number, and none drowns the others.
#[expect(clippy::cast_precision_loss, reason = "an order needs no 53 bits")]
fn size<const N: usize>(worth: &[i64; N]) -> f64 {
    worth.iter().map(|part| (part.max(&0) + 1) as f64).map(f64::ln).sum()
}

/// How many of the columns' machines have at least so much; counting stops soon after `enough`.
fn betters<const N: usize>(columns: &[Vec<i64>; N], worth: &[i64; N], enough: usize) -> usize {
    const STRETCH: usize = 64;
    let length = columns[0].len();
    let mut count = 0;
    for from in (0..length).step_by(STRETCH) {
        let mut better = [true; STRETCH];
        for (column, least) in columns.iter().zip(worth) {
            let stretch = &column[from..length.min(from + STRETCH)];
            better.iter_mut().zip(stretch).for_each(|(better, part)| *better &= part >= least);
            better[stretch.len()..].fill(false);
        }
        count += better.iter().filter(|better| **better).count();
        if count >= enough {
            break;
        }
    }
    count
}
