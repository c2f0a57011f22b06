//! `edgeloom sim streaming --topology FILE --jobs-dir DIR`.

use super::arguments::Streaming;
use crate::error::Error;
use edgeloom_sim::what_if::{self, Answer, File, Settings};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest file that is read.
const FILE_MAX: u64 = 16 * 1024 * 1024;
/// The most job documents; more is the wrong directory.
const FILES_MAX: usize = 10_000;

/// Reads the files and answers.
pub(super) fn answer(arguments: &Streaming, topology: &Path, jobs_dir: &Path) -> Result<Answer, Error> {
    let documents = documents(jobs_dir)?.iter().map(|path| file(path)).collect::<Result<Vec<_>, _>>()?;
    let scenario = what_if::read(&file(topology)?, &documents).map_err(Error::Files)?;
    let settings = arguments.settings();
    let settings = Settings {
        seed_base: settings.seed_base,
        arrivals_per_s: arguments.rate,
        floor: settings.floor,
        migration_s: settings.migration_s,
        horizon_s: settings.horizon_s.unwrap_or(settings.duration_s),
        profiles: settings.profiles,
    };
    Ok(what_if::run(&scenario, &settings)?)
}

/// The job documents of a directory, in the order of their names.
fn documents(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let read = || -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(directory)?.take(FILES_MAX) {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    };
    read().map_err(|source| Error::Input { path: directory.to_owned(), source })
}

/// A file's name and text.
pub(super) fn file(path: &Path) -> Result<File, Error> {
    let read = || -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        fs::File::open(path)?.take(FILE_MAX).read_to_end(&mut text)?;
        Ok(text)
    };
    let text = read().map_err(|source| Error::Input { path: path.to_owned(), source })?;
    Ok(File { name: path.display().to_string(), text })
}
