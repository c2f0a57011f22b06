//! Whether a test that needs root runs. Skipped ones are told and counted, on the terminal itself: the
//! harness swallows what a passing test prints, but not what is written to standard error's handle.
//! The last line that a run of the tests writes has the number of all it skipped.

use crate::{Need, asked, is_root, prepare};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::process::parent_id;
use std::panic::Location;
use std::path::{Path, PathBuf};

/// For a test that needs root and these programs: whether it runs. Installs the programs that are
/// missing; ends the test, with the remedy, where it cannot run.
///
/// # Panics
/// Without root, and where a program is missing and cannot be installed.
#[must_use]
#[track_caller]
pub fn lab_allowed(programs: &[&str]) -> bool {
    let name = test_name(Location::caller());
    if asked("EDGELOOM_SKIP_LAB") {
        tell_skipped(&name);
        return false;
    }
    assert!(is_root(), "{name} needs root: run the tests as root, or skip this one with EDGELOOM_SKIP_LAB=1");
    if let Err(error) = prepare(Need::Programs(programs)) {
        panic!("{name} cannot run: {error}; EDGELOOM_SKIP_LAB=1 skips it");
    }
    true
}

/// The harness names a test's thread after it, unless tests run one by one on the main thread.
fn test_name(place: &Location<'_>) -> String {
    match std::thread::current().name() {
        None | Some("main") => format!("{}:{}", place.file(), place.line()),
        Some(name) => name.to_owned(),
    }
}

fn tell_skipped(name: &str) {
    let counted = count(name).map_or_else(
        |error| format!("cannot count ({error})"),
        |count| format!("tests that need root skipped so far: {count}"),
    );
    let line = format!("skipped: {name} (EDGELOOM_SKIP_LAB=1); {counted}\n");
    // One write, so that lines of several threads do not mix; a closed standard error fails no test.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Notes the test and tells how many this run of the tests has skipped. A run is the process that
/// starts the test programs, cargo; its names are a file in the target folder.
fn count(name: &str) -> io::Result<usize> {
    let program = std::env::current_exe()?;
    let folder = scratch(&program).join("skipped");
    fs::create_dir_all(&folder)?;
    let path = folder.join(run(parent_id())?);
    let mut file = File::options().create(true).read(true).append(true).open(&path)?;
    file.lock()?;
    forget_ended(&folder)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let entry = format!("{} {name}", program.display());
    let before = text.lines().count();
    if text.lines().any(|line| line == entry) {
        return Ok(before);
    }
    writeln!(file, "{entry}")?;
    Ok(before + 1)
}

/// Cargo's folder for the files of tests, beside which it puts the test program.
fn scratch(program: &Path) -> PathBuf {
    let target = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").exists());
    target.map_or_else(std::env::temp_dir, |target| target.join("tmp"))
}

/// Number and start (field 22 of proc_pid_stat(5), after the name in brackets) of a process: numbers
/// come again, both together do not.
fn run(process: u32) -> io::Result<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    Ok(format!("{process}-{}", fields.split(' ').nth(19).unwrap_or_default()))
}

/// Removes the files of runs that have ended.
fn forget_ended(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.split('-').next().and_then(|number| number.parse().ok());
        if process.is_none_or(|process| run(process).ok().as_ref() != Some(&name)) {
            // Another test program may have been faster.
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Runs the two tests below as their own run, without `--nocapture`.
    fn skipping() -> String {
        let program = std::env::current_exe().unwrap();
        let mut again = Command::new(program);
        // On more than one thread the harness names it, whatever this machine's default is.
        again
            .args(["skip::tests::skippable", "--include-ignored", "--test-threads=2"])
            .env("EDGELOOM_SKIP_LAB", "1");
        let output = again.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    #[test]
    fn skipped_tests_are_told_through_the_harness_and_counted_together() {
        let told = skipping();
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), 3, "{told}");
        for name in ["skippable_one", "skippable_two"] {
            let line = format!("skipped: skip::tests::{name} (EDGELOOM_SKIP_LAB=1); ");
            assert!(lines.iter().any(|told| told.starts_with(&line)), "{told}");
        }
        let mut counts: Vec<&str> = lines.iter().filter_map(|line| line.rsplit(' ').next()).collect();
        counts.sort_unstable();
        assert_eq!((counts[0], counts[2]), ("1", "2"), "asking twice counts once: {told}");
    }

    #[test]
    #[ignore = "run by skipped_tests_are_told_through_the_harness_and_counted_together"]
    fn skippable_one() {
        assert!(!lab_allowed(&["edgeloom-unlisted"]));
    }

    #[test]
    #[ignore = "run by skipped_tests_are_told_through_the_harness_and_counted_together"]
    fn skippable_two() {
        assert!(!lab_allowed(&[]) && !lab_allowed(&[]));
    }

    #[test]
    fn a_process_that_ended_is_no_run() {
        let mut child = Command::new("true").spawn().unwrap();
        let id = child.id();
        assert!(run(id).unwrap().starts_with(&format!("{id}-")));
        child.wait().unwrap();
        assert!(run(id).is_err());
    }
}
