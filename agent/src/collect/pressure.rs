//! How full the disk is, against the bounds.

use crate::config::{Bound, ImageSettings};
use crate::engine::{ContainerEngine, Docker, EngineVersion};
use edgeloom_common::units::Bytes;
use edgeloom_observe::disk::{self, Disk};
use std::fmt;
use std::path::PathBuf;

/// Reads it.
#[derive(Debug)]
pub(super) struct Pressure {
    settings: ImageSettings,
    /// Whose file system counts where Docker's cannot be seen.
    state_dir: PathBuf,
    engine: EngineVersion,
}

/// One reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) used: Bytes,
    /// None: of what images take alone.
    capacity: Option<Bytes>,
    settings: ImageSettings,
}

impl Pressure {
    pub(super) fn new(settings: ImageSettings, state_dir: PathBuf) -> Self {
        Self { settings, state_dir, engine: EngineVersion::default() }
    }

    /// Asks Docker where it keeps images now.
    pub(super) async fn ask(&mut self, docker: &Docker) {
        if let Ok(engine) = docker.version().await {
            self.engine = engine;
        }
    }

    /// A look that asks nobody; what images take alone changes with a sign.
    pub(super) async fn may_be_high(&self) -> bool {
        matches!(self.settings.high, Bound::Percent(_)) && self.disk().is_some_and(|usage| usage.is_high())
    }

    /// The reading now; none where nothing can be read.
    pub(super) async fn usage(&self, docker: &Docker) -> Option<Usage> {
        match self.settings.high {
            Bound::Percent(_) => self.disk(),
            Bound::Bytes(_) => {
                let used = self.bytes(docker).await?;
                Some(Usage { used, capacity: None, settings: self.settings })
            }
        }
    }

    fn disk(&self) -> Option<Usage> {
        let root = if self.engine.root_dir.exists() { &self.engine.root_dir } else { &self.state_dir };
        let Disk { capacity, used } = disk::read(root).ok()?;
        Some(Usage { used, capacity: Some(capacity), settings: self.settings })
    }

    async fn bytes(&self, docker: &Docker) -> Option<Bytes> {
        let engine = self.engine.clone();
        match tokio::task::spawn_blocking(move || engine.read_layers()).await {
            Ok(Ok(stored)) => Some(stored.bytes),
            _ => Some(docker.layers(self.engine.store).await.ok()?.bytes),
        }
    }
}

impl Usage {
    pub(super) fn is_high(&self) -> bool {
        self.bytes_of(self.settings.high) < self.used
    }

    pub(super) fn is_low(&self) -> bool {
        self.used <= self.bytes_of(self.settings.low)
    }

    fn bytes_of(&self, bound: Bound) -> Bytes {
        match bound {
            Bound::Bytes(bytes) => bytes,
            Bound::Percent(percent) => {
                let capacity = self.capacity.unwrap_or_default().0;
                Bytes(capacity / 100 * u64::from(percent) + capacity % 100 * u64::from(percent) / 100)
            }
        }
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (used, high) = (self.used, self.settings.high);
        match self.capacity {
            Some(capacity) => write!(f, "{used} of the disk's {capacity} are used, over {high}"),
            None => write!(f, "images take {used}, over {high}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Scope;

    #[test]
    fn a_reading_lies_between_the_bounds_or_outside() {
        let settings = ImageSettings { high: Bound::Percent(85), low: Bound::Percent(80), scope: Scope::Own };
        let at = |used| Usage { used: Bytes(used), capacity: Some(Bytes(1010)), settings };
        let judged = |used| (at(used).is_low(), at(used).is_high());
        assert_eq!(
            [808, 809, 858, 859].map(judged),
            [(true, false), (false, false), (false, false), (false, true)]
        );
        assert_eq!(at(900).to_string(), "900 B of the disk's 1.01 KB are used, over 85%");
    }
}
