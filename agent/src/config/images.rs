//! The section [images]: when images are removed to make room.

use super::{Check, ConfigProblem};
use edgeloom_common::units::{Bytes, UnitError};
use serde::Deserialize;
use std::fmt;

/// As the kubelet has them (`imageGCHighThresholdPercent`, `imageGCLowThresholdPercent`).
const HIGH: Bound = Bound::Percent(85);
const LOW: Bound = Bound::Percent(80);

/// How full is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Of the file system that holds images, whoever fills it.
    Percent(u8),
    /// That images take themselves.
    Bytes(Bytes),
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Bytes(bytes) => write!(f, "{bytes}"),
        }
    }
}

/// Whose images may be removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Those that nobody else has named: a tag says that somebody wants to find the image again.
    #[default]
    Own,
    /// Every one that is not in use.
    All,
}

/// From `high` on images are removed until `low` is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageSettings {
    pub high: Bound,
    pub low: Bound,
    pub scope: Scope,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawImages {
    gc_high: Option<String>,
    gc_low: Option<String>,
    #[serde(default)]
    gc_scope: Scope,
}

impl Check {
    /// What is written; problems are noted.
    pub(super) fn images(&mut self, raw: &RawImages) -> ImageSettings {
        let high = self.bound("images.gc_high", raw.gc_high.as_deref(), HIGH);
        // Where only the upper bound is written, the lower one is below it by as much as usual.
        let below = match high {
            Bound::Percent(85..) => LOW,
            Bound::Percent(percent) => Bound::Percent(percent.saturating_sub(5)),
            Bound::Bytes(bytes) => Bound::Bytes(Bytes(bytes.0 / 100 * 94)),
        };
        let low = self.bound("images.gc_low", raw.gc_low.as_deref(), below);
        let in_order = match (low, high) {
            (Bound::Percent(low), Bound::Percent(high)) => low < high,
            (Bound::Bytes(low), Bound::Bytes(high)) => low < high,
            _ => false,
        };
        if !in_order {
            self.problems.push(ConfigProblem::Bounds { low, high });
        }
        ImageSettings { high, low, scope: raw.gc_scope }
    }

    fn bound(&mut self, key: &'static str, text: Option<&str>, usual: Bound) -> Bound {
        let Some(text) = text else { return usual };
        bound(text).unwrap_or_else(|source| {
            self.problems.push(ConfigProblem::Bytes { key, source });
            usual
        })
    }
}

fn bound(text: &str) -> Result<Bound, UnitError> {
    let Some(digits) = text.trim().strip_suffix('%') else { return text.parse().map(Bound::Bytes) };
    match digits.parse() {
        Ok(percent @ 1..=100) => Ok(Bound::Percent(percent)),
        _ => Err(UnitError::Number { text: text.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ImageSettings, Vec<ConfigProblem>> {
        let mut check = Check::default();
        let settings = check.images(&toml::from_str(text).unwrap());
        if check.problems.is_empty() { Ok(settings) } else { Err(check.problems) }
    }

    #[test]
    fn bounds_are_a_share_of_the_disk_or_bytes_of_images() {
        let usual = ImageSettings { high: HIGH, low: LOW, scope: Scope::Own };
        assert_eq!(read("").unwrap(), usual);
        let written = read("gc_high = \"20GB\"\ngc_low = \"15GB\"\ngc_scope = \"all\"").unwrap();
        assert_eq!(written.high, Bound::Bytes(Bytes(20_000_000_000)));
        assert_eq!((written.low, written.scope), (Bound::Bytes(Bytes(15_000_000_000)), Scope::All));
        assert_eq!(read("gc_high = \"60%\"").unwrap().low, Bound::Percent(55));
        assert_eq!(read("gc_high = \"1GB\"").unwrap().low, Bound::Bytes(Bytes(940_000_000)));
    }

    #[test]
    fn bounds_that_could_never_hold_are_refused() {
        for text in [
            "gc_low = \"85%\"",
            "gc_high = \"90%\"\ngc_low = \"1GB\"",
            "gc_high = \"101%\"",
            "gc_high = \"0%\"",
            "gc_high = \"much\"",
            "gc_high = \"1%\"\ngc_low = \"2%\"",
        ] {
            assert_eq!(read(text).unwrap_err().len(), 1, "{text}");
        }
        assert!(toml::from_str::<RawImages>("gc_scope = \"none\"").is_err());
    }
}
