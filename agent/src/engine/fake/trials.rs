//! Trials of the fake: they take paused time as scripted, and their counter begins before they start, as
//! the one of a real container does.

use super::{FakeEngine, refused};
use crate::engine::EngineError;
use crate::engine::trial::{Gauge, TrialEnd, TrialSpec, TrialUse, Trials};
use edgeloom_common::units::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What a container costs before its program starts.
const RUNTIME_CPU: Duration = Duration::from_millis(30);
/// Longer than the gauge's period, so that it is read before the start.
const START: Duration = Duration::from_millis(50);

/// How the next trials go.
#[derive(Debug, Clone)]
pub struct Script {
    pub wall: Duration,
    /// Of the program alone, spread evenly.
    pub cpu: Duration,
    pub memory_peak: Bytes,
    pub exit_code: i32,
    pub out_of_memory: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(4),
            cpu: Duration::from_secs(1),
            memory_peak: Bytes(5_000_000),
            exit_code: 0,
            out_of_memory: false,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) script: Script,
    made: Vec<TrialSpec>,
    /// Start by id; none before it.
    present: BTreeMap<String, Option<Duration>>,
    begun: Option<Instant>,
}

impl State {
    /// The fake's clock: since it was first looked at.
    fn now(&mut self) -> Duration {
        self.begun.get_or_insert_with(Instant::now).elapsed()
    }
}

impl FakeEngine {
    /// Says how the next trials go.
    pub fn script_trials(&self, script: Script) {
        self.state().trials.script = script;
    }

    /// All trials so far.
    #[must_use]
    pub fn trials_made(&self) -> Vec<TrialSpec> {
        self.state().trials.made.clone()
    }
}

struct FakeGauge<'a> {
    engine: &'a FakeEngine,
    id: String,
}

impl Gauge for FakeGauge<'_> {
    async fn read(&mut self) -> Option<TrialUse> {
        let trials = &mut self.engine.state().trials;
        let at = trials.now();
        let running =
            trials.present.get(&self.id)?.map_or(Duration::ZERO, |started| at.saturating_sub(started));
        let share = running.as_secs_f64() / trials.script.wall.as_secs_f64();
        let cpu = RUNTIME_CPU + trials.script.cpu.mul_f64(share.min(1.0));
        Some(TrialUse { at, cpu, memory_peak: trials.script.memory_peak })
    }
}

impl Trials for FakeEngine {
    async fn create_trial(&self, spec: &TrialSpec) -> Result<String, EngineError> {
        let mut state = self.state();
        state.check_up()?;
        if !state.images.contains(&spec.image.digest) {
            return Err(refused("create container", &spec.image.name, 404, "no such image"));
        }
        state.next_id += 1;
        let id = format!("trial{:012}", state.next_id);
        state.trials.made.push(spec.clone());
        state.trials.present.insert(id.clone(), None);
        Ok(id)
    }

    async fn start_trial(&self, id: &str) -> Result<(), EngineError> {
        sleep(START).await;
        let mut state = self.state();
        state.check_up()?;
        let now = state.trials.now();
        let Some(started) = state.trials.present.get_mut(id) else {
            return Err(refused("start container", id, 404, "no such container"));
        };
        *started = Some(now);
        Ok(())
    }

    async fn end_of_trial(&self, id: &str) -> Result<TrialEnd, EngineError> {
        let script = self.state().trials.script.clone();
        sleep(script.wall).await;
        let mut state = self.state();
        state.check_up()?;
        let started = state.trials.present.get(id).copied().flatten();
        let started = started.ok_or_else(|| refused("inspect container", id, 404, "no such container"))?;
        Ok(TrialEnd {
            started,
            finished: state.trials.now(),
            exit_code: script.exit_code,
            out_of_memory: script.out_of_memory,
        })
    }

    fn gauge(&self, id: &str) -> impl Gauge {
        FakeGauge { engine: self, id: id.to_owned() }
    }

    async fn list_trials(&self) -> Result<Vec<String>, EngineError> {
        let state = self.state();
        state.check_up()?;
        Ok(state.trials.present.keys().cloned().collect())
    }

    async fn remove_trial(&self, id: &str) -> Result<(), EngineError> {
        let mut state = self.state();
        state.check_up()?;
        state.trials.present.remove(id);
        Ok(())
    }
}
