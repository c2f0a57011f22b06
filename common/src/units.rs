//! Quantities with their unit in the type: bytes, bit rates, CPU shares and work.
//!
//! Text forms are strict: a rate without a unit is refused, since `10M` means bits to some and bytes
//! to others.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Share of a full Ethernet frame that is TCP payload: 1448 of 1514 bytes (MTU 1500, timestamps on).
/// Wire rates are what the kernel shapes; an application sees this share of them.
pub const TCP_GOODPUT: f64 = 1448.0 / 1514.0;

/// Part of what flows leave of a link that a pull of an image takes: what is full to the last bit has a queue, in which
/// the flows wait too.
pub const PULL_PART: f64 = 0.95;

/// Why a text is no quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The number itself does not read.
    #[error("{text:?} does not start with a positive number")]
    Number { text: String },
    /// The unit is missing or unknown.
    #[error("{text:?} needs a unit, one of: {units}")]
    Unit { text: String, units: &'static str },
    /// The value does not fit the type.
    #[error("{text:?} is too large")]
    TooLarge { text: String },
}

const BYTE_UNITS: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];
const RATE_UNITS: &[(&str, f64)] = &[
    ("bit/s", 1.0),
    ("kbit/s", 1e3),
    ("Kbit/s", 1e3),
    ("Mbit/s", 1e6),
    ("Gbit/s", 1e9),
    ("B/s", 8.0),
    ("kB/s", 8e3),
    ("KB/s", 8e3),
    ("MB/s", 8e6),
    ("GB/s", 8e9),
];
const WORK_UNITS: &[(&str, f64)] = &[("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// Reads `<number><unit>` against a table of units; the result is rounded to a whole base unit.
fn parse_scaled(text: &str, table: &[(&str, f64)], units: &'static str) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let number: f64 = number.parse().map_err(|_| UnitError::Number { text: text.to_owned() })?;
    let unit = unit.trim();
    let scale = table
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, scale)| *scale)
        .ok_or_else(|| UnitError::Unit { text: text.to_owned(), units })?;
    let value = (number * scale).round();
    if value > 9e15 {
        return Err(UnitError::TooLarge { text: text.to_owned() });
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked: 0 <= value <= 9e15"
    )]
    Ok(value as u64)
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_scaled(text, BYTE_UNITS, "B, KB, MB, GB, KiB, MiB, GiB").map(Bytes)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&scaled(self.0, &[(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "KB")], "B"))
    }
}

/// A bit rate, in bits a second. Whether it counts wire frames or payload is said where it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BitRate(pub u64);

impl BitRate {
    /// Bits a second as a float, for the solvers.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "rates stay far below 2^52")]
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }
}

impl FromStr for BitRate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_scaled(text, RATE_UNITS, "bit/s, Kbit/s, Mbit/s, Gbit/s, B/s, KB/s, MB/s, GB/s").map(BitRate)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "Kbit/s")];
        f.pad(&scaled(self.0, &steps, "bit/s"))
    }
}

/// CPU in thousandths of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MilliCores(pub u32);

impl FromStr for MilliCores {
    type Err = UnitError;
    /// `500m` is half a core, `0.5` too, `2` is two cores.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (digits, scale) = match text.trim().strip_suffix('m') {
            Some(digits) => (digits, 1.0),
            None => (text.trim(), 1000.0),
        };
        let number: f64 = digits.parse().map_err(|_| UnitError::Number { text: text.to_owned() })?;
        let value = (number * scale).round();
        if !value.is_finite() || value < 0.0 {
            return Err(UnitError::Number { text: text.to_owned() });
        }
        if value > 1e8 {
            return Err(UnitError::TooLarge { text: text.to_owned() });
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked: 0..=1e8")]
        Ok(MilliCores(value as u32))
    }
}

impl fmt::Display for MilliCores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}m", self.0))
    }
}

/// Computing effort: nanoseconds on one reference core. A node's speed says how many reference-core
/// seconds one of its cores does in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Work(pub u64);

impl Work {
    /// Reference-core seconds, for the solvers.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "work an item stays far below 2^52 ns")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl FromStr for Work {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_scaled(text, WORK_UNITS, "us, ms, s").map(Work)
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&scaled(self.0, &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")], "ns"))
    }
}

/// `12.35 MB`: the largest step that the value reaches, with at most two decimals.
fn scaled(value: u64, steps: &[(u64, &str)], base: &str) -> String {
    let Some((step, unit)) = steps.iter().find(|(step, _)| value >= *step) else {
        return format!("{value} {base}");
    };
    let hundredths = (u128::from(value) * 100 + u128::from(*step) / 2) / u128::from(*step);
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    match rest {
        0 => format!("{whole} {unit}"),
        _ if rest.is_multiple_of(10) => format!("{whole}.{} {unit}", rest / 10),
        _ => format!("{whole}.{rest:02} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_need_a_unit_and_know_bits_from_bytes() {
        assert_eq!("10Mbit/s".parse(), Ok(BitRate(10_000_000)));
        assert_eq!("1MB/s".parse(), Ok(BitRate(8_000_000)));
        assert_eq!("1.5 Mbit/s".parse(), Ok(BitRate(1_500_000)));
        for bad in ["10M", "10", "10Mbit", "10mbit/s"] {
            assert!(matches!(bad.parse::<BitRate>(), Err(UnitError::Unit { .. })), "{bad}");
        }
        assert!(matches!("-1Mbit/s".parse::<BitRate>(), Err(UnitError::Number { .. })));
        assert!(matches!("99999999999Gbit/s".parse::<BitRate>(), Err(UnitError::TooLarge { .. })));
    }

    #[test]
    fn bytes_cores_and_work_read_and_print() {
        assert_eq!("600KB".parse(), Ok(Bytes(600_000)));
        assert_eq!("256MiB".parse(), Ok(Bytes(268_435_456)));
        assert_eq!("500m".parse(), Ok(MilliCores(500)));
        assert_eq!("1.5".parse(), Ok(MilliCores(1500)));
        assert!("NaN".parse::<MilliCores>().is_err());
        assert_eq!("40ms".parse(), Ok(Work(40_000_000)));
        assert_eq!(Bytes(12_345_678).to_string(), "12.35 MB");
        assert_eq!(BitRate(10_000_000).to_string(), "10 Mbit/s");
        assert_eq!(BitRate(10_500_000).to_string(), "10.5 Mbit/s");
        assert_eq!(Work(40_000_000).to_string(), "40 ms");
    }
}
