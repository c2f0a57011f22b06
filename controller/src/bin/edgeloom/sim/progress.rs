//! How far an experiment is, on standard error.

use edgeloom_sim::streaming::Progress;
use std::io::{IsTerminal, Write, stderr};

/// One line that is written over again on a terminal, a line a run elsewhere.
pub(super) struct Line {
    terminal: bool,
    shown: bool,
}

impl Line {
    /// Shown on a terminal, or where it was `asked` for.
    pub(super) fn new(asked: bool) -> Self {
        let terminal = stderr().is_terminal();
        Self { terminal, shown: asked || terminal }
    }

    pub(super) fn show(&self, progress: &Progress<'_>) {
        let Progress { done, all, profile, seed, sweep } = progress;
        let at = sweep.map_or_else(String::new, |value| format!(" at {value}"));
        self.write(&format!("{done}/{all} runs, last {profile} seed {seed}{at}"));
    }

    /// Makes room for what comes after.
    pub(super) fn clear(&self) {
        if self.terminal {
            self.write("");
        }
    }

    /// A standard error that is closed is no reason to stop.
    fn write(&self, text: &str) {
        let _ = match (self.shown, self.terminal) {
            (false, _) => Ok(()),
            (true, true) => write!(stderr(), "\r\u{1b}[K{text}"),
            (true, false) => writeln!(stderr(), "{text}"),
        };
    }
}
