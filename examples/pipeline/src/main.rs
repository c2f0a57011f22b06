//! `pipeline`: runs the stage that the environment describes until SIGTERM or SIGINT; `pipeline measure` only
//! works on `EDGELOOM_ITEMS` items and ends, and `pipeline idle` does nothing until it is told to end.

use edgeloom_pipeline::{ITEMS, Settings, StartError, measure, report, start};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::process::ExitCode;
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

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pipeline: {error}");
            ExitCode::FAILURE
        }
    }
}
