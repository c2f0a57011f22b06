//! `pipeline`: runs the stage that the environment describes until SIGTERM or SIGINT.

use edgeloom_pipeline::{Settings, StartError, report, start};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::process::ExitCode;
use std::time::Duration;

/// How often a stage prints its rate.
const REPORT_PERIOD: Duration = Duration::from_secs(2);

fn run() -> Result<(), StartError> {
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(StartError::Signals)?;
    let settings = Settings::read(std::env::vars_os())?;
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
