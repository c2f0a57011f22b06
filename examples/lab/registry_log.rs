//! Bytes fetched, as the registry's access log tells them (Apache's combined format).

use anyhow::Result;
use std::io::{Read, Seek, SeekFrom};
use std::net::Ipv4Addr;
use std::path::Path;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetch {
    pub(crate) client: Ipv4Addr,
    pub(crate) repository: String,
    pub(crate) digest: String,
    pub(crate) bytes: u64,
}

/// Blobs delivered, whole or in part, as the log tells from this byte on.
pub(crate) fn bytes_fetched(log: &Path, since: u64) -> Result<Vec<Fetch>> {
    let mut file = std::fs::File::open(log)?;
    file.seek(SeekFrom::Start(since))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text.lines().filter_map(read_line).collect())
}

fn read_line(line: &str) -> Option<Fetch> {
    let mut parts = line.split('"');
    let client = parts.next()?.split(' ').next()?.parse().ok()?;
    let (request, result) = (parts.next()?, parts.next()?);
    let path = request.strip_prefix("GET /v2/")?.split(' ').next()?;
    let (repository, digest) = path.split_once("/blobs/")?;
    let mut result = result.split_whitespace();
    if !matches!(result.next()?, "200" | "206") {
        return None;
    }
    let bytes = result.next()?.parse().ok()?;
    Some(Fetch { client, repository: repository.to_owned(), digest: digest.to_owned(), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_delivered_blobs_count() {
        let line = "10.60.0.11 - - [21/Nov/2026:12:00:00 +0000] \"GET /v2/a/b/blobs/sha256:ff HTTP/1.1\" 200 1234 \"\" \"docker\"";
        let fetch = read_line(line).unwrap();
        assert_eq!(
            (fetch.repository.as_str(), fetch.digest.as_str(), fetch.bytes),
            ("a/b", "sha256:ff", 1234)
        );
        assert_eq!(read_line(&line.replace("GET", "HEAD")), None);
        assert_eq!(read_line(&line.replace(" 200 ", " 404 ")), None);
        assert_eq!(read_line(&line.replace("blobs", "manifests")), None);
    }
}
