//! What is simulated, and the bounds of it.

use edgeloom_sched::Profile;
use edgeloom_sched::sla::{Blocked, Cores, Order, Rules};
use serde::Serialize;

use crate::{SimError, within};

/// Of a run.
pub(super) const CONTAINERS: usize = 90;
/// Seconds, some thirty years.
pub(super) const ARRIVAL_MAX_S: f64 = 1e9;

/// The experiment's settings; the defaults are the paper's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    #[serde(skip)]
    pub seeds: u64,
    pub seed_base: u64,
    pub patterns: Vec<Pattern>,
    /// Seconds at which the containers of the pattern `google` arrive, of which the first 90 count; none: drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals_s: Option<Vec<f64>>,
}

/// When containers arrive, and whose they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// All at once, 30 of each user (Fig. 2).
    AtOnce,
    /// One of each user every 3 s (Fig. 3).
    Fixed,
    /// As in the Google trace, 2 premium and 88 advanced (Fig. 4).
    Google,
    /// As in the traces of Prezi, 10 premium, 13 advanced and 67 best effort (Fig. 5).
    Prezi,
}

/// Who serves the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The profile.
    Sla,
    /// The profile, but who finds no room blocks those behind.
    SlaBlocking,
    /// By arrival with fixed cores; who finds no room blocks those behind.
    Fifo,
    /// By arrival with fixed cores; who finds no room is passed over.
    FifoSkipping,
}

impl Pattern {
    /// All, in the paper's order.
    pub const ALL: [Self; 4] = [Self::AtOnce, Self::Fixed, Self::Google, Self::Prezi];

    /// As in options and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AtOnce => "at-once",
            Self::Fixed => "fixed",
            Self::Google => "google",
            Self::Prezi => "prezi",
        }
    }
}

impl Policy {
    /// All, the profile first.
    pub const ALL: [Self; 4] = [Self::Sla, Self::SlaBlocking, Self::Fifo, Self::FifoSkipping];

    /// As in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sla => "sla",
            Self::SlaBlocking => "sla-blocking",
            Self::Fifo => "fifo",
            Self::FifoSkipping => "fifo-skipping",
        }
    }

    pub(super) const fn profile(self) -> Profile {
        let by_arrival = Rules { order: Order::Arrival, cores: Cores::Fixed, ..Rules::PAPER };
        Profile::sla(match self {
            Self::Sla => Rules::PAPER,
            Self::SlaBlocking => Rules { blocked: Blocked::Blocks, ..Rules::PAPER },
            Self::Fifo => Rules { blocked: Blocked::Blocks, ..by_arrival },
            Self::FifoSkipping => by_arrival,
        })
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self { seeds: 10, seed_base: 1, patterns: Pattern::ALL.to_vec(), arrivals_s: None }
    }
}

impl Settings {
    #[expect(clippy::cast_precision_loss, reason = "counts beyond 2^52 are out of bounds before and after")]
    pub(super) fn check(&self) -> Result<(), SimError> {
        within("seeds", self.seeds as f64, (1.0, 10_000.0))?;
        within("patterns", self.patterns.len() as f64, (1.0, 4.0))?;
        if let Some(arrivals) = &self.arrivals_s {
            within("arrivals", arrivals.len() as f64, (CONTAINERS as f64, 1e7))?;
            arrivals.iter().try_for_each(|at_s| within("arrival in seconds", *at_s, (0.0, ARRIVAL_MAX_S)))?;
        }
        Ok(())
    }
}
