//! `edgeloom sim`: experiments here, without a controller.
//!
//! Out: a table or JSON on standard output, the same as JSON and a figure in files on request, and progress
//! on standard error. Files are opened before the work begins, so that a wrong path costs nothing.

mod arguments;
mod batch;
mod layers;
mod progress;
mod sla;
mod table;
mod what_if;

pub(crate) use arguments::Experiment;

use crate::commands::Printer;
use crate::error::Error;
use arguments::Streaming;
use edgeloom_sim::streaming::{Execution, run_streaming};
use edgeloom_sim::{SimError, available_threads};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) fn run(experiment: Experiment, printer: &Printer) -> Result<(), Error> {
    match experiment {
        Experiment::Streaming(arguments) => streaming(&arguments, printer),
        Experiment::Sla(arguments) => sla::sla(&arguments, printer),
        Experiment::Batch(arguments) => batch::run(&arguments, printer),
        Experiment::Layers(arguments) => layers::run(&arguments, printer),
    }
}

fn streaming(arguments: &Streaming, printer: &Printer) -> Result<(), Error> {
    let json = OutputFile::open(arguments.json.as_deref())?;
    if let (Some(topology), Some(jobs_dir)) = (&arguments.topology, &arguments.jobs_dir) {
        let answer = what_if::answer(arguments, topology, jobs_dir)?;
        OutputFile::write(json, || crate::commands::json(&answer))?;
        return printer.print(&answer, table::what_if);
    }
    let plot = OutputFile::open(arguments.plot.as_deref())?;
    let experiment = experiment(arguments)?;
    OutputFile::write(plot, || edgeloom_sim::plot::svg(&experiment))?;
    OutputFile::write(json, || crate::commands::json(&experiment))?;
    printer.print(&experiment, table::streaming)
}

fn experiment(arguments: &Streaming) -> Result<edgeloom_sim::streaming::Experiment, Error> {
    let settings = arguments.settings();
    watched((arguments.threads, arguments.progress), |execution| run_streaming(&settings, execution))
}

/// Runs an experiment on so many threads and tells of its progress.
fn watched<T>(
    (threads, tell): (Option<usize>, bool),
    run: impl FnOnce(&Execution<'_>) -> Result<T, SimError>,
) -> Result<T, Error> {
    let threads = threads.unwrap_or_else(edgeloom_sim::available_threads);
    let line = progress::Line::new(tell);
    let experiment = run(&Execution { threads, progress: &|done| line.show(&done) });
    line.clear();
    Ok(experiment?)
}

/// A file that a result goes to.
struct OutputFile {
    path: PathBuf,
    file: File,
}

impl OutputFile {
    fn open(path: Option<&Path>) -> Result<Option<Self>, Error> {
        let Some(path) = path else { return Ok(None) };
        let create = |source| Error::Create { path: path.to_owned(), source };
        Ok(Some(Self { path: path.to_owned(), file: File::create(path).map_err(create)? }))
    }

    fn write(file: Option<Self>, text: impl FnOnce() -> String) -> Result<(), Error> {
        let Some(Self { path, mut file }) = file else { return Ok(()) };
        file.write_all(text().as_bytes()).map_err(|source| Error::Create { path, source })
    }
}
