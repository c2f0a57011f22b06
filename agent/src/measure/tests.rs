//! Measurements on the fake engine, in paused time.

use super::*;
use crate::engine::fake::{DIGEST, FakeEngine, Script, spec};
use crate::engine::trial::TrialSpec;
use edgeloom_common::measure::Measured;
use edgeloom_common::report::Reply;
use edgeloom_common::units::{Bytes, MilliCores};
use std::collections::BTreeMap;

fn command(items: u32) -> MeasureCommand {
    MeasureCommand {
        image: spec("any", "any").image,
        command: vec!["measure".to_owned()],
        environment: BTreeMap::from([("EDGELOOM_WORK_NS".to_owned(), "7".to_owned())]),
        cpu: MilliCores(500),
        memory: Bytes(64 << 20),
        items,
        timeout_s: 60,
        login: None,
        cancel: false,
    }
}

struct Bench {
    engine: Arc<FakeEngine>,
    measurements: Measurements<FakeEngine>,
    up: mpsc::Receiver<Up>,
}

fn bench(engine: FakeEngine) -> Bench {
    let engine = Arc::new(engine);
    let (sender, up) = mpsc::channel(1024);
    Bench { measurements: Measurements::new(Arc::clone(&engine), sender), engine, up }
}

fn loaded() -> Bench {
    let engine = FakeEngine::default();
    engine.load(DIGEST);
    bench(engine)
}

impl Bench {
    /// All words about `id`.
    async fn replies(&mut self, id: u64) -> Vec<MeasureReply> {
        let mut words = Vec::new();
        while let Some(Up::Reply(Reply { id: of, text, last, .. })) = self.up.recv().await {
            if of == id {
                words.push(serde_json::from_str(&text).unwrap());
                if last {
                    break;
                }
            }
        }
        words
    }

    async fn last(&mut self, id: u64) -> MeasureReply {
        self.replies(id).await.pop().unwrap()
    }

