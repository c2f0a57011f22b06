//! One layer: a tar of files, compressed, with the digests of both forms.

use super::digest;
use flate2::{Compression, GzBuilder};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

/// A layer, ready to be pushed.
#[derive(Debug, Clone)]
pub struct Layer {
    /// The compressed tar.
    pub(super) blob: Vec<u8>,
    /// Of the compressed tar: what registries know.
    pub(super) digest: String,
    /// Of the plain tar: what the image's configuration lists.
    pub(super) diff_id: String,
}

/// A file in a layer.
#[derive(Debug, Clone)]
pub struct File<'a> {
    /// Without leading slash.
    pub path: &'a str,
    /// Permission bits, for instance `0o755`.
    pub mode: u32,
    pub content: &'a [u8],
}

impl Layer {
    /// A layer of these files and the directories they are in.
    ///
    /// # Panics
    /// If a path is longer than a tar header holds (255 bytes), which only a mistake in the caller's list can cause.
    #[must_use]
    pub fn files(files: &[File<'_>]) -> Self {
        let plain = archive(files).expect("short relative paths, and writing to memory, do not fail");
        let blob = compress(&plain).expect("writing to memory does not fail");
        Self { digest: digest(&blob), diff_id: digest(&plain), blob }
    }

    /// A layer of one file of that many bytes that don't compress; another seed, other bytes.
    #[must_use]
    pub fn random(path: &str, seed: u64, bytes: usize) -> Self {
        Self::files_and_noise(&[], (path, seed, bytes))
    }

    /// Files, and one of that many bytes of noise at a path.
    #[must_use]
    pub(super) fn files_and_noise(files: &[File<'_>], (path, seed, bytes): (&str, u64, usize)) -> Self {
        let content = noise(seed, bytes);
        Self::files(&[files, &[File { path, mode: 0o644, content: &content }]].concat())
    }

    /// What the registry calls it.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Bytes that a pull fetches.
    #[must_use]
    pub fn compressed_bytes(&self) -> u64 {
        self.blob.len() as u64
    }
}

fn archive(files: &[File<'_>]) -> io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    let parents = |file: &File<'_>| Path::new(file.path).ancestors().skip(1).map(Path::to_owned).collect();
    let directories: BTreeSet<_> = files.iter().flat_map::<Vec<_>, _>(parents).collect();
    for directory in directories.iter().filter(|path| !path.as_os_str().is_empty()) {
        let mut header = header(0o755, 0, tar::EntryType::Directory);
        tar.append_data(&mut header, directory, io::empty())?;
    }
    for file in files {
        let mut header = header(file.mode, file.content.len() as u64, tar::EntryType::Regular);
        tar.append_data(&mut header, file.path, file.content)?;
    }
    tar.into_inner()
}

/// Root owns everything and time stands still: only names and contents make a difference.
pub(super) fn header(mode: u32, bytes: u64, kind: tar::EntryType) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(bytes);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

fn compress(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    gzip.write_all(plain)?;
    gzip.finish()
}

/// Reproducible noise (splitmix64, Steele et al. 2014).
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed;
    let words = std::iter::repeat_with(|| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)).to_le_bytes()
    });
    words.flatten().take(bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_the_same_every_time_and_differs_by_seed() {
        let layer = Layer::random("opt/model", 1, 100_000);
        assert_eq!(layer.digest(), Layer::random("opt/model", 1, 100_000).digest());
        assert_ne!(layer.digest(), Layer::random("opt/model", 2, 100_000).digest());
        assert!(layer.compressed_bytes() > 100_000, "noise does not compress");
    }

    #[test]
    fn a_layer_unpacks_to_its_files_with_their_directories() {
        let layer = Layer::files(&[File { path: "opt/a/run", mode: 0o755, content: b"x" }]);
        let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(layer.blob.as_slice()));
        let entries: Vec<_> = tar
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.path().unwrap().display().to_string(), entry.header().mode().unwrap()))
            .collect();
        let wanted = [("opt", 0o755), ("opt/a", 0o755), ("opt/a/run", 0o755)];
        assert_eq!(entries, wanted.map(|(path, mode)| (path.to_owned(), mode)));
    }
}
