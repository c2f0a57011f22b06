//! What is asked for: an image at random, with CPU and memory at random, the same for the same seed.
//!
//! The paper does not say from which ranges; these are those of `edgeloom sim layers`, the CPU's for the lab's nodes.

use super::Settings;
use crate::publish;
use clap::ValueEnum;
use edgeloom_common::units::Bytes;
use edgeloom_examples::images::ImageSpec;
use edgeloom_sim::layers::NAMED;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// In thousandths of a core: 3 to 13% of a node.
const CPU_M: RangeInclusive<u32> = 10..=40;
const MEMORY_MB: RangeInclusive<u64> = 64..=512;

/// Which images are drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Choice {
    /// The six that the paper names.
    Named,
    /// The whole family.
    All,
}

impl Choice {
    fn of(self, images: &[ImageSpec]) -> Vec<&ImageSpec> {
        let named = |image: &&ImageSpec| {
            let name = format!("{}:{}", image.repository, image.tag);
            NAMED.iter().any(|wanted| name.strip_prefix("lib/") == Some(wanted))
        };
        images.iter().filter(|image| self == Self::All || named(image)).collect()
    }
}

/// One order of requests.
#[derive(Debug)]
pub(super) struct Requests {
    /// What it was drawn by.
    pub(super) order: u64,
    pub(super) list: Vec<Request>,
    /// Of layers and configurations, each once: what no placement can do without.
    pub(super) bytes_least: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    /// From 1.
    pub(super) number: usize,
    /// With registry and tag.
    pub(super) image: String,
    pub(super) cpu_m: u32,
    pub(super) memory: Bytes,
}

/// As many orders of as many requests as the settings say.
pub(super) fn draw(images: &[ImageSpec], settings: &Settings) -> Vec<Requests> {
    let images = settings.images.of(images);
    let containers = usize::from(settings.containers);
    (settings.seed..)
        .take(settings.orders.into())
        .map(|order| order_of(&images, (order, containers)))
        .collect()
}

fn order_of(images: &[&ImageSpec], (order, containers): (u64, usize)) -> Requests {
    let mut random = fastrand::Rng::with_seed(order);
    let mut parts: BTreeMap<String, u64> = BTreeMap::new();
    let mut request = |number: usize| {
        let image = images[random.usize(..images.len())];
        let layers = image.layers.iter().map(|layer| (layer.digest().to_owned(), layer.compressed_bytes()));
        parts.extend(layers);
        parts.insert(publish::name(image), image.config().len() as u64);
        Request {
            number,
            image: publish::name(image),
            cpu_m: random.u32(CPU_M),
            memory: Bytes(random.u64(MEMORY_MB) * 1_000_000),
        }
    };
    let list = (1..=containers).map(&mut request).collect();
    Requests { order, list, bytes_least: parts.values().sum() }
}

impl Request {
    pub(super) fn job(&self) -> String {
        format!("c{:03}", self.number)
    }

    /// A job of one task.
    pub(super) fn document(&self, profile: &str) -> String {
        let Self { image, cpu_m, memory, .. } = self;
        let (job, bytes) = (self.job(), memory.0);
        format!(
            "kind: Job\nname: {job}\nprofile: {profile}\ntasks:\n  app:\n    image: {image}\n    resources: {{ cpu: {cpu_m}m, memory: {bytes}B }}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    #[test]
    fn the_images_that_the_paper_names_are_in_the_family() {
        let images = edgeloom_examples::images::family(b"program");
        assert_eq!(Choice::Named.of(&images).len(), NAMED.len());
        assert_eq!(Choice::All.of(&images).len(), images.len());
    }

    /// An order is the same whichever is the first, so that orders can be run in parts.
    #[test]
    fn orders_are_their_own() {
        let images = edgeloom_examples::images::family(b"program");
        let images = Choice::Named.of(&images);
        let [first, again, other] = [1, 1, 2].map(|order| order_of(&images, (order, 20)));
        assert_eq!((&first.list, first.bytes_least), (&again.list, again.bytes_least));
        assert_ne!(first.list, other.list);
    }

    #[test]
    fn a_request_is_a_job_of_one_task() {
        let image = "10.60.0.1:5000/lib/redis:7.0".to_owned();
        let request = Request { number: 7, image, cpu_m: 12, memory: Bytes(64_000_000) };
        let document = Document::read(&request.document("edgeloom")).unwrap();
        assert_eq!((document.name.as_str(), document.sinks.as_slice()), ("c007", &["app".to_owned()][..]));
    }
}
