//! The images of the example jobs.
//!
//! They are layered as such images are in practice: a runtime that all share, the program above it, then
//! models: one backbone for all attribute modules and a small head for each. So what a node has to fetch
//! depends much on what it holds already.

use super::{File, ImageSpec, Layer};

const TAG: &str = "1.0";
const RUNTIME_BYTES: usize = 300_000;
const DETECTOR_BYTES: usize = 3_000_000;
const BACKBONE_BYTES: usize = 2_000_000;
const HEAD_BYTES: usize = 100_000;

/// The seven attribute modules of the object-attribute job.
const ATTRIBUTES: [&str; 7] = ["age", "bag", "clothes", "gender", "hat", "reid", "shoes"];

/// Other modules, with the bytes of their own layer.
const OTHERS: [(&str, usize); 8] = [
    ("vision/source", 100_000),
    ("vision/decode", 150_000),
    ("vision/detect", DETECTOR_BYTES),
    ("vision/track", 50_000),
    ("three/camera", 50_000),
    ("three/left", 50_000),
    ("three/right", 50_000),
    ("four/functions", 50_000),
];

/// Every image that `examples/jobs` names, around the given `pipeline` binary, which has to be static:
/// no image holds a C library.
#[must_use]
pub fn application_images(pipeline_binary: &[u8]) -> Vec<ImageSpec> {
    let runtime = Layer::random("usr/lib/runtime.bin", 1, RUNTIME_BYTES);
    let program = Layer::files(&[File { path: "pipeline", mode: 0o755, content: pipeline_binary }]);
    let backbone = Layer::random("models/backbone.bin", 2, BACKBONE_BYTES);
    let image = |repository: String, above: Vec<Layer>| ImageSpec {
        repository,
        tag: TAG.to_owned(),
        layers: [vec![runtime.clone(), program.clone()], above].concat(),
        entrypoint: vec!["/pipeline".to_owned()],
    };
    let others = OTHERS.iter().zip(100..).map(|((repository, bytes), seed)| {
        image((*repository).to_owned(), vec![Layer::random("models/own.bin", seed, *bytes)])
    });
    let attributes = ATTRIBUTES.iter().zip(200..).map(|(name, seed)| {
        let head = Layer::random("models/head.bin", seed, HEAD_BYTES);
        image(format!("vision/{name}"), vec![backbone.clone(), head])
    });
    others.chain(attributes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_images_share_layers_and_stay_small() {
        let images = application_images(b"program");
        let layers: BTreeMap<&str, u64> = images
            .iter()
            .flat_map(|image| &image.layers)
            .map(|layer| (layer.digest(), layer.compressed_bytes()))
            .collect();
        // Runtime, program, backbone, seven heads, and one each of the other eight.
        assert_eq!((images.len(), layers.len()), (15, 18));
        assert!(layers.values().sum::<u64>() < 8_000_000);
    }
}
