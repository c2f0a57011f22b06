//! Kills one victim after another and starts each again, as a service manager would. A kill counts once its
//! process was seen gone and the daemon was seen serving afterwards.

use super::timeline::Timeline;
use super::victim::{Turn, Victim};
use crate::api::Api;
use crate::lab::Lab;
use anyhow::{Context, Result, ensure};
use std::time::{Duration, Instant};

/// How often those that were started are asked whether they serve.
const POLL: Duration = Duration::from_millis(100);
/// How long one may take to serve again; other daemons are down meanwhile.
const BACK_LIMIT: Duration = Duration::from_secs(90);

/// A kill whose process was seen gone.
#[derive(Debug, Clone)]
pub(crate) struct Kill {
    pub(crate) victim: Victim,
    pub(crate) at_s: f64,
    pub(crate) started_s: f64,
    /// When it was seen serving again.
    pub(crate) back_s: Option<f64>,
}

/// The killer at work.
#[derive(Debug)]
pub(crate) struct Killer<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) api: &'a Api,
    pub(crate) timeline: &'a Timeline,
    pub(crate) kills: Vec<Kill>,
}

impl Killer<'_> {
    /// Takes all turns, and waits until everybody is back.
    pub(crate) fn run(&mut self, turns: &[Turn]) -> Result<()> {
        for (index, turn) in turns.iter().enumerate() {
            self.rest(turn.pause)?;
            // Killed again while it starts, it would be one death with two signals.
            self.await_back(|victim| *victim == turn.victim)?;
            self.take(turn).with_context(|| format!("kill {}, {}", index + 1, turn.victim))?;
            if (index + 1) % 10 == 0 {
                println!("  {} kills after {:.0} s", index + 1, self.timeline.now_s());
            }
        }
        self.await_back(|_| true)
    }

    fn take(&mut self, turn: &Turn) -> Result<()> {
        let victim = &turn.victim;
        victim.kill(self.lab)?;
        let at_s = self.timeline.now_s();
        self.timeline.note(victim.place(), format!("{victim}: killed, gone"));
        self.rest(turn.down)?;
        victim.start(self.lab)?;
        let started_s = self.timeline.now_s();
        self.timeline.note(victim.place(), format!("{victim}: started"));
        self.kills.push(Kill { victim: victim.clone(), at_s, started_s, back_s: None });
        Ok(())
    }

    /// Passes time, noting who serves again.
    fn rest(&mut self, length: Duration) -> Result<()> {
        let until = Instant::now() + length;
        loop {
            self.look()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(POLL.min(left));
        }
    }

    fn look(&mut self) -> Result<()> {
        for kill in self.kills.iter_mut().filter(|kill| kill.back_s.is_none()) {
            if kill.victim.serves(self.lab, self.api)? {
                kill.back_s = Some(self.timeline.now_s());
                self.timeline.note(kill.victim.place(), format!("{}: serves again", kill.victim));
            }
        }
        Ok(())
    }

    fn await_back(&mut self, whom: impl Fn(&Victim) -> bool) -> Result<()> {
        let begun = Instant::now();
        while let Some(kill) = self.kills.iter().find(|kill| kill.back_s.is_none() && whom(&kill.victim)) {
            let seconds = BACK_LIMIT.as_secs();
            ensure!(begun.elapsed() < BACK_LIMIT, "{} does not serve again within {seconds} s", kill.victim);
            self.rest(POLL)?;
        }
        Ok(())
    }
}
