//! Units that are watched.

use crate::Machine;
use std::time::Duration;

impl Machine {
    /// Holds a unit that was never restarted to its promise: it gives signs of life, is left alone while it does, and
    /// is killed and started again once it hangs.
    #[track_caller]
    pub fn replaces_what_hangs(&self, unit: &str, limit: Duration) {
        self.await_signs_of_life(unit, limit);
        let restarts = || self.property(unit, "NRestarts");
        assert_eq!(restarts(), "0", "the watchdog took one at work for one that hangs");
        let first = self.property(unit, "MainPID");
        self.run(&["kill", "-STOP", &first]);
        self.await_that("the watchdog replaces what was stopped", limit, || {
            restarts() == "1" && self.property(unit, "ActiveState") == "active"
        });
        assert_ne!(self.property(unit, "MainPID"), first);
        let journal = self.run(&["journalctl", "--no-pager", "--unit", unit]);
        assert!(journal.contains("Watchdog timeout"), "{journal}");
    }

    /// Waits for three of them.
    #[track_caller]
    fn await_signs_of_life(&self, unit: &str, limit: Duration) {
        let last = || self.property(unit, "WatchdogTimestampMonotonic");
        for _ in 0..3 {
            let before = last();
            self.await_that("a sign of life", limit, || last() != before);
        }
    }
}
