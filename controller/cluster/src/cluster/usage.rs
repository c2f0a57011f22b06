//! What containers used, from the owner and from the archive.

use super::Cluster;
use crate::usage::UsageQuery;
use crate::usage::archive::{self, Page};
use edgeloom_common::usage::{UsageList, UsageView};
use std::collections::BTreeMap;
use std::io;

impl Cluster {
    /// The wanted records: closed ones by their numbers, and with the last of them those that are open. None without
    /// an owner.
    ///
    /// # Errors
    /// When the archive does not read.
    pub async fn usage(&self, query: UsageQuery) -> io::Result<Option<UsageList>> {
        // The owner first: what it moves to the archive meanwhile is found in both, and not in neither.
        let asked = query.clone();
        let Some(recent) = self.ask(move |owner| owner.usage(&asked)).await else { return Ok(None) };
        let path = self.state_dir().join(archive::FOLDER);
        let wanted = query.clone();
        let read = tokio::task::spawn_blocking(move || archive::read(&path, &wanted)).await;
        Ok(Some(merge(read.map_err(io::Error::other)??, recent, query.limit)))
    }
}

/// One page of both.
fn merge(archived: Page, recent: UsageList, limit: usize) -> UsageList {
    let mut closed: BTreeMap<u64, UsageView> = BTreeMap::new();
    let mut open = Vec::new();
    for record in archived.records.into_iter().chain(recent.records) {
        match record.number {
            Some(number) => drop(closed.insert(number, record)),
            None => open.push(record),
        }
    }
    let more = archived.more || closed.len() > limit;
    let mut records: Vec<UsageView> = closed.into_values().take(limit).collect();
    let next = records.last().and_then(|record| record.number).filter(|_| more);
    if next.is_none() {
        records.extend(open);
    }
    UsageList { records, next, unreadable: archived.unreadable, ..recent }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::tests::closed;

    fn page(numbers: std::ops::RangeInclusive<u64>, more: bool) -> Page {
        Page { records: numbers.map(|number| closed(number, "j", number)).collect(), more, unreadable: 0 }
    }

    fn recent(numbers: std::ops::RangeInclusive<u64>) -> UsageList {
        let open = UsageView { number: None, ..closed(1, "j", 9) };
        let records = page(numbers, false).records.into_iter().chain([open]).collect();
        UsageList { records, next: None, counted_since_ms: 1, unreadable: 0, tariff: None }
    }

    fn numbers(list: &UsageList) -> Vec<Option<u64>> {
        list.records.iter().map(|record| record.number).collect()
    }

    #[test]
    fn what_is_in_both_is_listed_once_and_open_records_come_last() {
        let merged = merge(page(1..=3, false), recent(2..=4), 10);
        assert_eq!((numbers(&merged), merged.next), (vec![Some(1), Some(2), Some(3), Some(4), None], None));
    }

    #[test]
    fn a_full_page_tells_where_the_next_begins() {
        let merged = merge(page(1..=3, false), recent(4..=5), 4);
        assert_eq!((numbers(&merged), merged.next), (vec![Some(1), Some(2), Some(3), Some(4)], Some(4)));
        // Recent ones stay behind what the archive has not told yet.
        let merged = merge(page(1..=2, true), recent(3..=5), 2);
        assert_eq!((numbers(&merged), merged.next), (vec![Some(1), Some(2)], Some(2)));
        let last = merge(page(5..=5, false), recent(6..=6), 2);
        assert_eq!((numbers(&last), last.next), (vec![Some(5), Some(6), None], None));
    }
}
