//! A family of real images, a fortieth of their size: which layers they share is theirs, the bytes are noise.
//!
//! In: the program that all of them start with. Out: the images; a layer's id decides its bytes, so that the same
//! layer has the same digest wherever it is built.

use super::{File, ImageSpec, Layer};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Names its source.
const TEXT: &str = include_str!("../../lab/data/scaled_family.json");
/// What the program is called in the image.
const PROGRAM: &str = "pipeline";

#[derive(Debug, Deserialize)]
struct Family {
    images: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    name: String,
    tag: String,
    layers: Vec<Part>,
}

#[derive(Debug, Deserialize)]
struct Part {
    /// The first digits of the original's digest.
    id: String,
    size: usize,
}

impl Part {
    /// So much noise of the layer's own.
    fn noise(&self, bytes: usize) -> Layer {
        self.layer(&[], bytes)
    }

    /// A first layer: the program, and noise up to the layer's size.
    fn with_program(&self, program: &[u8], packed: usize) -> Layer {
        let file = File { path: PROGRAM, mode: 0o755, content: program };
        self.layer(&[file], self.size.saturating_sub(packed))
    }

    fn layer(&self, files: &[File<'_>], bytes: usize) -> Layer {
        let seed = u64::from_str_radix(&self.id, 16).expect("the data is part of the program and tested");
        let path = format!("layers/{}", self.id);
        Layer::files_and_noise(files, (&path, seed, bytes))
    }
}

/// All images of the family around the `pipeline` binary, which has to be static; they start and idle.
#[must_use]
pub fn family(pipeline_binary: &[u8]) -> Vec<ImageSpec> {
    let family: Family = serde_json::from_str(TEXT).expect("the data is part of the program and tested");
    let alone = Layer::files(&[File { path: PROGRAM, mode: 0o755, content: pipeline_binary }]);
    let packed = alone.blob.len();
    let mut built: BTreeMap<String, Layer> = BTreeMap::new();
    let mut layer = |(height, part): (usize, &Part)| {
        let build = || match height {
            0 => part.with_program(pipeline_binary, packed),
            _ => part.noise(part.size),
        };
        built.entry(part.id.clone()).or_insert_with(build).clone()
    };
    let image = |entry: Entry| ImageSpec {
        repository: entry.name,
        tag: entry.tag,
        layers: entry.layers.iter().enumerate().map(&mut layer).collect(),
        entrypoint: vec![format!("/{PROGRAM}"), "idle".to_owned()],
    };
    family.images.into_iter().map(image).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// About what a static program takes; the smallest first layer has 714422 bytes.
    const PROGRAM_BYTES: usize = 500_000;

    #[test]
    fn sizes_and_sharing_are_those_of_the_originals() {
        let program: Vec<u8> = (0..PROGRAM_BYTES).map(|at| (at % 251) as u8).collect();
        let images = family(&program);
        let distinct: BTreeMap<&str, u64> = images
            .iter()
            .flat_map(|image| &image.layers)
            .map(|layer| (layer.digest(), layer.compressed_bytes()))
            .collect();
        assert_eq!((images.len(), distinct.len()), (23, 163));
        // A tar and a gzip header a layer come on top of 69869879 bytes.
        let (sum, wanted) = (distinct.values().sum::<u64>(), 69_869_879);
        assert!((wanted..wanted + 163 * 1000).contains(&sum), "{sum}");
        let base = |name: &str| {
            let image = images.iter().find(|image| image.repository == name).unwrap();
            image.layers[0].digest().to_owned()
        };
        assert_eq!(base("lib/redis"), base("lib/wordpress"));
        assert_ne!(base("lib/redis"), base("lib/mysql"));
    }
}
