//! What a `doctor` command answers: checks, each with a verdict, what was seen, and the remedy.
//!
//! A check that could not be made says so; it is never counted as good.

use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    /// It could not be looked at.
    Unknown,
    /// It works, but not as it should.
    Warn,
    /// Something that Edgeloom is for does not work.
    Fail,
}

impl Verdict {
    /// The word of the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub check: String,
    pub verdict: Verdict,
    /// What was found.
    pub seen: String,
    /// What to do about it; empty where nothing is.
    #[serde(default)]
    pub remedy: String,
}

impl Check {
    /// All is well.
    #[must_use]
    pub fn ok(check: &str, seen: impl Into<String>) -> Self {
        Self { check: check.to_owned(), verdict: Verdict::Ok, seen: seen.into(), remedy: String::new() }
    }

    /// It could not be looked at.
    #[must_use]
    pub fn unknown(check: &str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check: check.to_owned(), verdict: Verdict::Unknown, seen: seen.into(), remedy: remedy.into() }
    }

    /// It works, but not as it should.
    #[must_use]
    pub fn warn(check: &str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warn, ..Self::unknown(check, seen, remedy) }
    }

    /// It does not work.
    #[must_use]
    pub fn fail(check: &str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Fail, ..Self::unknown(check, seen, remedy) }
    }
}

/// What is known of a directory that a daemon keeps its state in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// A file can be made in it, or why not.
    pub writable: Result<(), String>,
    pub free_bytes: Result<u64, String>,
}

/// Journals, documents and bookkeeping need far less; a daemon should never see the end of it.
const SPACE_WARN_BYTES: u64 = 256 << 20;
const SPACE_FAIL_BYTES: u64 = 16 << 20;

impl Space {
    /// Whether the directory at `path` takes what its owner `user` writes.
    #[must_use]
    pub fn judge(&self, path: &str, user: &str) -> Check {
        const CHECK: &str = "state directory";
        if let Err(problem) = &self.writable {
            let remedy = format!("mount it writable, and chown -R {user}: {path}");
            return Check::fail(CHECK, format!("{path} cannot be written: {problem}"), remedy);
        }
        let free = match &self.free_bytes {
            Ok(free) => *free,
            Err(problem) => return Check::unknown(CHECK, problem.as_str(), "is the file system well?"),
        };
        let seen = format!("{path} is writable, {} MiB free", free >> 20);
        let remedy = "make room, for instance: docker image prune, journalctl --vacuum-size=100M";
        if free < SPACE_FAIL_BYTES {
            Check::fail(CHECK, seen, remedy)
        } else if free < SPACE_WARN_BYTES {
            Check::warn(CHECK, seen, remedy)
        } else {
            Check::ok(CHECK, seen)
        }
    }
}

/// The first second of 2026: a clock before this release was made is wrong, and certificates are refused by it.
const RELEASED_S: u64 = 1_767_225_600;

/// Whether a wall clock can be right at all; none if it can.
#[must_use]
pub fn judge_year(unix_s: u64) -> Option<Check> {
    let days = RELEASED_S.checked_sub(unix_s).filter(|early| 0 < *early)? / 86_400;
    let seen = format!("it is {days} days before this program was made; certificates will be refused");
    Some(Check::fail("clock", seen, TIME_SERVICE))
}

/// The remedy of a clock that nobody keeps.
pub const TIME_SERVICE: &str = "install a time service: apt-get install systemd-timesyncd (or chrony)";

/// All checks of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Examination {
    pub checks: Vec<Check>,
}

impl Examination {
    /// Whether something does not work.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.checks.iter().any(|check| check.verdict == Verdict::Fail)
    }

    /// For people: a line a check, the remedy below it, and the count at the end.
    #[must_use]
    pub fn text(&self) -> String {
        let width = self.checks.iter().map(|check| check.check.chars().count()).max().unwrap_or_default();
        let mut text = String::new();
        for Check { check, verdict, seen, remedy } in &self.checks {
            let (seen, verdict) = (plain(seen), verdict.word());
            let _ = writeln!(text, "{verdict:<7}  {check:<width$}  {seen}");
            if !remedy.is_empty() {
                let _ = writeln!(text, "{:<7}  {:<width$}  -> {}", "", "", plain(remedy));
            }
        }
        let count = |verdict| self.checks.iter().filter(|check| check.verdict == verdict).count();
        let [ok, warn, fail, unknown] =
            [Verdict::Ok, Verdict::Warn, Verdict::Fail, Verdict::Unknown].map(count);
        let _ = writeln!(text, "{ok} ok, {warn} warn, {fail} fail, {unknown} unknown");
        text
    }
}

/// What foreign programs said does not reach the terminal as it came.
fn plain(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_does_not_work_fails_the_examination() {
        let mut examination = Examination {
            checks: vec![
                Check::ok("clock", "synchronised"),
                Check::warn("mtu", "1400", "set it"),
                Check::unknown("docker", "not asked", "become root"),
            ],
        };
        assert!(!examination.failed());
        examination.checks.push(Check::fail("kernel", "no HTB", "load sch_htb"));
        assert!(examination.failed());
    }

    #[test]
    fn the_text_names_verdict_and_remedy_without_control_characters() {
        let checks = vec![Check::ok("clock", "now"), Check::fail("kernel", "no\u{1b}HTB", "load sch_htb")];
        let text = Examination { checks }.text();
        let expected = "ok       clock   now\nfail     kernel  no HTB\n                 -> load sch_htb\n\
                        1 ok, 0 warn, 1 fail, 0 unknown\n";
        assert_eq!(text, expected);
    }
}
