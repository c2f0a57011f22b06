//! Machines: the paper's testbed, or instances of a cloud.

use edgeloom_sched::batch::{Machine, Vector};

use super::{Mix, Settings};
use crate::random::Draw;

/// Cores and GB of the testbed's machines; the whole machine is given, the system's own needs are left out.
const PAPER: [(f64, f64); 3] = [(1.0, 3.0), (2.0, 6.0), (4.0, 12.0)];
/// Cores and GiB of general purpose instances: the paper says 19 kinds and does not name them.
const EC2: [(f64, f64); 19] = [
    (1.0, 1.0),
    (1.0, 2.0),
    (1.0, 3.75),
    (2.0, 4.0),
    (2.0, 7.5),
    (2.0, 8.0),
    (2.0, 8.0),
    (4.0, 15.0),
    (4.0, 16.0),
    (4.0, 16.0),
    (8.0, 30.0),
    (8.0, 32.0),
    (8.0, 32.0),
    (16.0, 64.0),
    (16.0, 64.0),
    (40.0, 160.0),
    (48.0, 192.0),
    (64.0, 256.0),
    (96.0, 384.0),
];
/// "Half loaded", each resource between a quarter and three quarters.
const LOADED: (f64, f64) = (0.25, 0.75);
/// Enough for everyone: no container of the experiment asks for storage.
const STORAGE: i64 = 1 << 40;

pub(super) fn machines(settings: &Settings, draw: &mut Draw) -> Vec<Machine> {
    let machine = |at: usize| match settings.mix {
        Mix::Paper => {
            let capacity = amounts(PAPER[at % PAPER.len()], 1.0, 1.0);
            Machine { capacity, free: capacity }
        }
        Mix::Ec2 => {
            let size = EC2[draw.below(EC2.len())];
            let free = [draw.uniform(LOADED.0, LOADED.1), draw.uniform(LOADED.0, LOADED.1)];
            Machine { capacity: amounts(size, 1.0, 1.0), free: amounts(size, free[0], free[1]) }
        }
    };
    (0..settings.machines).map(machine).collect()
}

fn amounts((cores, gigabytes): (f64, f64), cpu: f64, memory: f64) -> Vector {
    [whole(cores * cpu * 1e3), whole(gigabytes * memory * 1e9), STORAGE]
}

/// Rounded down.
#[expect(clippy::cast_possible_truncation, reason = "casts from float saturate")]
pub(super) fn whole(amount: f64) -> i64 {
    amount as i64
}
