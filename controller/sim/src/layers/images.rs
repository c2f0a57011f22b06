//! Real images: digests and compressed sizes of layers as docker-library recorded them.

use edgeloom_common::units::Bytes;
use edgeloom_sched::pull::{Image, Layer};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Choice;

/// Each entry names its source, a file of docker-library/repo-info at a commit.
const TEXT: &str = include_str!("../../data/images.json");

#[derive(Debug, Deserialize)]
struct Entry {
    image: String,
    tag: String,
    layers: Vec<Blob>,
}

#[derive(Debug, Deserialize)]
struct Blob {
    digest: String,
    size: u64,
}

/// Those that the paper names; of its other ones it says nothing.
pub const NAMED: [&str; 6] =
    ["wordpress:6.1-apache", "ghost:5", "gcc:12", "redis:7.0", "tomcat:10.1", "mysql:8.0"];

/// In the file's order.
pub(super) fn images(choice: Choice) -> Vec<Arc<Image>> {
    let entries: Vec<Entry> = serde_json::from_str(TEXT).expect("the file is part of the program and tested");
    let mut chains = Chains::default();
    let images = entries.into_iter().map(|entry| chains.image(entry));
    let chosen = |image: &Image| choice == Choice::All || NAMED.contains(&image.config.as_str());
    images.filter(chosen).map(Arc::new).collect()
}

/// Numbers of chains: layers with the same layers below them are one.
#[derive(Debug, Default)]
struct Chains(BTreeMap<(usize, String), usize>);

impl Chains {
    fn image(&mut self, entry: Entry) -> Image {
        let mut below = 0;
        let layer = |blob: Blob| {
            let next = self.0.len() + 1;
            below = *self.0.entry((below, blob.digest.clone())).or_insert(next);
            Layer { digest: blob.digest, chain: below.to_string(), size: Bytes(blob.size) }
        };
        let layers = entry.layers.into_iter().map(layer).collect();
        Image { config: format!("{}:{}", entry.image, entry.tag), config_size: Bytes(0), layers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::report::{ImageStore, LayerInventory};
    use edgeloom_sched::pull::Held;

    #[test]
    fn the_images_are_those_recorded() {
        let images = images(Choice::All);
        assert_eq!(images.len(), 23);
        assert_eq!(super::images(Choice::Named).len(), NAMED.len());
        let of = |name: &str| images.iter().find(|image| image.config == name).unwrap();
        let (wordpress, joomla) = (of("wordpress:6.1-apache"), of("joomla:4-apache"));
        assert_eq!(wordpress.layer_bytes(), Bytes(217_202_352));
        for store in [ImageStore::Graphdriver, ImageStore::Containerd] {
            let mut held = Held::new(store, &LayerInventory::default());
            held.add(joomla);
            assert_eq!(held.local(wordpress), Bytes(164_201_241), "{store:?}");
        }
    }

    /// As counted over the official images of one day: they share base chains and nothing else.
    #[test]
    fn sets_and_chains_agree_on_images_of_one_day() {
        let images = images(Choice::All);
        for held in &images[..21] {
            for wanted in &images[..21] {
                let [chain, set] = [ImageStore::Graphdriver, ImageStore::Containerd].map(|store| {
                    let mut node = Held::new(store, &LayerInventory::default());
                    node.add(held);
                    node.fetch(wanted).layer_bytes
                });
                assert_eq!(chain, set, "{} after {}", wanted.config, held.config);
            }
        }
    }
}
