//! One measurement: the image, the trial, its readings and its end.

use super::samples::Samples;
use crate::engine::trial::{Gauge, TrialEnd, TrialSpec, Trials};
use crate::engine::{ContainerEngine, EngineError, LogSelection, PullProgress};
use crate::replies::Replies;
use edgeloom_common::job::ITEMS_MAX;
use edgeloom_common::measure::{MeasureCommand, MeasureReply, Measured, TIMEOUT_MAX_S};
use edgeloom_common::units::Bytes;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

/// How often the counters are read: what is used after the last reading is missed.
const SAMPLE_PERIOD: Duration = Duration::from_millis(10);
/// How often the asker hears that it goes on.
const PROGRESS_PERIOD: Duration = Duration::from_secs(1);
/// Below this the container's start and end, some milliseconds each, would count too much.
const WALL_MIN: Duration = Duration::from_millis(100);
/// Of the log of a run that failed.
const LOG_LINES: u32 = 10;
const LOG_BYTES: usize = 4096;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("{waiting} measurements wait on this node; try again later")]
    Busy { waiting: usize },
    #[error("it was cancelled, or the agent connected anew; ask again")]
    Cancelled,
    #[error("{items} items are none of 1 to {ITEMS_MAX}")]
    Items { items: u32 },
    #[error("a time limit of {seconds} s is none of 1 to {TIMEOUT_MAX_S}")]
    TimeLimit { seconds: u32 },
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(
        "the measure command had not ended after {seconds} s and was killed; has it an end? `--timeout` gives more time"
    )]
    Timeout { seconds: u32, log: Vec<String> },
    #[error("the measure command wanted more memory than its limit of {limit}; raise `resources.memory`")]
    OutOfMemory { limit: Bytes, log: Vec<String> },
    /// Docker tells the reason of a SIGKILL only where the kernel's word came before the end.
    #[error(
        "the measure command was killed: most likely it wanted more memory than its limit of {limit}; raise `resources.memory`"
    )]
    Killed { limit: Bytes, log: Vec<String> },
    #[error("the measure command ended with exit code {code}")]
    Exit { code: i32, log: Vec<String> },
    #[error("the run took only {} ms, which is too short to measure; raise `items`", .wall.as_millis())]
    TooShort { wall: Duration },
    #[error("what the run used could not be read; raise `items`")]
    NotRead,
}

impl Failure {
    fn reply(self) -> MeasureReply {
        let reason = self.to_string();
        let (exit_code, log) = match self {
            Self::Exit { code, log } => (Some(code), log),
            Self::Timeout { log, .. } | Self::OutOfMemory { log, .. } | Self::Killed { log, .. } => {
                (None, log)
            }
            _ => (None, Vec::new()),
        };
        MeasureReply::Failed { reason, exit_code, log }
    }
}

/// Tells the asker how far it is.
#[derive(Debug)]
pub(super) struct Progress(pub(super) Replies);

impl Progress {
    fn say(&mut self, reply: &MeasureReply) {
        self.0.offer(text(reply));
    }

    /// Waits for `work` and says `news` at once and every second.
    pub(super) async fn waiting<T>(
        &mut self,
        work: impl Future<Output = T>,
        news: impl Fn() -> MeasureReply,
    ) -> T {
        let mut work = std::pin::pin!(work);
        let mut tick = interval(PROGRESS_PERIOD);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                _ = tick.tick() => self.say(&news()),
            }
        }
    }

    pub(super) async fn end(mut self, outcome: Result<Measured, Failure>) {
        let reply = outcome.map_or_else(Failure::reply, MeasureReply::Measured);
        self.0.end_with(text(&reply)).await;
    }
}

fn text(reply: &MeasureReply) -> String {
    serde_json::to_string(reply).expect("a reply of texts and finite numbers is JSON")
}

/// Exit code of whoever got a SIGKILL; nobody here sends one to a run that is waited for.
const KILLED: i32 = 128 + 9;

/// Measures; the caller removes the container.
pub(super) async fn measure<E: ContainerEngine + Trials>(
    engine: &E,
    command: &MeasureCommand,
    progress: &mut Progress,
) -> Result<Measured, Failure> {
    check(command)?;
    super::sweep(engine).await?;
    fetch(engine, command, progress).await?;
    let spec = spec(command);
    let starting = || MeasureReply::Running { seconds: 0 };
    let id = progress.waiting(engine.create_trial(&spec), starting).await?;
    let (ended, samples) = match observe(engine, &id, command, progress).await? {
        Some(observed) => observed,
        None => {
            let log = log(engine, &id).await;
            return Err(Failure::Timeout { seconds: command.timeout_s, log });
        }
    };
    if ended.out_of_memory {
        return Err(Failure::OutOfMemory { limit: command.memory, log: log(engine, &id).await });
    }
    if ended.exit_code == KILLED {
        return Err(Failure::Killed { limit: command.memory, log: log(engine, &id).await });
    }
    if ended.exit_code != 0 {
        return Err(Failure::Exit { code: ended.exit_code, log: log(engine, &id).await });
    }
    result(&ended, &samples, command.items)
}

