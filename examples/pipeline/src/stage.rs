//! The stage itself: an item from everywhere, work, the item to everywhere.

use crate::join::{self, Join};
use crate::noise::Noise;
use crate::settings::{SettingError, Settings};
use crate::work::Work;
use crate::{intake, outlet};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Why a stage does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the environment describes no stage")]
    Settings(#[from] SettingError),
    #[error("listening on {address} failed")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("signals can't be received")]
    Signals(#[source] io::Error),
}

/// Items that a stage has finished.
#[derive(Debug, Clone, Default)]
pub struct Counter(Arc<AtomicU64>);

impl Counter {
    /// All items so far.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Starts the stage's threads, which run until the process ends.
///
/// # Errors
/// The listening address can't be taken.
pub fn start(settings: Settings) -> Result<Counter, StartError> {
    let counter = Counter::default();
    let items = items(&settings)?;
    let outputs: Vec<SyncSender<u64>> =
        settings.outputs.iter().map(|output| outlet::start(settings.task.clone(), output.clone())).collect();
    let mut work = Work::new(settings.work_ns, Noise::new(&settings.task, settings.work_noise));
    let finished = counter.clone();
    thread::spawn(move || {
        for number in items {
            work.burn();
            if outputs.iter().any(|output| output.send(number).is_err()) {
                return;
            }
            finished.0.fetch_add(1, Ordering::Relaxed);
        }
    });
    Ok(counter)
}

/// Prints `items=<total> rate=<items a second>` for ever, once a period.
pub fn report(counter: &Counter, period: Duration) {
    let (mut before, mut since) = (counter.items(), Instant::now());
    loop {
        thread::sleep(period);
        let (now, elapsed) = (counter.items(), since.elapsed());
        since = Instant::now();
        let rate = (now - before) as f64 / elapsed.as_secs_f64();
        let mut out = io::stdout().lock();
        // A closed log is no reason to stop working.
        let _ignored = writeln!(out, "items={now} rate={rate:.2}").and_then(|()| out.flush());
        before = now;
    }
}

/// The items to work on: joined from the upstreams, or made here.
fn items(settings: &Settings) -> Result<Box<dyn Iterator<Item = u64> + Send>, StartError> {
    let Some(address) = settings.listen else {
        return Ok(Box::new(made(settings)));
    };
    let listener = TcpListener::bind(address).map_err(|source| StartError::Listen { address, source })?;
    let join = Arc::new(Join::new(settings.inputs.len()));
    let (inputs, accepting) = (settings.inputs.clone(), Arc::clone(&join));
    thread::spawn(move || intake::accept(&listener, &inputs, &accepting));
    Ok(Box::new(std::iter::repeat_with(move || join.next())))
}

/// Numbers of new items, paced if a rate is given. They start at the clock's microsecond, so that they go on
/// rising when the maker is started again (at most a million items a second).
fn made(settings: &Settings) -> impl Iterator<Item = u64> + Send + use<> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let first = join::number(&settings.task, u64::try_from(since_epoch.as_micros()).unwrap_or(0));
    let period = settings.rate_per_s.map(|rate| Duration::from_secs_f64(1.0 / rate));
    let mut due = Instant::now();
    (first..).inspect(move |_| {
        let Some(period) = period else { return };
        thread::sleep(due.saturating_duration_since(Instant::now()));
        // What was held back is not made up for: that would be a burst above the rate.
        due = (due + period).max(Instant::now());
    })
}
