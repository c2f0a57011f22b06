//! Readings, charges and open records by themselves; the accounts as a whole are in `tests/usage.rs`.

use super::charge::{charge, owed};
use super::reading::{Bounds, Reading, Used};
use super::{Book, Change, Key};
use edgeloom_common::job::{Service, Sla};
use edgeloom_common::price::{Factors, Micros, Prices, Promises};
use edgeloom_common::report::TaskTotal;
use edgeloom_common::units::{Bytes, MilliCores};
use edgeloom_common::usage::{Tariff, UsageEnd, UsageView};

/// A closed record that begins at a time.
pub(crate) fn closed(number: u64, job: &str, from_ms: u64) -> UsageView {
    UsageView {
        number: Some(number),
        job: job.parse().unwrap(),
        task: "t".parse().unwrap(),
        node: "n1".parse().unwrap(),
        container: "c".to_owned(),
        copies: 1,
        copy_of: None,
        sla: edgeloom_common::job::Sla::default(),
        accepted_ms: 1,
        from_ms,
        until_ms: Some(from_ms + 1),
        end: UsageEnd::Ended,
        heard_ms: from_ms + 1,
        runs: 1,
        queued_ms: 0,
        starting_ms: 0,
        running_ms: 1,
        cpu_us: 0,
        memory_byte_s: 0,
        reserved_cpu_us: 0,
        reserved_memory_byte_s: 0,
        sent_bytes: 0,
        received_bytes: 0,
        pulled_bytes: 0,
        charge: None,
    }
}

const BOUNDS: Bounds = Bounds { cpu: MilliCores(4_000), memory: Bytes(1 << 30) };

fn total(run: u64, age_ms: u64) -> TaskTotal {
    TaskTotal {
        job: "j".parse().unwrap(),
        task: "t".parse().unwrap(),
        container: "c".to_owned(),
        run,
        age_ms,
        cpu_us: age_ms * 500,
        sent: Bytes(age_ms * 10),
        received: Bytes(age_ms * 20),
        memory: Bytes(1_000_000),
        memory_byte_s: age_ms * 1_000,
        memory_from_ms: 0,
    }
}

fn reading(run: u64, age_ms: u64) -> Reading {
    Reading::of(&total(run, age_ms), BOUNDS)
}

#[test]
fn what_lies_between_two_readings_of_a_run_counts_once() {
    let used = reading(1, 9_000).since(Some(&reading(1, 4_000)), BOUNDS);
    let expected = Used {
        started: false,
        running_ms: 5_000,
        cpu_us: 2_500_000,
        memory_byte_s: 5_000_000,
        sent: 50_000,
        received: 100_000,
    };
    assert_eq!(used, expected);
    assert_eq!(reading(1, 9_000).since(Some(&reading(1, 9_000)), BOUNDS), Used::default());
}

#[test]
fn another_run_counts_from_its_start() {
    for before in [None, Some(&reading(1, 60_000))] {
        let used = reading(2, 4_000).since(before, BOUNDS);
        assert_eq!((used.started, used.running_ms, used.cpu_us), (true, 4_000, 2_000_000));
        assert_eq!((used.memory_byte_s, used.sent), (4_000_000, 40_000));
    }
}

#[test]
fn a_counter_that_went_back_begins_anew() {
    let before = Reading::of(&TaskTotal { cpu_us: 4_000_000, ..total(1, 4_000) }, BOUNDS);
    let after = Reading::of(&TaskTotal { cpu_us: 300_000, ..total(1, 5_000) }, BOUNDS);
    assert_eq!(after.since(Some(&before), BOUNDS).cpu_us, 300_000);
}

#[test]
fn an_agent_that_begins_anew_leaves_a_gap_that_the_lesser_memory_fills() {
    // It looked until 4 s, and again from 7 s on.
    let before = reading(1, 4_000);
    let said = TaskTotal {
        memory: Bytes(600_000),
        memory_byte_s: 1_200_000,
        memory_from_ms: 7_000,
        ..total(1, 9_000)
    };
    let used = Reading::of(&said, BOUNDS).since(Some(&before), BOUNDS);
    assert_eq!((used.running_ms, used.memory_byte_s), (5_000, 1_200_000 + 3 * 600_000));
    // A run that was only looked at after a while.
    let used = Reading::of(&said, BOUNDS).since(None, BOUNDS);
    assert_eq!(used.memory_byte_s, 1_200_000 + 7 * 600_000);
}

#[test]
fn no_more_is_believed_than_a_node_can_do() {
    let most = u64::MAX;
    let said = TaskTotal {
        cpu_us: most,
        sent: Bytes(most),
        received: Bytes(most),
        memory: Bytes(most),
        memory_byte_s: most,
        container: "x".repeat(1_000),
        ..total(1, 10_000)
    };
    let used = Reading::of(&said, BOUNDS).since(None, BOUNDS);
    assert_eq!(used.cpu_us, 10 * 4_000_000 + 1_000_000);
    assert_eq!(used.memory_byte_s, 10 << 30);
    assert!(used.sent < 200_000_000_000 && used.received == used.sent);
    // Age and start of the agent that make no sense either.
    let said = TaskTotal { age_ms: most, memory_from_ms: most, ..said };
    let used = Reading::of(&said, BOUNDS).since(Some(&Reading::of(&total(1, 5), BOUNDS)), BOUNDS);
    assert!(used.running_ms < 400_000_000_000 && used.memory_byte_s < most && used.cpu_us < most);
}

