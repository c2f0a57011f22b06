//! What a daemon says in its log from now on: a line of JSON each.

use anyhow::{Context, Result};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::SystemTime;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    from: u64,
}

impl Log {
    /// What is said after this moment.
    pub(super) fn from_now(path: PathBuf) -> Result<Self> {
        let from = std::fs::metadata(&path).with_context(|| path.display().to_string())?.len();
        Ok(Self { path, from })
    }

    /// When this was said first.
    pub(super) fn said(&self, message: &str) -> Result<Option<SystemTime>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.from))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok(text.lines().find_map(|line| said(line, message)))
    }
}

fn said(line: &str, message: &str) -> Option<SystemTime> {
    let line: Value = serde_json::from_str(line).ok()?;
    let stamp = line["timestamp"].as_str().filter(|_| line["fields"]["message"] == message)?;
    OffsetDateTime::parse(stamp, &Rfc3339).ok().map(SystemTime::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_found_with_its_moment() {
        let line =
            r#"{"timestamp":"1970-01-01T00:01:00.5Z","level":"INFO","fields":{"message":"ready","n":1}}"#;
        let at = said(line, "ready").unwrap();
        assert_eq!(at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis(), 60_500);
        assert_eq!(said(line, "read"), None);
        assert_eq!(said("no JSON", "ready"), None);
    }
}