/// Bounds of what came from outside; the rest is the engine's to refuse.
fn check(command: &MeasureCommand) -> Result<(), Failure> {
    if !(1..=ITEMS_MAX).contains(&command.items) {
        return Err(Failure::Items { items: command.items });
    }
    if !(1..=TIMEOUT_MAX_S).contains(&command.timeout_s) {
        return Err(Failure::TimeLimit { seconds: command.timeout_s });
    }
    Ok(())
}

async fn fetch<E: ContainerEngine>(
    engine: &E,
    command: &MeasureCommand,
    progress: &mut Progress,
) -> Result<(), Failure> {
    if engine.image_present(&command.image).await? {
        return Ok(());
    }
    let (sender, fetched) = watch::channel(PullProgress::default());
    let news = || {
        let pull = fetched.borrow();
        let bytes_total = Some(pull.bytes_total()).filter(|bytes| *bytes > 0).map(Bytes);
        MeasureReply::Pulling { bytes_fetched: Bytes(pull.bytes_fetched()), bytes_total }
    };
    Ok(progress.waiting(engine.pull(&command.image, command.login.as_ref(), &sender), news).await?)
}

fn spec(command: &MeasureCommand) -> TrialSpec {
    let mut environment = command.environment.clone();
    environment.insert("EDGELOOM_ITEMS".to_owned(), command.items.to_string());
    TrialSpec {
        image: command.image.clone(),
        command: command.command.clone(),
        environment,
        cpu: command.cpu,
        memory: command.memory,
    }
}

/// Starts the trial and reads its counters until it ends; none when its time is up.
async fn observe<E: Trials>(
    engine: &E,
    id: &str,
    command: &MeasureCommand,
    progress: &mut Progress,
) -> Result<Option<(TrialEnd, Samples)>, Failure> {
    let begun = Instant::now();
    let deadline = begun + Duration::from_secs(u64::from(command.timeout_s));
    let mut samples = Samples::default();
    let mut gauge = engine.gauge(id);
    let mut run = std::pin::pin!(async {
        engine.start_trial(id).await?;
        engine.end_of_trial(id).await
    });
    let mut news = interval(PROGRESS_PERIOD);
    let mut sample = interval(SAMPLE_PERIOD);
    sample.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            ended = &mut run => return Ok(Some((ended?, samples))),
            _ = sample.tick() => gauge.read().await.into_iter().for_each(|used| samples.add(used)),
            _ = news.tick() => progress.say(&MeasureReply::Running { seconds: begun.elapsed().as_secs() }),
            () = sleep_until(deadline) => return Ok(None),
        }
    }
}

fn result(ended: &TrialEnd, samples: &Samples, items: u32) -> Result<Measured, Failure> {
    let wall = ended.finished.saturating_sub(ended.started);
    if wall < WALL_MIN {
        return Err(Failure::TooShort { wall });
    }
    let (Some(cpu), Some(memory_peak)) = (samples.cpu(ended), samples.memory_peak()) else {
        return Err(Failure::NotRead);
    };
    let an_item = |whole: Duration| whole.as_secs_f64() / f64::from(items);
    Ok(Measured { wall_s: an_item(wall), cpu_s: an_item(cpu), memory_peak })
}

/// The last lines that the run said; what cannot be read is left out.
async fn log<E: ContainerEngine>(engine: &E, id: &str) -> Vec<String> {
    let (sender, mut pieces) = mpsc::channel(4);
    let selection = LogSelection { tail: Some(LOG_LINES), ..Default::default() };
    let reading = engine.logs(id, selection, sender);
    let collecting = async {
        let mut bytes = Vec::new();
        while let Some(piece) = pieces.recv().await {
            bytes.extend(piece);
            // Of lines without an end only the last part is kept.
            let excess = bytes.len().saturating_sub(LOG_BYTES);
            bytes.drain(..excess);
        }
        bytes
    };
    let (_, bytes) = tokio::join!(reading, collecting);
    String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
}
