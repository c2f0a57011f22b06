//! Numbers for people.

use edgeloom_common::units::{BitRate, Bytes};

/// What stands where nothing is known.
pub(crate) const UNKNOWN: &str = "-";

pub(crate) fn bytes(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

pub(crate) fn rate(bps: u64) -> String {
    BitRate(bps).to_string()
}

/// A number that may not be known, as `print` has it.
pub(crate) fn known<T>(value: Option<T>, print: impl Fn(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), print)
}

/// Microseconds in milliseconds.
pub(crate) fn milliseconds(us: u32) -> String {
    format!("{:.2} ms", f64::from(us) / 1000.0)
}
