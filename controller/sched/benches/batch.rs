//! How long batches take: ECSched's flow with its costs from the vectors, and the default's packing, on clusters of cloud
//! instances that are about half loaded.

use edgeloom_sched::batch::{Batch, Blocked, Machine, Method, Objective, Packing, Prepared, Request, place};

fn main() {
    divan::main();
}

/// Machines and containers.
const SIZES: [(usize, usize); 4] = [(1000, 300), (5000, 300), (5000, 1000), (5000, 3000)];

/// Network and solution.
#[divan::bench(args = SIZES, sample_count = 10)]
fn ecsched_dp(bencher: divan::Bencher<'_, '_>, size: (usize, usize)) {
    let batch = batch(size);
    bencher.bench(|| Prepared::of(&batch, Method::EcschedDp).map(|flow| flow.solve()));
}

#[divan::bench(args = SIZES, sample_count = 10)]
fn ecsched_ml(bencher: divan::Bencher<'_, '_>, size: (usize, usize)) {
    let batch = batch(size);
    bencher.bench(|| Prepared::of(&batch, Method::EcschedMl).map(|flow| flow.solve()));
}

#[divan::bench(args = SIZES, sample_count = 10)]
fn packing(bencher: divan::Bencher<'_, '_>, size: (usize, usize)) {
    let batch = batch(size);
    let packing = Packing { objective: Objective::Count, ..Packing::default() };
    bencher.bench(|| place(&batch, Method::Packing(packing)));
}

#[divan::bench(args = SIZES, sample_count = 10)]
fn spread(bencher: divan::Bencher<'_, '_>, size: (usize, usize)) {
    let batch = batch(size);
    bencher.bench(|| place(&batch, Method::Spread(Blocked::One)));
}

/// Cores of the machines; each core has 4 GB.
const CORES: [i64; 8] = [1, 2, 4, 8, 16, 40, 64, 96];

fn batch((machines, containers): (usize, usize)) -> Batch {
    let mut draw = Draw(0x9E37_79B9_7F4A_7C15);
    let machine = |draw: &mut Draw| {
        let cores = CORES[draw.next() as usize % CORES.len()];
        let capacity = [cores * 1000, cores * 4_000_000_000, 0];
        let mut free = |amount: i64| amount / 1000 * (250 + draw.next() as i64 % 500);
        Machine { capacity, free: [free(capacity[0]), free(capacity[1]), 0] }
    };
    let machines = (0..machines).map(|_| machine(&mut draw)).collect();
    // Sizes over two orders of magnitude, small ones the more frequent.
    let mut size = |least: i64| least << (draw.next() % 8).min(draw.next() % 8);
    let mut request = || {
        let demand = [size(100) + size(1), size(200_000_000) + size(1_000_000), 0];
        Request { demand, ..Request::default() }
    };
    Batch { machines, requests: (0..containers).map(|_| request()).collect() }
}

/// Marsaglia's xorshift64, its upper half.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }
}
