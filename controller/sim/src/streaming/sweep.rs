//! One setting over several values, as in `nodes=10,20,..70`.

use edgeloom_common::units::BitRate;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// More points would take days.
const POINTS_MAX: usize = 100;

/// What is swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Axis {
    #[serde(rename = "nodes")]
    Nodes,
    #[serde(rename = "jobs")]
    Jobs,
    #[serde(rename = "link_bps")]
    Bandwidth,
}

/// An axis and its values; bandwidths are in bit/s.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    pub axis: Axis,
    pub values: Vec<f64>,
}

/// Why a text is no sweep.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SweepError {
    /// No `=`, or another setting.
    #[error("{text:?} sweeps nothing; write nodes=, jobs= or bandwidth= and values, as in nodes=10,20,..70")]
    Axis { text: String },
    /// A value does not read.
    #[error("{value:?} is no value of {axis}; write {example}")]
    Value { axis: Axis, value: String, example: &'static str },
    /// `..70` needs two values before it to know the step, and an end after them.
    #[error("{value:?} needs two rising values before it and an end beyond them, as in 10,20,..70")]
    Range { value: String },
    /// Too many values.
    #[error("more than {POINTS_MAX} values; take larger steps")]
    TooMany,
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Nodes => "nodes",
            Self::Jobs => "jobs",
            Self::Bandwidth => "bandwidth",
        })
    }
}

impl Axis {
    fn value(self, text: &str) -> Result<f64, SweepError> {
        let (read, example) = match self {
            Self::Bandwidth => (text.parse().ok().map(BitRate::as_f64), "a rate as 10Mbit/s"),
            Self::Nodes | Self::Jobs => {
                (text.parse().ok().map(|count: u32| f64::from(count)), "a whole number")
            }
        };
        read.ok_or_else(|| SweepError::Value { axis: self, value: text.to_owned(), example })
    }
}

impl FromStr for Sweep {
    type Err = SweepError;

    fn from_str(text: &str) -> Result<Self, SweepError> {
        let unknown = || SweepError::Axis { text: text.to_owned() };
        let (axis, list) = text.split_once('=').ok_or_else(unknown)?;
        let axes = [Axis::Nodes, Axis::Jobs, Axis::Bandwidth];
        let axis = axes.into_iter().find(|known| known.to_string() == axis).ok_or_else(unknown)?;
        let mut values = Vec::new();
        for part in list.split(',') {
            match part.strip_prefix("..") {
                Some(end) => extend(&mut values, axis.value(end)?, part)?,
                None => values.push(axis.value(part)?),
            }
            if values.len() > POINTS_MAX {
                return Err(SweepError::TooMany);
            }
        }
        Ok(Self { axis, values })
    }
}

/// Goes on by the last step up to `end`.
fn extend(values: &mut Vec<f64>, end: f64, part: &str) -> Result<(), SweepError> {
    let range = || SweepError::Range { value: part.to_owned() };
    let [.., before, last] = values[..] else { return Err(range()) };
    let step = last - before;
    if step <= 0.0 || end <= last {
        return Err(range());
    }
    let mut next = last + step;
    while next <= end && values.len() <= POINTS_MAX {
        values.push(next);
        next += step;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_ranges_read() {
        let sweep: Sweep = "nodes=10,20,..70".parse().unwrap();
        assert_eq!(sweep.values, [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0]);
        let sweep: Sweep = "bandwidth=500Kbit/s,1Mbit/s,2Mbit/s,..4Mbit/s".parse().unwrap();
        assert_eq!((sweep.axis, sweep.values), (Axis::Bandwidth, vec![5e5, 1e6, 2e6, 3e6, 4e6]));
    }

    #[test]
    fn what_does_not_read_is_refused() {
        let read = |text: &str| text.parse::<Sweep>().unwrap_err();
        for text in ["nodes", "speed=1,2"] {
            assert!(matches!(read(text), SweepError::Axis { .. }), "{text}");
        }
        for text in ["nodes=x", "nodes=", "bandwidth=10", "jobs=-1"] {
            assert!(matches!(read(text), SweepError::Value { .. }), "{text}");
        }
        for text in ["nodes=10,..70", "nodes=20,10,..70", "nodes=10,20,..15"] {
            assert!(matches!(read(text), SweepError::Range { .. }), "{text}");
        }
        assert_eq!(read("jobs=1,2,..10000000"), SweepError::TooMany);
    }
}
