//! What containers used: counted once, whoever was away meanwhile.

use super::away::{node, place, world};
use super::regain::lose_and_repair;
use super::world::{World, nothing, observed, order};
use crate::nodes::NodeMessage;
use crate::usage::UsageQuery;
use crate::usage::archive;
use edgeloom_common::price::{Micros, Prices};
use edgeloom_common::report::{Observed, PullState, Report, TaskTotal};
use edgeloom_common::units::Bytes;
use edgeloom_common::usage::{UsageEnd, UsageView};

const DAY_MS: u64 = 86_400_000;

/// Half a core and 2 MB since the start of a run.
fn total(task: &str, run: u64, age_s: u64) -> TaskTotal {
    TaskTotal {
        job: "a".parse().unwrap(),
        task: task.parse().unwrap(),
        container: format!("c{run}"),
        run,
        age_ms: age_s * 1_000,
        cpu_us: age_s * 500_000,
        sent: Bytes(age_s * 1_000),
        received: Bytes(0),
        memory: Bytes(2_000_000),
        memory_byte_s: age_s * 2_000_000,
        memory_from_ms: 0,
    }
}

fn says(world: &mut World, from: &str, totals: Vec<TaskTotal>) {
    world.owner.observe(&node(from), NodeMessage::Report(Report { totals, ..Report::default() }));
}

/// Every record, closed ones first.
fn records(world: &World) -> Vec<UsageView> {
    let all = UsageQuery { limit: usize::MAX, ..UsageQuery::default() };
    let mut records = archive::read(&world.path().join(archive::FOLDER), &all).unwrap().records;
    records.extend(world.owner.usage(&all).records);
    records
}

fn of_task(world: &World, task: &str) -> Vec<UsageView> {
    records(world).into_iter().filter(|record| record.task.as_str() == task).collect()
}

fn cpu_s(records: &[UsageView]) -> Vec<u64> {
    records.iter().map(|record| record.cpu_us / 1_000_000).collect()
}

/// Job `a` runs, with detect on n2 for ten seconds.
fn counted() -> World {
    let mut world = World::new();
    world.pass(5_000);
    world.owner.submit(order("a")).unwrap();
    world.settle();
    world.pass(10_000);
    says(&mut world, "n2", vec![total("detect", 1, 10)]);
    world
}

#[test]
fn a_record_holds_what_was_used_and_what_was_reserved() {
    let mut world = counted();
    world.pass(10_000);
    says(&mut world, "n2", vec![total("detect", 1, 20)]);
    let records = of_task(&world, "detect");
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!((record.cpu_us, record.memory_byte_s, record.sent_bytes), (10_000_000, 40_000_000, 20_000));
    // Its limits are 100m and 16 MiB.
    assert_eq!((record.reserved_cpu_us, record.reserved_memory_byte_s), (2_000_000, 20 << 24));
    assert_eq!((record.running_ms, record.runs, record.copies), (20_000, 1, 1));
    assert_eq!((record.end, record.number, record.charge.is_none()), (UsageEnd::Open, None, true));
    assert_eq!((record.accepted_ms, record.from_ms, record.waited_ms()), (6_000, 6_000, 0));
}

#[test]
fn waiting_is_counted_from_acceptance_to_the_start() {
    let mut world = World::new();
    // There is no n3 for track.
    world.cut_off("n3");
    world.live(60);
    world.owner.submit(order("a")).unwrap();
    world.live(30);
    world.bring_back("n3");
    world.live(5);
    says(&mut world, "n2", vec![total("detect", 1, 3)]);
    let [record] = of_task(&world, "detect").try_into().unwrap();
    let UsageView { accepted_ms, queued_ms, starting_ms, from_ms, .. } = record;
    assert_eq!(queued_ms / 1_000, 30, "{queued_ms}");
    assert_eq!(from_ms, accepted_ms + queued_ms + starting_ms);
}

