//! What each command asks and prints.

use crate::arguments::{Arguments, Command, EXIT_FAILURE, EXIT_OK, EXIT_PLAN_CHANGE, Output};
use crate::client::{Client, LogSelection};
use crate::error::Error;
use crate::{
    context, doctor, drain, events, explanation, images, logs, measure, prefetch, secrets, show, sim, tokens,
    usage, volumes, wait,
};
use edgeloom_common::doctor::Examination;
use edgeloom_common::images::ImageList;
use edgeloom_common::view::{Explanation, JobList, JobState, JobView, NodeList};
use serde::Serialize;
use std::io::{self, Read, Write};
use std::path::Path;

/// The largest job document that is read; the controller's own limit is lower and has the last word.
const DOCUMENT_MAX: u64 = 16 * 1024 * 1024;

/// Runs a command; the exit code is for the shell.
pub(crate) fn run(arguments: Arguments) -> Result<u8, Error> {
    if arguments.output == Output::Csv && !matches!(arguments.command, Command::Usage(_)) {
        return Err(Error::NoCsv);
    }
    if let Command::Sim { experiment } = arguments.command {
        return sim::run(experiment, &Printer { output: arguments.output }).map(|()| EXIT_OK);
    }
    let target = context::target(&arguments)?;
    let client = Client::new(&target)?;
    let printer = Printer { output: arguments.output };
    match arguments.command {
        Command::Plan { file: Some(file), .. } => return plan(&client, &printer, &file),
        Command::Plan { file: None, apply, .. } => return drain::consolidate(&client, &printer, apply),
        Command::Drain { node } => drain::act(&client, &printer, (&node, "drain"))?,
        Command::Cordon { node } => drain::act(&client, &printer, (&node, "cordon"))?,
        Command::Uncordon { node } => drain::act(&client, &printer, (&node, "uncordon"))?,
        Command::Run { file, wait } => {
            let mut view: JobView = client.post("/v1/jobs", &document(&file)?)?;
            if wait {
                view = wait::until_done(&client, view)?;
            }
            printer.print(&view, show::job)?;
        }
        Command::Stop { name } => {
            let view: JobView = client.delete(&format!("/v1/jobs/{name}"))?;
            printer.print(&view, |view| format!("job {}: {}\n", view.name, view.state.word()))?;
        }
        Command::Jobs => printer.print(&client.fetch::<JobList>("/v1/jobs")?, show::jobs)?,
        Command::Job { name } => {
            let view: JobView = client.fetch(&format!("/v1/jobs/{name}"))?;
            let used = match printer.output() {
                Output::Json => String::new(),
                Output::Table | Output::Csv => usage::so_far(&client, &name),
            };
            printer.print(&view, |view| show::job(view) + &used)?;
        }
        Command::Nodes => printer.print(&client.fetch::<NodeList>("/v1/nodes")?, show::nodes)?,
        Command::Images { name } => {
            let path = format!("/v1/images?name={}", query(&name.unwrap_or_default()));
            printer.print(&client.fetch::<ImageList>(&path)?, images::table)?;
        }
        Command::Doctor => {
            let examination = doctor::examine(&client);
            printer.print(&examination, Examination::text)?;
            return Ok(if examination.failed() { EXIT_FAILURE } else { EXIT_OK });
        }
        Command::Explain { name } => {
            let explanation: Explanation = client.fetch(&format!("/v1/jobs/{name}/explain"))?;
            printer.print(&explanation, explanation::text)?;
        }
        Command::Events { job, follow: true } => {
            events::follow(&client, job.as_ref(), printer.output)?;
        }
        Command::Events { job, follow: false } => {
            printer.print(&events::list(&client, job.as_ref())?, events::table)?;
        }
        Command::Measure { file, again, timeout } => {
            let path = format!("/v1/measure?again={again}&timeout_s={timeout}");
            let measurements = measure::run(&client, &path, &document(&file)?)?;
            printer.print(&measurements, measure::table)?;
            return Ok(if measurements.failed() { EXIT_FAILURE } else { EXIT_OK });
        }
        Command::Usage(arguments) => usage::usage(&client, &printer, &arguments)?,
        Command::Secret { command } => secrets::secret(&client, &printer, command)?,
        Command::Volume { command } => volumes::volume(&client, &printer, command)?,
        Command::Registry { command } => secrets::registry(&client, &printer, command)?,
        Command::Prefetch(arguments) => prefetch::prefetch(&client, &printer, arguments)?,
        Command::Token { command } => tokens::token(&client, &printer, command)?,
        Command::Node { command } => tokens::node(&client, &printer, command)?,
        Command::Authority { command } => tokens::authority((&client, &target), &printer, &command)?,
        Command::Login => tokens::login(&client, target)?,
        Command::Sim { .. } => unreachable!("needs no controller, ran above"),
        Command::Logs { name, task, follow, tail, timestamps } => {
            let (job, task, since_s) = (&name, task.as_ref(), None);
            logs::logs(&client, LogSelection { job, task, follow, tail, since_s, timestamps })?;
        }
    }
    Ok(EXIT_OK)
}

/// A text as the value of a query (RFC 3986, 2.1).
fn query(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// A job that the answer shows as planned would be started; any other is there already.
fn plan(client: &Client, printer: &Printer, file: &Path) -> Result<u8, Error> {
    let view: JobView = client.post("/v1/jobs?dry_run=true", &document(file)?)?;
    printer.print(&view, show::planned)?;
    Ok(if view.state == JobState::Planned { EXIT_PLAN_CHANGE } else { EXIT_OK })
}

fn document(path: &Path) -> Result<Vec<u8>, Error> {
    let read = || {
        let mut bytes = Vec::new();
        if path.as_os_str() == "-" {
            io::stdin().lock().take(DOCUMENT_MAX).read_to_end(&mut bytes)?;
        } else {
            std::fs::File::open(path)?.take(DOCUMENT_MAX).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    };
    read().map_err(|source| Error::Input { path: path.to_owned(), source })
}

pub(crate) struct Printer {
    output: Output,
}

impl Printer {
    pub(crate) fn output(&self) -> Output {
        self.output
    }

    /// Prints an answer as its JSON, or as the text that people or spreadsheets get.
    pub(crate) fn print<T: Serialize>(&self, view: &T, table: impl Fn(&T) -> String) -> Result<(), Error> {
        let text = match self.output {
            Output::Table | Output::Csv => table(view),
            Output::Json => json(view),
        };
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }
}

/// As files and pipes get it.
pub(crate) fn json<T: Serialize>(view: &T) -> String {
    serde_json::to_string_pretty(view).expect("answers are names, numbers and lists of them") + "\n"
}
