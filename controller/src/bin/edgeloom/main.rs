//! `edgeloom`: the command line of the controller's HTTP API.
//!
//! In: arguments, job files, answers of the controller. Out: tables for people or JSON for machines on
//! standard output, problems on standard error, and the exit codes of [`arguments`].

mod arguments;
mod client;
mod commands;
mod context;
mod doctor;
mod drain;
mod error;
mod events;
mod explanation;
mod images;
mod logs;
mod measure;
mod patience;
mod prefetch;
mod secrets;
mod show;
mod sim;
mod table;
mod tokens;
mod units;
mod usage;
mod volumes;
mod wait;

use arguments::{Arguments, Command};
use clap::Parser;
use error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version come this way too. A standard error that is closed is no further problem.
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(arguments::EXIT_USAGE)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    let planning = matches!(arguments.command, Command::Plan { .. });
    match commands::run(arguments) {
        Ok(code) => ExitCode::from(code),
        // Whoever reads our output has seen enough: `edgeloom jobs | head` is no failure.
        Err(Error::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprint!("{}", error.text());
            ExitCode::from(if planning { arguments::EXIT_PLAN_ERROR } else { error.exit_code() })
        }
    }
}
