//! Requests: an image at random, with CPU and memory at random.
//!
//! The paper does not state the ranges; 0.1 to 0.5 cores and 64 to 512 MB are assumed, with which 20
//! containers fill a third of its four workers.

use edgeloom_common::ids::TaskName;
use edgeloom_common::job::{Job, Resources, Task};
use edgeloom_common::units::{Bytes, MilliCores};
use edgeloom_sched::pull::Image;
use edgeloom_sched::snapshot::{Profiles, Waiting};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::random::Draw;

const CPU_M: (f64, f64) = (100.0, 500.0);
const MEMORY_MB: (f64, f64) = (64.0, 512.0);

/// One container.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) waiting: Waiting,
    pub(super) image: Arc<Image>,
}

/// So many requests, in their order.
pub(super) fn requests(count: usize, images: &[Arc<Image>], draw: &mut Draw) -> Vec<Request> {
    (0..count).map(|number| request(number, Arc::clone(&images[draw.below(images.len())]), draw)).collect()
}

fn request(number: usize, image: Arc<Image>, draw: &mut Draw) -> Request {
    let name: TaskName = "container".parse().expect("letters make a name");
    let job = Job::of(
        format!("job-{number:05}").parse().expect("letters, a hyphen and digits make a name"),
        BTreeMap::from([(name.clone(), task(&image.config, draw))]),
    );
    let platforms = BTreeMap::from([(String::new(), Arc::clone(&image))]);
    let images = BTreeMap::from([(name, platforms)]);
    let since_ms = u64::try_from(number).unwrap_or(u64::MAX);
    Request { waiting: Waiting { job, since_ms, images, profiles: Profiles::new() }, image }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes are positive and small")]
fn task(image: &str, draw: &mut Draw) -> Task {
    let resources = Resources {
        cpu: MilliCores(draw.uniform(CPU_M.0, CPU_M.1) as u32),
        memory: Bytes((draw.uniform(MEMORY_MB.0, MEMORY_MB.1) * 1e6) as u64),
        ..Resources::default()
    };
    Task::alone(image, resources)
}
