//! Moments as people write them: a date, a date with a time of day, or how long ago.

use std::time::{SystemTime, UNIX_EPOCH};
use time::{Date, Month, OffsetDateTime};

/// A moment, absolute or before now; in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    At(u64),
    Ago(u64),
}

impl Moment {
    /// Since 1970.
    pub(super) fn at_ms(self, now_ms: u64) -> u64 {
        match self {
            Self::At(ms) => ms,
            Self::Ago(ms) => now_ms.saturating_sub(ms),
        }
    }
}

pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn parse(text: &str) -> Result<Moment, String> {
    let moment = ago(text).map(Moment::Ago).or_else(|| at(text).map(Moment::At));
    moment.ok_or_else(|| {
        format!(
            "{text:?} is no time; write 2026-11-01, 2026-11-01T12:30:00Z (UTC), or 90s, 30m, 12h or 7d (ago)"
        )
    })
}

fn ago(text: &str) -> Option<u64> {
    const UNITS: [(char, u64); 4] = [('s', 1_000), ('m', 60_000), ('h', 3_600_000), ('d', 86_400_000)];
    let (number, ms) = UNITS.iter().find_map(|(unit, ms)| Some((text.strip_suffix(*unit)?, ms)))?;
    plain(number, 1..=9)?.checked_mul(*ms)
}

/// An absolute one, in milliseconds since 1970.
pub(crate) fn at(text: &str) -> Option<u64> {
    let (date, clock) = text.split_once('T').unwrap_or((text, "00:00:00Z"));
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(clock.strip_suffix('Z')?, ':', [2, 2, 2])?;
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date = Date::from_calendar_date(i32::try_from(year).ok()?, month, u8::try_from(day).ok()?).ok()?;
    let part = |part: u64| u8::try_from(part).ok();
    let at = date.with_hms(part(hour)?, part(minute)?, part(second)?).ok()?.assume_utc();
    u64::try_from(at.unix_timestamp()).ok()?.checked_mul(1_000)
}

/// Three numbers of so many digits each.
fn numbers(text: &str, separator: char, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(separator);
    let mut next = |digits: usize| plain(parts.next()?, digits..=digits);
    let found = [next(digits[0])?, next(digits[1])?, next(digits[2])?];
    parts.next().is_none().then_some(found)
}

fn plain(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<u64> {
    let all_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    (all_digits && digits.contains(&text.len())).then(|| text.parse().ok())?
}

/// `2026-11-01 12:30:00Z`; one that no calendar has in its milliseconds.
pub(super) fn text(at_ms: u64) -> String {
    let seconds = i64::try_from(at_ms / 1_000).ok();
    match seconds.and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok()) {
        Some(at) => {
            let (date, (hour, minute, second)) = (at.date(), at.time().as_hms());
            let (year, month, day) = (date.year(), u8::from(date.month()), date.day());
            format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z")
        }
        None => format!("{at_ms} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_times_and_ages_read() {
        for (given, moment) in [
            ("1970-01-01", Moment::At(0)),
            ("2026-11-22", Moment::At(1_795_305_600_000)),
            ("2028-02-29T23:59:59Z", Moment::At(1_835_481_599_000)),
            ("90s", Moment::Ago(90_000)),
            ("7d", Moment::Ago(604_800_000)),
        ] {
            assert_eq!(parse(given), Ok(moment), "{given}");
        }
        assert_eq!(text(1_795_305_600_000), "2026-11-22 00:00:00Z");
        assert_eq!(text(u64::MAX), format!("{} ms", u64::MAX));
        assert_eq!(Moment::Ago(5).at_ms(3), 0);
    }

    #[test]
    fn what_is_no_time_is_refused_with_the_remedy() {
        for bad in [
            "",
            "now",
            "2026-13-01",
            "2026-02-29",
            "2026-1-1",
            "26-01-01",
            "2026-01-01T25:00:00Z",
            "2026-01-01T12:00:00",
            "2026-01-01T12:00:00+01:00",
            "2026-01-01-01",
            "1969-12-31",
            "-1d",
            "1.5h",
            "9999999999d",
            "1w",
        ] {
            assert!(parse(bad).is_err_and(|remedy| remedy.contains("2026-11-01")), "{bad}");
        }
    }
}
