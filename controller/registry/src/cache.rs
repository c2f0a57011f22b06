//! The catalogue on disk: lines that are appended, each with its checksum, and written anew when most are outdated.
//!
//! Nothing is synced but a new file: what a power cut takes is asked for again. Reading ends at the first line that
//! is not as it was written, since later ones lean on earlier ones.

use crate::catalogue::{Place, Tag};
use crate::manifest::{Blob, Layer, Platform};
use crate::table::{LayerId, Table};
use edgeloom_common::digest::Digest;
use edgeloom_common::registry::RegistryHost;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

const FILE: &str = "images.log";
/// A cache that is larger holds other things than images.
const FILE_MAX: u64 = 64 * 1024 * 1024;
/// Below this a file is not worth writing anew.
const OUTDATED_MIN: u64 = 1024 * 1024;
const LINE_MAX: u64 = 256 * 1024;
/// Checksum of the rest of the line in hexadecimal digits, and a space.
const CHECKSUM: usize = 8 + 1;

/// One change of the catalogue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record {
    /// From here on the number stands for the layer.
    Layer {
        id: u32,
        #[serde(flatten)]
        layer: Layer,
    },
    Image {
        digest: Digest,
        platforms: Vec<Numbered>,
    },
    Tag {
        registry: RegistryHost,
        repository: String,
        tag: String,
        digest: Digest,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        etag: Option<String>,
        seen_ms: u64,
    },
    Gone {
        registry: RegistryHost,
        repository: String,
        tag: String,
    },
}

/// A platform, its layers by their numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Numbered {
    architecture: String,
    config: Blob,
    layers: Vec<u32>,
}

impl Numbered {
    /// With the layers that the numbers stand for; none if one stands for nothing.
    pub(crate) fn with(self, layers: &BTreeMap<u32, Layer>) -> Option<Platform> {
        let layers = self.layers.iter().map(|id| layers.get(id).copied()).collect::<Option<_>>()?;
        Some(Platform { architecture: self.architecture, config: self.config, layers })
    }
}

impl Record {
    pub(crate) fn image(digest: Digest, table: &Table) -> Self {
        let numbered = |(architecture, config, layers): (&str, Blob, &[LayerId])| Numbered {
            architecture: architecture.to_owned(),
            config,
            layers: layers.iter().map(|id| id.0).collect(),
        };
        Self::Image { digest, platforms: table.places(&digest).into_iter().map(numbered).collect() }
    }

    /// None of a tag that has never been known.
    pub(crate) fn tag(place: &Place, tag: &Tag) -> Option<Self> {
        Some(Self::Tag {
            registry: place.host.clone(),
            repository: place.repository.to_string(),
            tag: place.tag.to_string(),
            digest: tag.digest?,
            etag: tag.etag.as_ref().map(ToString::to_string),
            seen_ms: tag.seen_ms,
        })
    }
}

/// A record as it lies on the disk.
#[derive(Debug)]
pub(crate) struct Line(Vec<u8>);

impl Line {
    pub(crate) fn of(record: &Record) -> Self {
        Self(serde_json::to_vec(record).expect("texts and numbers are JSON"))
    }

    pub(crate) fn append_to(&self, lines: &mut Vec<u8>) {
        lines.extend_from_slice(format!("{:08x} ", crc32fast::hash(&self.0)).as_bytes());
        lines.extend_from_slice(&self.0);
        lines.push(b'\n');
    }

    fn read(line: &[u8]) -> Option<Record> {
        let (checksum, text) = line.strip_suffix(b"\n")?.split_at_checked(CHECKSUM)?;
        let checksum = std::str::from_utf8(checksum).ok()?.strip_suffix(' ')?;
        let sound = u32::from_str_radix(checksum, 16).ok()? == crc32fast::hash(text);
        sound.then(|| serde_json::from_slice(text).ok())?
    }
}

/// The file.
#[derive(Debug)]
pub(crate) struct Cache {
    path: PathBuf,
    bytes: u64,
    /// How large it was when it was written anew.
    bytes_sound: u64,
}

impl Cache {
    /// The cache of a folder, which is made; nothing is read yet.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        Ok(Self { path: folder.join(FILE), bytes: 0, bytes_sound: 0 })
    }

    /// What the file holds, up to the first line that is damaged.
    pub(crate) fn records(&self) -> io::Result<impl Iterator<Item = Record>> {
        let file = match File::open(&self.path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let mut reader = file.map(|file| BufReader::new(file.take(FILE_MAX)));
        Ok(std::iter::from_fn(move || {
            let mut line = Vec::new();
            reader.as_mut()?.take(LINE_MAX).read_until(b'\n', &mut line).ok()?;
            let record = Line::read(&line);
            if record.is_none() {
                reader = None;
            }
            record
        }))
    }

    /// Writes the file anew.
    pub(crate) fn replace(&mut self, lines: &[u8]) -> io::Result<()> {
        edgeloom_disk::replace(&self.path, lines)?;
        self.bytes = lines.len() as u64;
        self.bytes_sound = self.bytes;
        Ok(())
    }

    /// Adds lines.
    pub(crate) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        OpenOptions::new().create(true).append(true).open(&self.path)?.write_all(lines)?;
        self.bytes += lines.len() as u64;
        Ok(())
    }

    /// Most of it is outdated, or it could not be read whole next time.
    pub(crate) fn is_outdated(&self) -> bool {
        self.bytes > (self.bytes_sound * 2).max(OUTDATED_MIN) || self.bytes > FILE_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(number: u32) -> Record {
        Record::Gone {
            registry: "reg.lan".parse().unwrap(),
            repository: "app".to_owned(),
            tag: number.to_string(),
        }
    }

    #[test]
    fn a_flipped_bit_or_a_cut_ends_the_reading_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let mut cache = Cache::open(folder.path()).unwrap();
        assert_eq!(cache.records().unwrap().count(), 0);
        let mut lines = Vec::new();
        (0..3).for_each(|number| Line::of(&gone(number)).append_to(&mut lines));
        cache.append(&lines).unwrap();
        let all: Vec<_> = (0..3).map(gone).collect();
        assert_eq!(cache.records().unwrap().collect::<Vec<_>>(), all);
        for at in 0..lines.len() {
            let mut damaged = lines.clone();
            damaged[at] ^= 1;
            for damaged in [&damaged[..], &lines[..at]] {
                cache.replace(damaged).unwrap();
                let read: Vec<_> = cache.records().unwrap().collect();
                assert!(read.len() < 3 && all.starts_with(&read), "{at}: {read:?}");
            }
        }
    }
}