#[test]
fn a_container_that_starts_again_goes_on_in_its_record() {
    let mut world = counted();
    says(&mut world, "n2", vec![total("detect", 2, 4)]);
    // Made anew there.
    says(&mut world, "n2", vec![TaskTotal { container: "other".to_owned(), ..total("detect", 2, 4) }]);
    let [record] = of_task(&world, "detect").try_into().unwrap();
    assert_eq!((record.cpu_us, record.runs, record.container.as_str()), (9_000_000, 3, "other"));
}

/// n2 shows what it has, and what runs used to their ends.
fn shows_ends(world: &mut World, ended: Vec<TaskTotal>) {
    let seen = Observed { ended, ..observed(&world.held[&node("n2")].clone()) };
    world.owner.observe(&node("n2"), NodeMessage::Observed(seen));
}

#[test]
fn a_run_is_counted_to_its_end_once_however_often_that_is_told() {
    let mut world = counted();
    let last = total("detect", 1, 12);
    shows_ends(&mut world, vec![last.clone()]);
    assert_eq!(cpu_s(&of_task(&world, "detect")), [6]);
    says(&mut world, "n2", vec![total("detect", 1, 11)]);
    assert_eq!(cpu_s(&of_task(&world, "detect")), [6], "a report that was on its way");
    says(&mut world, "n2", vec![total("detect", 3, 4)]);
    // One between the two that no report has seen.
    shows_ends(&mut world, vec![last.clone(), total("detect", 2, 2)]);
    assert_eq!(cpu_s(&of_task(&world, "detect")), [8], "a run before the one that is counted came too late");
    shows_ends(&mut world, vec![last.clone(), total("detect", 3, 6), total("detect", 4, 2)]);
    assert_eq!(cpu_s(&of_task(&world, "detect")), [10]);
    world.owner.keep_open().unwrap();
    let mut world = world.restart();
    world.connect();
    world.settle();
    shows_ends(&mut world, vec![last, total("detect", 3, 6), total("detect", 4, 2)]);
    let [record] = of_task(&world, "detect").try_into().unwrap();
    assert_eq!((record.cpu_us, record.runs), (10_000_000, 3));
}

#[test]
fn an_end_that_is_told_again_opens_no_record_anew() {
    let mut world = counted();
    let stop = "a".parse().unwrap();
    world.owner.stop(&stop).unwrap();
    let gone = Observed { ended: vec![total("detect", 1, 12)], ..nothing("n2") };
    world.settle();
    world.live(5);
    assert_eq!(of_task(&world, "detect").len(), 1);
    world.owner.submit(order("a")).unwrap();
    world.settle();
    let before = cpu_s(&of_task(&world, "detect"));
    let shown = observed(&world.held[&node("n2")].clone());
    world
        .owner
        .observe(&node("n2"), NodeMessage::Observed(Observed { containers: shown.containers, ..gone }));
    let after = cpu_s(&of_task(&world, "detect"));
    assert_eq!(after.iter().sum::<u64>(), before.iter().sum::<u64>());
}

#[test]
fn a_controller_that_was_killed_goes_on_and_counts_nothing_twice() {
    for kept in [false, true] {
        let mut world = counted();
        if kept {
            world.owner.keep_open().unwrap();
        }
        let mut world = world.restart();
        world.owner.now_ms += 3_600_000;
        world.connect();
        world.settle();
        says(&mut world, "n2", vec![total("detect", 1, 3_610)]);
        says(&mut world, "n2", vec![total("detect", 1, 3_610)]);
        assert_eq!(cpu_s(&of_task(&world, "detect")), [1_805], "kept: {kept}");
        assert_eq!(of_task(&world, "detect")[0].runs, 1);
    }
}

#[test]
fn open_records_are_journaled_now_and_then_and_not_with_each_report() {
    let mut world = counted();
    world.pass(1_000);
    let before = world.journal_bytes();
    for second in 11..=200 {
        says(&mut world, "n2", vec![total("detect", 1, second)]);
        world.pass(1_000);
    }
    assert_eq!(world.journal_bytes(), before);
    for second in 201..=320 {
        says(&mut world, "n2", vec![total("detect", 1, second)]);
        world.pass(1_000);
    }
    let grown = world.journal_bytes() - before;
    assert!((1..4_000).contains(&grown), "{grown} bytes for three containers");
    let world = world.restart();
    let kept = world.owner.model().usage.open().iter().map(|open| open.view().clone());
    let kept = cpu_s(&kept.collect::<Vec<_>>());
    assert!(kept.iter().any(|cpu_s| (140..=160).contains(cpu_s)), "{kept:?}");
}