fn tariff() -> Tariff {
    let twice = Factors { premium: Micros(2_000_000), ..Factors::default() };
    let prices = Prices {
        currency: "EUR".to_owned(),
        core_hour: Micros(40_000),
        gb_hour: Micros(5_000),
        gb_sent: Micros(10_000),
        gb_pulled: Micros(2_000),
        reputation: twice,
        waiting_credit_hour: Micros(360_000),
        waiting_promised: Promises { premium: Some(10), ..Promises::default() },
        ..Prices::default()
    };
    Tariff { version: 3, prices }
}

/// Two core-hours, three GB-hours, four GB sent, half a GB pulled; waited for 15 s.
fn used(sla: Sla) -> UsageView {
    UsageView {
        sla,
        queued_ms: 12_000,
        starting_ms: 3_000,
        cpu_us: 2 * 3_600_000_000,
        memory_byte_s: 3 * 3_600_000_000_000,
        sent_bytes: 4_000_000_000,
        pulled_bytes: 500_000_000,
        ..closed(1, "j", 0)
    }
}

#[test]
fn an_invoice_is_exact() {
    let plain = charge(&used(Sla::default()), &tariff(), Micros(0));
    let parts =
        [plain.cpu_micros, plain.memory_micros, plain.sent_micros, plain.pulled_micros, plain.credit_micros];
    assert_eq!(parts.map(|part| part.0), [80_000, 15_000, 40_000, 1_000, 0]);
    assert_eq!(
        (plain.total_micros, plain.prices_version, plain.currency.as_str()),
        (Micros(136_000), 3, "EUR")
    );
    // A premium reputation doubles cores and memory; 5 s over the promise are credited.
    let premium = charge(&used(Sla::all(Service::Premium)), &tariff(), Micros(0));
    let parts = [premium.cpu_micros, premium.memory_micros, premium.sent_micros, premium.credit_micros];
    assert_eq!(parts.map(|part| part.0), [160_000, 30_000, 40_000, 500]);
    assert_eq!(premium.total_micros, Micros(231_000 - 500));
}

#[test]
fn parts_of_a_use_never_cost_more_than_the_whole() {
    let of = |cpu_us| charge(&UsageView { cpu_us, ..closed(1, "j", 0) }, &tariff(), Micros(0)).total_micros.0;
    for cpu_us in [1, 89_999, 90_000, 90_001, 7_777_777_777] {
        let whole = of(cpu_us);
        assert!(of(cpu_us / 2) + of(cpu_us - cpu_us / 2) <= whole, "{cpu_us}");
        assert_eq!(whole, cpu_us * 40_000 / 3_600_000_000);
    }
}

#[test]
fn a_credit_is_no_more_than_the_rest_and_what_is_over_is_owed() {
    let waited = UsageView { queued_ms: 3_610_000, ..closed(1, "j", 0) };
    let waited = UsageView { sla: Sla::all(Service::Premium), cpu_us: 3_600_000_000, ..waited };
    let (tariff, owing) = (tariff(), Micros(0));
    let charged = charge(&waited, &tariff, owing);
    assert_eq!((charged.credit_micros, charged.total_micros), (Micros(80_000), Micros(0)));
    assert_eq!(owed(&waited, &tariff.prices, owing), Micros(360_000));
    let later = UsageView { queued_ms: 0, ..waited };
    assert_eq!(charge(&later, &tariff, Micros(280_000)).credit_micros, Micros(80_000));
}

#[test]
fn absurd_figures_saturate() {
    let most = u64::MAX;
    let absurd = UsageView {
        cpu_us: most,
        memory_byte_s: most,
        sent_bytes: most,
        pulled_bytes: most,
        ..used(Sla::default())
    };
    let dear =
        Prices { core_hour: Micros(most), gb_hour: Micros(most), gb_sent: Micros(most), ..tariff().prices };
    assert!(charge(&absurd, &Tariff { version: 1, prices: dear }, Micros(most)).total_micros.0 == 0);
}

#[test]
fn a_run_that_was_closed_with_its_node_is_known_again() {
    let mut book = Book::default();
    let key: Key = ("j".parse().unwrap(), 1, "t".parse().unwrap(), "n1".parse().unwrap());
    let rest = |run| Change { rested: vec![reading(run, 5).rested(key.clone())], ..Change::default() };
    book.apply(rest(1));
    book.apply(rest(2));
    assert!(book.has_rested(&key, &reading(2, 9)) && !book.has_rested(&key, &reading(1, 9)));
    book.forget(&"j".parse().unwrap());
    assert!(book.is_unused());
}
