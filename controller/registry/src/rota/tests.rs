use super::*;

const PERIOD_MS: u64 = 10_000;

fn tag(number: usize) -> Ask {
    Ask::Tag("app".into(), number.to_string().into())
}

/// Answers everything at once from `from_ms` on; when each question was asked.
fn run(
    rota: &mut Rota,
    (from_ms, until_ms): (u64, u64),
    answer: impl Fn(&Ask) -> Outcome,
) -> Vec<(u64, Ask)> {
    let mut asked = Vec::new();
    let mut now_ms = from_ms;
    while now_ms < until_ms {
        while let Some(ask) = rota.next(now_ms) {
            rota.done(&ask, answer(&ask), now_ms);
            asked.push((now_ms, ask));
        }
        now_ms = rota.next_ms().unwrap_or(until_ms).max(now_ms + 1);
    }
    asked
}

fn with_tags(count: usize) -> Rota {
    let mut rota = Rota::new(PERIOD_MS);
    (0..count).for_each(|number| rota.add(tag(number), 0));
    rota
}

#[test]
fn each_tag_is_asked_at_most_once_a_period_and_all_evenly() {
    let mut rota = with_tags(1000);
    let asked = run(&mut rota, (0, 40 * PERIOD_MS), |_| Outcome::Same);
    let mut last = BTreeMap::new();
    for (at_ms, ask) in &asked {
        if let Some(before_ms) = last.insert(ask.clone(), *at_ms) {
            assert!(at_ms - before_ms >= PERIOD_MS, "{ask:?} at {before_ms} and {at_ms}");
        }
    }
    let tenth = |index: u64| {
        let (from_ms, until_ms) = (index * PERIOD_MS / 10, (index + 1) * PERIOD_MS / 10);
        asked.iter().filter(|(at_ms, _)| (from_ms..until_ms).contains(at_ms)).count()
    };
    // A tenth of the tags in each tenth of the first period, and never many more later.
    assert!(
        (0..10).all(|index| (98..=102).contains(&tenth(index))),
        "{:?}",
        (0..10).map(tenth).collect::<Vec<_>>()
    );
    assert!((10..400).all(|index| tenth(index) <= 130));
}

#[test]
fn what_never_changes_is_asked_less_often_and_what_changed_more_often_again() {
    let mut rota = with_tags(100);
    let steady = 32 * PERIOD_MS;
    run(&mut rota, (0, 20 * steady), |_| Outcome::Same);
    let asked = run(&mut rota, (20 * steady, 21 * steady), |_| Outcome::Same);
    assert_eq!(asked.len(), 100, "once in 32 periods");
    let (from_ms, changed) = (21 * steady, tag(7));
    let answer = |ask: &Ask| if *ask == changed { Outcome::Changed } else { Outcome::Same };
    let asked = run(&mut rota, (from_ms, from_ms + 2 * steady), answer);
    let of_changed = asked.iter().filter(|(_, ask)| *ask == changed).count();
    assert!((33..=65).contains(&of_changed), "{of_changed}");
    assert!(asked.len() - of_changed <= 2 * 99);
}

#[test]
fn notified_changes_let_the_questions_rest_and_untold_ones_wake_them() {
    let mut rota = with_tags(100);
    rota.add(Ask::Catalogue, 0);
    let steady = 32 * PERIOD_MS;
    run(&mut rota, (0, 20 * steady), |_| Outcome::Same);
    let mut now_ms = 20 * steady;
    rota.hint(tag(3), now_ms);
    assert_eq!(rota.next(now_ms), Some(tag(3)));
    rota.done(&tag(3), Outcome::Changed, now_ms);
    run(&mut rota, (now_ms, now_ms + 2 * REST_MS), |_| Outcome::Same);
    now_ms += 2 * REST_MS;
    let asked = run(&mut rota, (now_ms, now_ms + REST_MS), |_| Outcome::Same).len();
    assert!(asked <= 2 * 101, "{asked} questions in 30 minutes");
    now_ms += REST_MS;
    let untold = run(&mut rota, (now_ms, now_ms + 1), |_| Outcome::Same);
    assert!(untold.len() <= 2);
    let first = rota.next_ms().unwrap();
    let ask = rota.next(first).unwrap();
    rota.done(&ask, Outcome::Changed, first);
    let asked = run(&mut rota, (first, first + 33 * PERIOD_MS), |_| Outcome::Same).len();
    assert!(asked >= 100, "{asked} questions after a change that nobody told");
}

#[test]
fn a_hint_brings_one_question_a_period_at_most() {
    let mut rota = with_tags(1);
    let mut asked = Vec::new();
    for now_ms in 0..3 * PERIOD_MS {
        rota.hint(tag(0), now_ms);
        if let Some(ask) = rota.next(now_ms) {
            rota.done(&ask, Outcome::Changed, now_ms);
            asked.push(now_ms);
        }
    }
    assert_eq!(asked, [0, PERIOD_MS, 2 * PERIOD_MS]);
}

#[test]
fn what_is_removed_is_not_asked_and_its_late_answer_does_no_harm() {
    let mut rota = with_tags(2);
    let ask = rota.next(PERIOD_MS).unwrap();
    rota.remove(&ask);
    rota.done(&ask, Outcome::Same, PERIOD_MS);
    let asked = run(&mut rota, (PERIOD_MS, 5 * PERIOD_MS), |_| Outcome::Failed);
    assert!(!asked.is_empty() && asked.iter().all(|(_, other)| *other != ask));
}

#[test]
fn a_change_that_shows_later_than_it_is_told_is_asked_for_again() {
    let mut rota = with_tags(1);
    let steady = 32 * PERIOD_MS;
    run(&mut rota, (0, 20 * steady), |_| Outcome::Same);
    let now_ms = 20 * steady;
    rota.hint(tag(0), now_ms);
    let early = run(&mut rota, (now_ms, now_ms + PERIOD_MS), |_| Outcome::Same);
    assert_eq!(early.len(), 1);
    let later = run(&mut rota, (now_ms + PERIOD_MS, now_ms + 2 * PERIOD_MS), |_| Outcome::Changed);
    assert_eq!(later.len(), 1);
    // What fails does not rest either.
    rota.hint(tag(0), now_ms + 3 * PERIOD_MS);
    let from_ms = now_ms + 3 * PERIOD_MS;
    assert!(run(&mut rota, (from_ms, from_ms + REST_MS / 2), |_| Outcome::Failed).len() > 5);
}

#[test]
fn waking_asks_nothing_twice_within_a_period_and_an_old_tag_is_counted_no_further() {
    let mut rota = with_tags(20);
    let steady = 32 * PERIOD_MS;
    run(&mut rota, (0, 400 * steady), |_| Outcome::Same);
    let mut now_ms = 400 * steady;
    let mut last = BTreeMap::new();
    for round in 0..50 {
        rota.hint(tag(round % 20), now_ms);
        for (at_ms, ask) in run(&mut rota, (now_ms, now_ms + PERIOD_MS / 3), |_| Outcome::Changed) {
            if let Some(before_ms) = last.insert(ask, at_ms) {
                assert!(at_ms - before_ms >= PERIOD_MS, "{before_ms} and {at_ms}");
            }
        }
        now_ms += PERIOD_MS / 3;
        rota.wake(now_ms);
    }
}