#[test]
fn a_stopped_job_has_closed_records_that_stay() {
    let mut world = counted();
    world.owner.stop(&"a".parse().unwrap()).unwrap();
    world.settle();
    says(&mut world, "n2", vec![total("detect", 1, 12)]);
    world.pass(1_000);
    let closed = records(&world);
    assert_eq!(closed.len(), 3, "{closed:?}");
    assert!(closed.iter().all(|record| record.end == UsageEnd::Ended && record.until_ms.is_some()));
    let mut numbers: Vec<_> = closed.iter().filter_map(|record| record.number).collect();
    numbers.dedup();
    assert_eq!(numbers, [1, 2, 3]);
    let mut world = world.restart();
    // After an hour they are in the archive, and there alone.
    world.pass(1_000);
    world.pass(3_600_000);
    assert_eq!(records(&world), closed);
    assert!(world.owner.model().usage.closed.is_empty());
    let mut world = world.restart();
    world.connect();
    world.settle();
    world.owner.submit(order("a")).unwrap();
    world.settle();
    says(&mut world, "n2", vec![total("detect", 7, 1)]);
    assert_eq!(of_task(&world, "detect").len(), 2, "a job of the same name has records of its own");
}

#[test]
fn a_container_of_a_lost_node_is_counted_until_it_was_last_heard() {
    let mut world = world("");
    let first = place(&world, "detect");
    says(&mut world, &first, vec![total("detect", 1, 20)]);
    let heard_ms = world.owner.now_ms;
    world.power_off(&first);
    world.live(60);
    let second = place(&world, "detect");
    assert_ne!(first, second);
    says(&mut world, &second, vec![total("detect", 2, 8)]);
    let records = of_task(&world, "detect");
    assert_eq!(records.len(), 2, "{records:?}");
    let (lost, there) = (&records[0], &records[1]);
    assert_eq!(
        (lost.end, lost.until_ms, lost.node.as_str()),
        (UsageEnd::UntilLastHeard, Some(heard_ms), first.as_str())
    );
    assert_eq!((there.end, there.node.as_str(), there.queued_ms), (UsageEnd::Open, second.as_str(), 0));
    assert_eq!(cpu_s(&records), [10, 4]);
    // What it did where nobody reached it costs nothing.
    world.bring_back(&first);
    says(&mut world, &first, vec![total("detect", 1, 90)]);
    world.live(30);
    assert_eq!(cpu_s(&of_task(&world, "detect"))[0], 10);
}

#[test]
fn a_place_that_is_taken_again_is_not_charged_for_the_time_away() {
    let mut world = world(", reconcile: keep_original");
    let first = place(&world, "detect");
    says(&mut world, &first, vec![total("detect", 1, 20)]);
    world.power_off(&first);
    world.live(60);
    world.bring_back(&first);
    world.live(60);
    assert_eq!(place(&world, "detect"), first);
    // As if it had run all the time.
    says(&mut world, &first, vec![total("detect", 1, 200)]);
    says(&mut world, &first, vec![total("detect", 1, 204)]);
    let there: Vec<_> =
        of_task(&world, "detect").into_iter().filter(|it| it.node.as_str() == first).collect();
    assert_eq!(cpu_s(&there), [10, 2]);
}

