//! What is asked for: an image at random, with CPU and memory at random, the same for the same seed.
//!
//! The paper does not say from which ranges; these are those of `edgeloom sim layers`, the CPU's for the lab's nodes.

use super::Settings;
use crate::publish;
use edgeloom_common::units::Bytes;
use edgeloom_examples::images::ImageSpec;
use std::ops::RangeInclusive;

/// In thousandths of a core: 3 to 13% of a node.
const CPU_M: RangeInclusive<u32> = 10..=40;
const MEMORY_MB: RangeInclusive<u64> = 64..=512;

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
pub(super) fn draw(images: &[ImageSpec], settings: &Settings) -> Vec<Request> {
    let mut random = fastrand::Rng::with_seed(settings.seed);
    let mut request = |number: usize| Request {
        number,
        image: publish::name(&images[random.usize(..images.len())]),
        cpu_m: random.u32(CPU_M),
        memory: Bytes(random.u64(MEMORY_MB) * 1_000_000),
    };
    (1..=usize::from(settings.containers)).map(&mut request).collect()
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
    fn a_request_is_a_job_of_one_task() {
        let image = "10.60.0.1:5000/lib/redis:7.0".to_owned();
        let request = Request { number: 7, image, cpu_m: 12, memory: Bytes(64_000_000) };
        let document = Document::read(&request.document("edgeloom")).unwrap();
        assert_eq!((document.name.as_str(), document.sinks.as_slice()), ("c007", &["app".to_owned()][..]));
    }
}
