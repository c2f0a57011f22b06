//! When the registry was asked, as its own log tells (a JSON document a line): the access log knows whole seconds
//! only.

use anyhow::Result;
use serde::Deserialize;
use std::io::{Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A line about an answer.
#[derive(Debug, Deserialize)]
struct Line {
    #[serde(rename = "http.request.remoteaddr")]
    from: SocketAddrV4,
    /// As Go writes it: `1m2.5s`, `670.6µs`.
    #[serde(rename = "http.response.duration")]
    duration: String,
    /// When the answer was complete.
    time: String,
}

impl Line {
    /// When the request came, in seconds since 1970.
    #[expect(clippy::cast_precision_loss, reason = "microseconds matter here, not nanoseconds")]
    fn began_s(&self) -> Option<f64> {
        let ended = OffsetDateTime::parse(&self.time, &Rfc3339).ok()?.unix_timestamp_nanos() as f64 / 1e9;
        Some(ended - go_seconds(&self.duration)?)
    }
}

/// When this client asked first, in seconds since 1970, as the log tells from this byte on.
pub(crate) fn first_request(log: &Path, since: u64, client: Ipv4Addr) -> Result<Option<f64>> {
    let mut file = std::fs::File::open(log)?;
    file.seek(SeekFrom::Start(since))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let answers = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    let ours = answers.filter(|line| *line.from.ip() == client);
    Ok(ours.filter_map(|line| line.began_s()).min_by(f64::total_cmp))
}

/// Reads a duration of Go, which is numbers with their units in a row.
fn go_seconds(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| c != '.' && !c.is_ascii_digit())?);
        let unit = &after[..after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len())];
        let factor = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * factor;
        rest = &after[unit.len()..];
    }
    Some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_go_read() {
        for (text, wanted) in [("670.5µs", 0.000_670_5), ("1m2.5s", 62.5), ("3ms", 0.003), ("1h0m1s", 3601.0)]
        {
            assert!((go_seconds(text).unwrap() - wanted).abs() < 1e-9, "{text}");
        }
        assert_eq!(go_seconds("soon"), None);
    }

    #[test]
    fn the_first_request_of_a_client_is_found() {
        let line = |from: &str, time: &str| {
            format!(
                "{{\"http.request.remoteaddr\":\"{from}:1\",\"http.response.duration\":\"500ms\",\"time\":\"1970-01-01T00:00:{time}Z\"}}\n"
            )
        };
        let path = std::env::temp_dir().join(format!("edgeloom-registry-times-{}", std::process::id()));
        let text =
            ["{}\n".to_owned(), line("10.0.0.1", "01"), line("10.0.0.2", "05"), line("10.0.0.2", "03")];
        std::fs::write(&path, text.concat()).unwrap();
        let found = |client: &str| first_request(&path, 0, client.parse().unwrap()).unwrap();
        assert_eq!((found("10.0.0.2"), found("10.0.0.3")), (Some(2.5), None));
        std::fs::remove_file(path).unwrap();
    }
}
