//! What is asked for: an image at random, with CPU and memory at random, the same for the same seed.
//!
//! The paper does not say from which ranges; these are those of `edgeloom sim layers`, the CPU's for the lab's nodes.

use super::Settings;
use crate::publish;
use clap::ValueEnum;
use edgeloom_common::units::Bytes;
use edgeloom_examples::images::ImageSpec;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The images that the paper names; of its other ones it says nothing.
const NAMED: [&str; 6] =
    ["wordpress:6.1-apache", "ghost:5", "gcc:12", "redis:7.0", "tomcat:10.1", "mysql:8.0"];
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

/// As many as the settings say.
pub(super) fn draw(images: &[ImageSpec], settings: &Settings) -> Requests {
    let images = settings.images.of(images);
    let mut random = fastrand::Rng::with_seed(settings.seed);
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
    let list = (1..=usize::from(settings.containers)).map(&mut request).collect();
    Requests { list, bytes_least: parts.values().sum() }
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

    #[test]
    fn a_request_is_a_job_of_one_task() {
        let image = "10.60.0.1:5000/lib/redis:7.0".to_owned();
        let request = Request { number: 7, image, cpu_m: 12, memory: Bytes(64_000_000) };
        let document = Document::read(&request.document("edgeloom")).unwrap();
        assert_eq!((document.name.as_str(), document.sinks.as_slice()), ("c007", &["app".to_owned()][..]));
    }
}
