//! What the orders of a lab come to: means with their 95% intervals, ratios taken order by order.

use super::cell::Cell;
use super::report::{REFERENCE, SeriesRow, megabytes};
use crate::checks::print_table;
use edgeloom_sim::streaming::Ratio;
use serde::Serialize;

/// One profile on one lab, over all orders.
#[derive(Debug, Clone, Serialize)]
pub(super) struct MeanRow {
    pub(super) profile: String,
    #[serde(flatten)]
    pub(super) cell: Cell,
    pub(super) orders: usize,
    /// In all orders together, as are the bytes.
    pub(super) placed: usize,
    /// From the registry.
    pub(super) bytes_fetched: u64,
    pub(super) std: f64,
    /// Over those of the reference, as is all below; none without it.
    pub(super) bytes_ratio: Option<Ratio>,
    pub(super) seconds_ratio: Option<Ratio>,
    pub(super) std_ratio: Option<Ratio>,
    /// Of the layers that were asked for, each once: no placement gets below it.
    pub(super) least_ratio: Option<Ratio>,
}

/// A figure of a row.
type Figure = fn(&SeriesRow) -> f64;

/// One a profile, of all rows of a lab.
pub(super) fn of_cell(cell: &[SeriesRow]) -> Vec<MeanRow> {
    let first_order = cell.iter().take_while(|row| row.order == cell[0].order);
    first_order.map(|first| of_profile(cell, &first.profile)).collect()
}

#[expect(clippy::cast_precision_loss, reason = "megabytes of a handful of orders")]
fn of_profile(cell: &[SeriesRow], profile: &str) -> MeanRow {
    let of = |profile: &str| cell.iter().filter(|row| row.profile == profile).collect::<Vec<_>>();
    let (own, reference) = (of(profile), of(REFERENCE));
    // A run that broke off has no rows of its last order for some.
    let both = own.len().min(reference.len());
    let ratio = |figure: Figure, over: Figure| {
        let figures =
            |rows: &[&SeriesRow], of: Figure| rows[..both].iter().map(|row| of(row)).collect::<Vec<_>>();
        let (values, over) = (figures(&own, figure), figures(&reference, over));
        (both > 0).then(|| Ratio::of(&values, &over, f64::MIN_POSITIVE))
    };
    let bytes: Figure = |row| row.bytes_fetched as f64;
    MeanRow {
        profile: profile.to_owned(),
        cell: cell[0].cell,
        orders: own.len(),
        placed: own.iter().map(|row| row.placed).sum(),
        bytes_fetched: own.iter().map(|row| row.bytes_fetched).sum(),
        std: own.iter().map(|row| row.std).sum::<f64>() / own.len().max(1) as f64,
        bytes_ratio: ratio(bytes, bytes),
        seconds_ratio: ratio(|row| row.seconds, |row| row.seconds),
        std_ratio: ratio(|row| row.std, |row| row.std),
        least_ratio: ratio(|row| row.bytes_least as f64, bytes),
    }
}

/// With half the 95% interval, where there is one.
pub(super) fn told(ratio: &Ratio) -> String {
    match ratio.ci95 {
        Some(half) => format!("{:.3} ±{half:.3}", ratio.mean),
        None => format!("{:.3}", ratio.mean),
    }
}

pub(super) fn print(cell: &[MeanRow]) {
    let line = |row: &MeanRow| {
        let ratios = [&row.bytes_ratio, &row.seconds_ratio, &row.std_ratio];
        let ratios = ratios.map(|ratio| ratio.as_ref().map_or("-".to_owned(), told));
        let sums = [row.profile.clone(), row.placed.to_string(), megabytes(row.bytes_fetched)];
        sums.into_iter().chain(ratios).collect()
    };
    let header = ["profile", "placed", "MB", "MB to kube", "seconds to kube", "STD to kube"];
    print_table(&header, &cell.iter().map(line).collect::<Vec<_>>());
    if let Some(least) = &cell[0].least_ratio {
        println!("  every layer once: {} of what kube fetches", told(least));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::units::BitRate;

    fn row(profile: &str, order: u64, bytes_fetched: u64) -> SeriesRow {
        let cell = Cell { nodes: 4, uplink: BitRate(1) };
        SeriesRow { order, bytes_fetched, bytes_least: 30, ..SeriesRow::new(&cell, profile, Vec::new()) }
    }

    #[test]
    fn ratios_are_taken_order_by_order() {
        let rows = [row("kube", 1, 100), row("lrs", 1, 50), row("kube", 2, 60), row("lrs", 2, 60)];
        let [kube, lrs] = of_cell(&rows).try_into().unwrap();
        assert_eq!(kube.bytes_ratio.map(|ratio| ratio.mean), Some(1.0));
        assert_eq!((lrs.orders, lrs.bytes_fetched), (2, 110));
        let ratio = lrs.bytes_ratio.unwrap();
        assert!((ratio.mean - 0.75).abs() < 1e-12 && ratio.ci95.is_some());
        assert!((lrs.least_ratio.unwrap().mean - 0.4).abs() < 1e-12);
    }

    #[test]
    fn an_order_that_broke_off_is_left_out_of_ratios() {
        let rows = [row("kube", 1, 100), row("lrs", 1, 50), row("kube", 2, 60)];
        let [kube, lrs] = of_cell(&rows).try_into().unwrap();
        assert_eq!((kube.orders, lrs.orders), (2, 1));
        assert_eq!(lrs.bytes_ratio.map(|ratio| ratio.mean), Some(0.5));
        assert!(of_cell(&[row("lrs", 1, 50)])[0].bytes_ratio.is_none());
    }
}
