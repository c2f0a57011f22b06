//! Measuring programs for the profiler: one at a time, so that none disturbs another.
//!
//! In: commands by id. Out: replies, each the JSON of a [`MeasureReply`], the last one a result or a reason.
//! A few commands may wait for their turn; the next is refused. Whatever happens, the trial's container is
//! removed: after its run, before the next one, and at the agent's start.

#[cfg(test)]
mod docker;
mod run;
mod samples;
#[cfg(test)]
mod tests;

use crate::engine::trial::Trials;
use crate::engine::{ContainerEngine, EngineError};
use crate::replies::Replies;
use crate::wire::Up;
use edgeloom_common::measure::{MeasureCommand, MeasureReply};
use run::{Failure, Progress};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Measurements that run or wait for their turn.
const REQUESTS_MAX: usize = 8;
/// Between attempts to remove what an earlier life of the agent left behind.
const SWEEP_PAUSE: Duration = Duration::from_secs(5);
/// Attempts to remove a trial's container; what stays is removed before the next one.
const SWEEPS: usize = 3;

/// The measurement under way, and those behind it.
#[derive(Debug)]
pub(crate) struct Measurements<E> {
    engine: Arc<E>,
    up: mpsc::Sender<Up>,
    /// Held by the one that runs.
    turn: Arc<Semaphore>,
    running: HashMap<u64, CancellationToken>,
    tasks: JoinSet<Option<u64>>,
}

impl<E: ContainerEngine + Trials> Measurements<E> {
    /// Begins with removing what an agent that was killed left behind.
    pub(crate) fn new(engine: Arc<E>, up: mpsc::Sender<Up>) -> Self {
        let turn = Arc::new(Semaphore::new(1));
        let mut tasks = JoinSet::new();
        let (first, gate) = (Arc::clone(&engine), Arc::clone(&turn));
        tasks.spawn(async move {
            let _turn = gate.acquire_owned().await;
            while let Err(error) = sweep(first.as_ref()).await {
                tracing::debug!(%error, "leftovers of measurements are not removed yet");
                tokio::time::sleep(SWEEP_PAUSE).await;
            }
            None
        });
        Self { engine, up, turn, running: HashMap::new(), tasks }
    }

    /// Begins a measurement, or ends an earlier one.
    pub(crate) fn take(&mut self, id: u64, command: MeasureCommand) {
        self.reap();
        if command.cancel {
            self.running.get(&id).iter().for_each(|token| token.cancel());
            return;
        }
        if self.running.contains_key(&id) {
            return;
        }
        let mut progress = Progress(Replies::new(id, self.up.clone()));
        if REQUESTS_MAX <= self.running.len() {
            self.tasks.spawn(async move {
                progress.end(Err(Failure::Busy { waiting: REQUESTS_MAX })).await;
                None
            });
            return;
        }
        let stop = CancellationToken::new();
        self.running.insert(id, stop.clone());
        let (engine, turn) = (Arc::clone(&self.engine), Arc::clone(&self.turn));
        self.tasks.spawn(async move {
            let waited =
                stop.run_until_cancelled(progress.waiting(turn.acquire(), || MeasureReply::Queued)).await;
            let outcome = match waited {
                Some(Ok(_turn)) => {
                    let run = run::measure(engine.as_ref(), &command, &mut progress);
                    let outcome = stop.run_until_cancelled(run).await;
                    clean_up(engine.as_ref()).await;
                    outcome.unwrap_or(Err(Failure::Cancelled))
                }
                _ => Err(Failure::Cancelled),
            };
            progress.end(outcome).await;
            Some(id)
        });
    }

    /// Ends all: whoever asked may have gone with the connection, and can ask again.
    pub(crate) fn cancel_all(&mut self) {
        self.running.drain().for_each(|(_, token)| token.cancel());
    }

    /// Forgets what has ended. An id comes again only after that.
    fn reap(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            if let Ok(Some(id)) = ended {
                self.running.remove(&id);
            }
        }
    }
}

/// Removes every trial there is: only the holder of the turn may ask for it.
async fn sweep(engine: &impl Trials) -> Result<(), EngineError> {
    for id in engine.list_trials().await? {
        engine.remove_trial(&id).await?;
    }
    Ok(())
}

async fn clean_up(engine: &impl Trials) {
    for _ in 0..SWEEPS {
        match sweep(engine).await {
            Ok(()) => return,
            Err(error) => tracing::warn!(%error, "a measurement's container is not removed yet"),
        }
    }
}
