//! The measurement itself, on a real Docker daemon: what a program burns and holds is what is measured.

use super::*;
use crate::engine::Docker;
use crate::engine::fake::{DIGEST, FakeEngine, owner, spec};
use crate::engine::private::{DaemonNetwork, PrivateDocker};
use crate::engine::trial::{Gauge, TrialSpec};
use edgeloom_common::desired::ImageRef;
use edgeloom_common::measure::Measured;
use edgeloom_common::report::Reply;
use edgeloom_common::units::{Bytes, MilliCores};
use std::collections::BTreeMap;

/// Many times what a daemon needs on a slow disk: a bound for one that never answers.
const TRIAL_MAX: Duration = Duration::from_secs(300);
const ITEMS: u32 = 10;
const BURNT_S: f64 = 1.5;
const HELD: Bytes = Bytes(20 << 20);

/// The test image's program: ends with `code` after it has burnt and held something.
fn command(image: &ImageRef, code: &str) -> MeasureCommand {
    MeasureCommand {
        image: image.clone(),
        command: ["/app", code, "1500", "20"].map(str::to_owned).to_vec(),
        environment: BTreeMap::new(),
        cpu: MilliCores(500),
        memory: Bytes(64 << 20),
        items: ITEMS,
        timeout_s: 60,
        login: None,
        cancel: false,
    }
}

async fn last(up: &mut mpsc::Receiver<Up>) -> MeasureReply {
    while let Some(Up::Reply(Reply { text, last, .. })) = up.recv().await {
        if last {
            return serde_json::from_str(&text).unwrap();
        }
    }
    panic!("replies ended without a last one")
}

fn check(measured: &Measured) {
    let Measured { wall_s, cpu_s, memory_peak } = *measured;
    eprintln!("measured of {BURNT_S} s: {measured:?}");
    let burnt = BURNT_S / f64::from(ITEMS);
    assert!((burnt * 0.97..burnt * 1.1).contains(&cpu_s), "{cpu_s} of {burnt}");
    // Half a core: the wall time is about twice the processor time, and more on a busy machine.
    assert!(wall_s > burnt * 1.8, "{wall_s}");
    assert!((HELD..Bytes(2 * HELD.0)).contains(&memory_peak), "{memory_peak}");
}

#[tokio::test]
async fn docker_is_measured_as_it_runs() {
    let trial = async {
        let network = DaemonNetwork { enter: ["unshare", "--net"], tables: "--iptables=false" };
        let Some(mut docker) = PrivateDocker::start(network) else {
            return;
        };
        let client = docker.client().await;
        let image = docker.import(&client).await;
        let engine = Arc::new(Docker::new(docker.socket(), owner()));
        let (sender, mut up) = mpsc::channel(64);
        let mut measurements = Measurements::new(Arc::clone(&engine), sender);
        measurements.take(1, command(&image, "0"));
        match last(&mut up).await {
            MeasureReply::Measured(measured) => check(&measured),
            other => panic!("no result: {other:?}"),
        }
        failures(&mut measurements, &mut up, &image).await;
        assert_eq!(engine.list_trials().await.unwrap(), Vec::<String>::new());
        contract(engine.as_ref(), &image).await;
    };
    tokio::time::timeout(TRIAL_MAX, trial).await.expect("a daemon that hangs fails the test");
}

async fn failures(measurements: &mut Measurements<Docker>, up: &mut mpsc::Receiver<Up>, image: &ImageRef) {
    let endless = command(image, "0").command[..1].to_vec();
    let cases = [
        (command(image, "7"), "exit code 7"),
        (MeasureCommand { command: endless, timeout_s: 2, ..command(image, "0") }, "not ended after 2 s"),
        (MeasureCommand { memory: Bytes(10 << 20), ..command(image, "0") }, "more memory than its limit"),
        (MeasureCommand { command: vec!["/none".to_owned()], ..command(image, "0") }, "/none"),
    ];
    for (id, (command, part)) in (2..).zip(cases) {
        measurements.take(id, command);
        match last(up).await {
            MeasureReply::Failed { reason, exit_code, log } => {
                assert!(reason.contains(part), "{reason}");
                let said = log.first().map(String::as_str);
                assert!(exit_code.is_none() || (exit_code, said) == (Some(7), Some("said once")), "{log:?}");
            }
            other => panic!("no failure: {other:?}"),
        }
    }
}

/// What the fake and Docker have in common, beside how a run goes.
async fn contract<E: ContainerEngine + Trials>(engine: &E, image: &ImageRef) {
    let command = command(image, "0");
    let spec = TrialSpec {
        image: command.image,
        command: command.command,
        environment: command.environment,
        cpu: command.cpu,
        memory: command.memory,
    };
    let absent = ImageRef { digest: format!("sha256:{}", "0".repeat(64)), ..image.clone() };
    let refused = engine.create_trial(&TrialSpec { image: absent, ..spec.clone() }).await;
    assert!(matches!(refused, Err(EngineError::Refused { status: 404, .. })), "{refused:?}");
    let id = engine.create_trial(&spec).await.unwrap();
    assert_eq!(engine.list().await.unwrap(), [], "a trial is no task");
    assert_eq!(engine.list_trials().await.unwrap(), [id.as_str()]);
    engine.start_trial(&id).await.unwrap();
    sweep(engine).await.unwrap();
    assert_eq!(engine.list_trials().await.unwrap(), Vec::<String>::new());
    engine.remove_trial(&id).await.unwrap();
    assert_eq!(engine.gauge(&id).read().await, None);
    assert!(engine.start_trial(&id).await.is_err());
}

#[tokio::test]
async fn the_fake_keeps_the_contract_of_trials() {
    let engine = FakeEngine::default();
    engine.load(DIGEST);
    contract(&engine, &spec("any", "any").image).await;
}
