//! Records for people: a line a container, whatever records it has, and a line a job.

use super::moment;
use crate::table::Table;
use crate::units::{UNKNOWN, bytes};
use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_common::price::Micros;
use edgeloom_common::usage::{UsageEnd, UsageList, UsageView};
use std::collections::BTreeMap;

/// Sums of some records.
#[derive(Debug, Default)]
struct Sum {
    containers: usize,
    waited_ms: u64,
    running_ms: u64,
    cpu_us: u64,
    reserved_cpu_us: u64,
    memory_byte_s: u64,
    reserved_memory_byte_s: u64,
    sent: u64,
    pulled: u64,
    /// What is to pay in each currency, and what was credited.
    cost: BTreeMap<String, (u64, u64)>,
}

impl Sum {
    fn of<'a>(records: impl Iterator<Item = &'a UsageView>) -> Self {
        let mut sum = Self::default();
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        for record in records {
            add(&mut sum.waited_ms, record.waited_ms());
            add(&mut sum.running_ms, record.running_ms);
            add(&mut sum.cpu_us, record.cpu_us);
            add(&mut sum.reserved_cpu_us, record.reserved_cpu_us);
            add(&mut sum.memory_byte_s, record.memory_byte_s);
            add(&mut sum.reserved_memory_byte_s, record.reserved_memory_byte_s);
            add(&mut sum.sent, record.sent_bytes);
            add(&mut sum.pulled, record.pulled_bytes);
            if let Some(charge) = &record.charge {
                let (cost, credit) = sum.cost.entry(charge.currency.clone()).or_default();
                add(cost, charge.total_micros.0);
                add(credit, charge.credit_micros.0);
            }
        }
        sum
    }

    fn cells(&self) -> [String; 8] {
        let pair = |used: String, reserved: String| format!("{used} / {reserved}");
        [
            seconds(self.waited_ms),
            seconds(self.running_ms),
            pair(core_hours(self.cpu_us), core_hours(self.reserved_cpu_us)),
            pair(gb_hours(self.memory_byte_s), gb_hours(self.reserved_memory_byte_s)),
            bytes(self.sent),
            bytes(self.pulled),
            self.money(|(_, credit)| *credit),
            self.money(|(cost, _)| *cost),
        ]
    }

    fn money(&self, of: impl Fn(&(u64, u64)) -> u64) -> String {
        let amounts = self.cost.iter().map(|(currency, both)| format!("{} {currency}", Micros(of(both))));
        let text = amounts.collect::<Vec<_>>().join(" + ");
        if text.is_empty() { UNKNOWN.to_owned() } else { text }
    }
}

/// Cells of [`Sum::cells`].
const FIGURES: [&str; 8] = [
    "WAITED",
    "RAN",
    "CORE-HOURS USED / RESERVED",
    "GB-HOURS USED / RESERVED",
    "SENT",
    "PULLED",
    "CREDIT",
    "COST",
];

/// One container: a job of a name may have been run several times.
type Container<'a> = (&'a JobName, u64, &'a TaskName, &'a NodeId);

pub(super) fn text(list: &UsageList) -> String {
    let mut containers: BTreeMap<Container<'_>, Vec<&UsageView>> = BTreeMap::new();
    for record in &list.records {
        let key = (&record.job, record.accepted_ms, &record.task, &record.node);
        containers.entry(key).or_default().push(record);
    }
    let notes = notes(list);
    if containers.is_empty() {
        return format!("nothing was used\n{notes}");
    }
    format!("{}\n{}{notes}", lines(&containers), totals(&containers))
}

/// A line on the job that is there now; jobs that had its name before are left out.
pub(super) fn so_far(list: &UsageList) -> String {
    let open = list.records.iter().filter(|record| record.end == UsageEnd::Open);
    let Some(accepted_ms) = open.map(|record| record.accepted_ms).max() else { return String::new() };
    let sum = Sum::of(list.records.iter().filter(|record| record.accepted_ms == accepted_ms));
    let [waited, ran, cores, memory, sent, pulled, _, cost] = sum.cells();
    format!(
        "\nused so far: {cores} core-hours, {memory} GB-hours (used / reserved) in {ran} of its containers after {waited} of \
         waiting; {sent} sent, {pulled} pulled; cost {cost}\n"
    )
}

fn lines(containers: &BTreeMap<Container<'_>, Vec<&UsageView>>) -> String {
    let mut table = Table::new(["JOB", "TASK", "NODE", "COPIES", "FROM", "UNTIL"].into_iter().chain(FIGURES));
    for ((job, _, task, node), records) in containers {
        let from_ms = records.iter().map(|record| record.from_ms).min().unwrap_or(0);
        let copies = records.iter().map(|record| record.copies).max().unwrap_or(1);
        let place = [job.to_string(), task.to_string(), node.to_string(), copies.to_string()];
        let times = [moment::text(from_ms), until(records)];
        let figures = Sum::of(records.iter().copied()).cells();
        table.row(place.into_iter().chain(times).chain(figures));
    }
    table.text()
}

/// When it ended, and how, where that is not by itself.
fn until(records: &[&UsageView]) -> String {
    if records.iter().any(|record| record.end == UsageEnd::Open) {
        return "still there".to_owned();
    }
    let last = records.iter().max_by_key(|record| record.until_ms);
    last.map_or_else(String::new, |last| {
        let at = last.until_ms.map(moment::text).unwrap_or_default();
        match last.end {
            UsageEnd::UntilLastHeard => format!("{at}, last heard"),
            _ => at,
        }
    })
}

