//! `pipeline`: runs the stage that the environment describes until SIGTERM or SIGINT; `pipeline measure` only
//! works on `EDGELOOM_ITEMS` items and ends, `pipeline idle` does nothing until it is told to end,
//! `pipeline nap MILLISECONDS` ends by itself after so long, and `pipeline burn MILLISECONDS` after so much work of
//! the reference core.

use edgeloom_common::work::{ITERATIONS_PER_SECOND, spin};
use edgeloom_pipeline::{ITEMS, Settings, StartError, measure, report, start};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

/// How often a stage prints its rate.
const REPORT_PERIOD: Duration = Duration::from_secs(2);

fn run() -> Result<(), StartError> {
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(StartError::Signals)?;
    let verb = std::env::args().nth(1);
    if verb.as_deref() == Some("idle") {
        signals.forever().next();
        return Ok(());
    }
    let settings = Settings::read(std::env::vars_os())?;
    if verb.as_deref() == Some("measure") {
        measure(&settings, std::env::var_os(ITEMS))?;
        return Ok(());
    }
    let counter = start(settings)?;
    std::thread::spawn(move || report(&counter, REPORT_PERIOD));
    // The stage's threads hold nothing that has to be closed: they end with the process.
    signals.forever().next();
    Ok(())
}

/// Sleeps, and says that it did; told to end before, it ends like any program that a signal ends.
fn nap(milliseconds: u64) -> ExitCode {
    let Ok(mut signals) = Signals::new([SIGTERM, SIGINT]) else { return ExitCode::FAILURE };
    let (told, ends) = mpsc::channel();
    std::thread::spawn(move || signals.forever().next().map(|signal| told.send(signal)));
    match ends.recv_timeout(Duration::from_millis(milliseconds)) {
        Ok(signal) => ExitCode::from(128_u8.saturating_add(u8::try_from(signal).unwrap_or(0))),
        Err(_) => {
            println!("{} has run", std::env::var("EDGELOOM_TASK").unwrap_or_default());
            ExitCode::SUCCESS
        }
    }
}

/// Computes, and says nothing.
fn burn(milliseconds: u64) -> ExitCode {
    black_box(spin(black_box((ITERATIONS_PER_SECOND / 1000).saturating_mul(milliseconds))));
    ExitCode::SUCCESS
}

/// What ends by itself, with how long that takes.
fn bounded(act: fn(u64) -> ExitCode) -> ExitCode {
    let text = std::env::args().nth(2).unwrap_or_default();
    text.parse().map_or_else(
        |_| {
            eprintln!("pipeline: {text:?} is no number of milliseconds");
            ExitCode::FAILURE
        },
        act,
    )
}

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("nap") => return bounded(nap),
        Some("burn") => return bounded(burn),
        _ => {}
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pipeline: {error}");
            ExitCode::FAILURE
        }
    }
}