    async fn reason(&mut self, id: u64) -> String {
        match self.last(id).await {
            MeasureReply::Failed { reason, .. } => reason,
            other => panic!("no failure: {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_measured_by_item_without_what_the_runtime_took() {
    let mut bench = loaded();
    bench.measurements.take(1, command(20));
    let Some(MeasureReply::Measured(measured)) = bench.replies(1).await.pop() else { panic!("no result") };
    let Measured { wall_s, cpu_s, memory_peak } = measured;
    assert!((wall_s - 4.0 / 20.0).abs() < 1e-3, "{wall_s}");
    assert!((cpu_s - 1.0 / 20.0).abs() < 1e-3, "{cpu_s}");
    assert_eq!(memory_peak, Bytes(5_000_000));
    let [TrialSpec { environment, cpu, .. }] = &bench.engine.trials_made()[..] else { panic!("one trial") };
    assert_eq!(
        (environment["EDGELOOM_ITEMS"].as_str(), environment["EDGELOOM_WORK_NS"].as_str()),
        ("20", "7")
    );
    assert_eq!(*cpu, MilliCores(500));
    assert_eq!(bench.engine.list_trials().await.unwrap(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_missing_image_is_pulled_and_an_unknown_one_is_told() {
    let mut bench = bench(FakeEngine::with_registry(&[DIGEST]));
    bench.measurements.take(1, command(20));
    let words = bench.replies(1).await;
    assert!(words.iter().any(|word| matches!(word, MeasureReply::Pulling { .. })), "{words:?}");
    assert!(matches!(words.last(), Some(MeasureReply::Measured(_))));
    let mut unknown = command(20);
    unknown.image.digest = format!("sha256:{}", "0".repeat(64));
    bench.measurements.take(2, unknown);
    assert!(bench.reason(2).await.contains("manifest unknown"));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_never_ends_is_killed_and_told() {
    let mut bench = loaded();
    bench.engine.script_trials(Script { wall: Duration::from_secs(1_000_000), ..Script::default() });
    bench.measurements.take(1, command(20));
    let words = bench.replies(1).await;
    assert!(words.contains(&MeasureReply::Running { seconds: 30 }), "{words:?}");
    let Some(MeasureReply::Failed { reason, .. }) = words.last() else { panic!("{words:?}") };
    assert!(reason.contains("not ended after 60 s"), "{reason}");
    assert_eq!(bench.engine.list_trials().await.unwrap(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn each_way_to_fail_has_its_reason_and_leaves_nothing() {
    let scripts = [
        (Script { exit_code: 3, ..Script::default() }, "exit code 3"),
        (Script { exit_code: 137, out_of_memory: true, ..Script::default() }, "more memory than its limit"),
        (Script { exit_code: 137, ..Script::default() }, "most likely it wanted more memory than its limit"),
        (Script { wall: Duration::from_millis(40), ..Script::default() }, "only 40 ms"),
    ];
    let mut bench = loaded();
    for (id, (script, part)) in (1..).zip(scripts) {
        bench.engine.script_trials(script);
        bench.measurements.take(id, command(20));
        let reason = bench.reason(id).await;
        assert!(reason.contains(part), "{reason}");
        assert_eq!(bench.engine.list_trials().await.unwrap(), Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn hostile_numbers_are_refused_before_anything_runs() {
    let mut bench = loaded();
    let wrong = [
        MeasureCommand { items: 0, ..command(1) },
        MeasureCommand { items: 1_000_001, ..command(1) },
        MeasureCommand { timeout_s: 0, ..command(1) },
        MeasureCommand { timeout_s: 3601, ..command(1) },
    ];
    for (id, command) in (1..).zip(wrong) {
        bench.measurements.take(id, command);
        assert!(bench.reason(id).await.contains("none of 1 to"));
    }
    assert_eq!(bench.engine.trials_made(), []);
}

#[tokio::test(start_paused = true)]
async fn one_runs_at_a_time_the_next_wait_and_the_last_is_refused() {
    let mut bench = loaded();
    for id in 0..=REQUESTS_MAX as u64 {
        bench.measurements.take(id, command(20));
    }
    let refused = REQUESTS_MAX as u64;
    let mut queued = 0;
    let mut ended = Vec::new();
    while ended.len() <= REQUESTS_MAX {
        let Some(Up::Reply(reply)) = bench.up.recv().await else { panic!("replies end") };
        let word: MeasureReply = serde_json::from_str(&reply.text).unwrap();
        queued += u32::from(word == MeasureReply::Queued);
        if reply.last {
            ended.push((reply.id, matches!(word, MeasureReply::Measured(_))));
        }
        assert!(bench.engine.list_trials().await.unwrap().len() <= 1);
    }
    assert!(queued > 0);
    ended.sort_unstable();
    assert!(ended.iter().all(|(id, measured)| *measured == (*id != refused)), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_is_removed_and_so_is_one_of_a_lost_connection() {
    let mut bench = loaded();
    for id in [1, 2] {
        bench.measurements.take(id, command(20));
        while bench.engine.list_trials().await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        match id {
            1 => bench.measurements.take(1, MeasureCommand { cancel: true, ..command(20) }),
            _ => bench.measurements.cancel_all(),
        }
        assert!(bench.reason(id).await.contains("cancelled"));
        assert_eq!(bench.engine.list_trials().await.unwrap(), Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_killed_agent_left_is_removed_at_the_next_start() {
    let engine = FakeEngine::default();
    engine.load(DIGEST);
    let left = TrialSpec {
        image: spec("any", "any").image,
        command: Vec::new(),
        environment: BTreeMap::new(),
        cpu: MilliCores(0),
        memory: Bytes(0),
    };
    engine.create_trial(&left).await.unwrap();
    engine.set_answering(false);
    let bench = bench(engine);
    tokio::time::sleep(SWEEP_PAUSE).await;
    bench.engine.set_answering(true);
    tokio::time::sleep(SWEEP_PAUSE * 2).await;
    assert_eq!(bench.engine.list_trials().await.unwrap(), Vec::<String>::new());
}