#[test]
fn a_day_has_its_own_records_and_they_add_up() {
    let mut world = counted();
    world.owner.now_ms += DAY_MS - world.owner.now_ms % DAY_MS - 5_000;
    says(&mut world, "n2", vec![total("detect", 1, 3_000)]);
    world.pass(5_000);
    says(&mut world, "n2", vec![total("detect", 1, 3_500)]);
    let records = of_task(&world, "detect");
    assert_eq!(cpu_s(&records), [1_500, 250]);
    assert_eq!(
        (records[0].end, records[0].until_ms, records[1].from_ms),
        (UsageEnd::Day, Some(DAY_MS), DAY_MS)
    );
    assert_eq!((records[0].runs, records[1].runs, records[1].waited_ms()), (1, 0, 0));
    let since = |since_ms, until_ms| {
        let query = UsageQuery { since_ms, until_ms, limit: usize::MAX, ..UsageQuery::default() };
        world.owner.usage(&query).records.iter().map(|record| record.cpu_us).sum::<u64>()
    };
    assert_eq!(since(Some(DAY_MS), None), 250_000_000);
    assert_eq!(since(None, Some(DAY_MS)) + since(Some(DAY_MS), None), since(None, None));
}

fn prices(core_hour: u64) -> Option<Prices> {
    Some(Prices { currency: "EUR".to_owned(), core_hour: Micros(core_hour), ..Prices::default() })
}

#[test]
fn a_changed_price_holds_from_then_on() {
    let mut world = counted().restart();
    world.owner.settings.prices = prices(3_600_000);
    world.connect();
    world.settle();
    says(&mut world, "n2", vec![total("detect", 1, 20)]);
    let cost = |world: &World| -> Vec<(u32, u64)> {
        let charges = of_task(world, "detect").into_iter().filter_map(|record| record.charge);
        charges.map(|charge| (charge.prices_version, charge.total_micros.0)).collect()
    };
    // Ten core-seconds at a unit of currency for 1000 core-seconds.
    assert_eq!(cost(&world), [(1, 10_000)]);
    world.owner.keep_open().unwrap();
    let mut world = world.restart();
    world.owner.settings.prices = prices(7_200_000);
    world.connect();
    world.settle();
    says(&mut world, "n2", vec![total("detect", 1, 30)]);
    assert_eq!(cost(&world), [(1, 10_000), (2, 10_000)]);
    assert_eq!(of_task(&world, "detect")[0].end, UsageEnd::Prices);
}

#[test]
fn pulled_bytes_are_those_fetched_for_the_task() {
    let mut world = counted();
    let held = world.held[&node("n2")].clone();
    let pull = PullState {
        image: "r/app:1".to_owned(),
        bytes_fetched: Bytes(100),
        bytes_total: None,
        layers: 1,
        took_ms: Some(5),
        bytes_elsewhere: Bytes(0),
        done: true,
        error: String::new(),
    };
    for _ in 0..2 {
        let seen = super::world::observed(&held);
        let seen = edgeloom_common::report::Observed { pulls: vec![pull.clone()], ..seen };
        world.owner.observe(&node("n2"), NodeMessage::Observed(seen));
    }
    assert_eq!(of_task(&world, "detect")[0].pulled_bytes, 100);
}

#[test]
fn after_the_state_was_lost_counting_begins_anew_and_says_so() {
    let world = counted();
    let begun_ms = world.owner.model().usage.begun_ms;
    let mut world = world.restart_after(lose_and_repair);
    world.owner.now_ms += 60_000;
    world.connect();
    world.show();
    world.settle();
    says(&mut world, "n2", vec![total("detect", 1, 100)]);
    says(&mut world, "n2", vec![total("detect", 1, 110)]);
    let [record] = of_task(&world, "detect").try_into().unwrap();
    assert_eq!((record.cpu_us, record.waited_ms()), (5_000_000, 0));
    let list = world.owner.usage(&UsageQuery { limit: 1, ..UsageQuery::default() });
    assert!(list.counted_since_ms > begun_ms);
}

#[test]
fn counters_of_what_is_not_placed_there_count_for_nobody() {
    let mut world = counted();
    says(&mut world, "n3", vec![total("detect", 9, 500)]);
    says(&mut world, "n2", vec![TaskTotal { job: "ghost".parse().unwrap(), ..total("detect", 9, 500) }]);
    assert_eq!(cpu_s(&of_task(&world, "detect")), [5]);
    assert!(records(&world).iter().all(|record| record.job.as_str() == "a"));
}