fn totals(containers: &BTreeMap<Container<'_>, Vec<&UsageView>>) -> String {
    let mut jobs: BTreeMap<&JobName, (usize, Vec<&UsageView>)> = BTreeMap::new();
    for ((job, ..), records) in containers {
        let (count, all) = jobs.entry(job).or_default();
        *count += 1;
        all.extend(records);
    }
    let mut table = Table::new(["TOTAL", "CONTAINERS"].into_iter().chain(FIGURES));
    let mut row = |name: String, sum: &Sum| {
        table.row([name, sum.containers.to_string()].into_iter().chain(sum.cells()));
    };
    for (job, (containers, records)) in &jobs {
        row(job.to_string(), &Sum { containers: *containers, ..Sum::of(records.iter().copied()) });
    }
    if jobs.len() > 1 {
        let records = jobs.values().flat_map(|(_, records)| records.iter().copied());
        row("all jobs".to_owned(), &Sum { containers: containers.len(), ..Sum::of(records) });
    }
    table.text()
}

fn notes(list: &UsageList) -> String {
    let mut notes = format!("counted since {}\n", moment::text(list.counted_since_ms));
    if list.unreadable > 0 {
        notes.push_str(&format!(
            "{} kept records are damaged on the controller's disk and left out\n",
            list.unreadable
        ));
    }
    if list.tariff.is_none() {
        notes.push_str("nothing is charged: the controller's configuration has no [prices]\n");
    }
    notes
}

/// With one decimal, rounded down.
fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1_000, ms / 100 % 10)
}

fn core_hours(us: u64) -> String {
    ten_thousandths(u128::from(us), 3_600_000_000)
}

fn gb_hours(byte_s: u64) -> String {
    ten_thousandths(u128::from(byte_s), 3_600_000_000_000)
}

/// With four decimals, rounded down.
fn ten_thousandths(quantity: u128, unit: u128) -> String {
    let parts = quantity * 10_000 / unit;
    format!("{}.{:04}", parts / 10_000, parts % 10_000)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use edgeloom_common::job::{Service, Sla};
    use edgeloom_common::usage::Charge;

    /// A closed record of an hour and a half of a core, and the open one behind it.
    pub(in crate::usage) fn list() -> UsageList {
        let charge = |total| Charge {
            currency: "EUR".to_owned(),
            prices_version: 1,
            cpu_micros: Micros(total),
            memory_micros: Micros(0),
            sent_micros: Micros(0),
            pulled_micros: Micros(0),
            credit_micros: Micros(500),
            total_micros: Micros(total),
        };
        let closed = UsageView {
            number: Some(4),
            job: "cats".parse().unwrap(),
            task: "detect".parse().unwrap(),
            node: "n1".parse().unwrap(),
            container: "4be1".to_owned(),
            copies: 2,
            copy_of: Some("find".parse().unwrap()),
            sla: Sla { reputation: Some(Service::Premium), ..Sla::default() },
            accepted_ms: 1_000,
            from_ms: 14_000,
            until_ms: Some(86_400_000),
            end: UsageEnd::Day,
            heard_ms: 86_399_000,
            runs: 1,
            queued_ms: 12_000,
            starting_ms: 1_250,
            running_ms: 86_386_000,
            cpu_us: 5_400_000_000,
            memory_byte_s: 3_600_000_000_000,
            reserved_cpu_us: 7_200_000_000,
            reserved_memory_byte_s: 7_200_000_000_000,
            sent_bytes: 12_000_000,
            received_bytes: 5,
            pulled_bytes: 300,
            charge: Some(charge(60_000)),
        };
        let open = UsageView {
            number: None,
            from_ms: 86_400_000,
            until_ms: None,
            end: UsageEnd::Open,
            queued_ms: 0,
            starting_ms: 0,
            charge: Some(charge(1)),
            ..closed.clone()
        };
        let records = vec![closed, open];
        UsageList { records, next: None, counted_since_ms: 0, unreadable: 0, tariff: None }
    }

    #[test]
    fn a_container_is_one_line_and_a_job_has_its_total() {
        let text = text(&list());
        let rows: Vec<&str> = text.lines().collect();
        assert!(
            rows[1].starts_with("cats  detect  n1    2       1970-01-01 00:00:14Z  still there"),
            "{text}"
        );
        assert!(rows[1].contains("13.2 s") && rows[1].contains("3.0000 / 4.0000"), "{text}");
        assert!(rows[1].contains("2.0000 / 4.0000") && rows[1].contains("24 MB"), "{text}");
        assert!(rows[1].ends_with("0.001 EUR  0.060001 EUR"), "{text}");
        assert!(rows[4].starts_with("cats   1 "), "{text}");
        assert_eq!(rows.len(), 7, "{text}");
    }

    #[test]
    fn a_job_shows_what_it_used_since_it_was_accepted() {
        let mut list = list();
        let before = UsageView { accepted_ms: 1, ..list.records[0].clone() };
        list.records.insert(0, before);
        let line = so_far(&list);
        assert!(
            line.contains("3.0000 / 4.0000 core-hours") && line.ends_with("cost 0.060001 EUR\n"),
            "{line}"
        );
        list.records.truncate(2);
        assert_eq!(so_far(&list), "");
    }

    #[test]
    fn what_was_only_heard_until_some_time_says_so() {
        let mut list = list();
        list.records.pop();
        list.records[0].end = UsageEnd::UntilLastHeard;
        list.records[0].charge = None;
        let text = text(&list);
        assert!(text.contains("1970-01-02 00:00:00Z, last heard"), "{text}");
        assert!(text.contains("nothing is charged"), "{text}");
        let nothing = super::text(&UsageList { records: Vec::new(), unreadable: 2, ..list });
        assert!(
            nothing.starts_with("nothing was used\n") && nothing.contains("2 kept records are damaged"),
            "{nothing}"
        );
    }
}
