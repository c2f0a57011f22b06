//! The reference run: how many reference-core seconds one core of this node does in a second.
//!
//! The run counts iterations of the reference kernel against the thread's own CPU time, so other work
//! and CPU quotas lengthen the run but do not falsify it. Its result is kept in the state directory
//! and holds as long as the CPU, the architecture and the kernel's unit stay the same. What heat, busy
//! sibling threads and other guests of a shared host take from it later, [`sample`] measures and
//! [`Tracker`] sums up.

mod track;

pub use track::Tracker;

use crate::machine::{Machine, MachineError};
use edgeloom_common::work::{ITERATIONS_PER_SECOND, spin};
use edgeloom_disk::{Unsealed, seal, unseal};
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// About 10 ms of a reference core: long against the clock's steps, short against a quota period.
const SLICE: u64 = ITERATIONS_PER_SECOND / 100;
/// About 1 ms of a reference core: often made, on the thread that everything else runs on.
const SAMPLE: u64 = SLICE / 10;

/// The run ends when both have passed, or at `WALL_MAX`.
const WALL_MIN: Duration = Duration::from_secs(1);
const CPU_MIN: Duration = Duration::from_millis(300);
const WALL_MAX: Duration = Duration::from_secs(10);

const CACHE_FILE: &str = "reference-run.json";

/// Why the speed is not known.
#[derive(Debug, thiserror::Error)]
pub enum SpeedError {
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error("cannot read the thread's cpu clock: {0}")]
    Clock(nix::Error),
    #[error("cannot keep the reference run in {}: {cause}", file.display())]
    Keep { file: PathBuf, cause: io::Error },
}

/// A run that was made, and what it holds for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Kept {
    cpu_model: String,
    architecture: String,
    /// An unoptimised build runs the kernel several times slower.
    optimised: bool,
    iterations_per_reference_second: u64,
    core_speed: f64,
}

impl Kept {
    fn holds_for(&self, other: &Self) -> bool {
        Self { core_speed: other.core_speed, ..self.clone() } == *other
            && self.core_speed.is_finite()
            && self.core_speed > 0.0
    }
}

/// The node's core speed: the kept one where it still holds, otherwise a run of a second or more,
/// which is then kept. Blocks the calling thread.
///
/// # Errors
/// When the CPU clock does not read or the state directory cannot be written.
pub fn core_speed(state_dir: &Path) -> Result<f64, SpeedError> {
    let file = state_dir.join(CACHE_FILE);
    let mut run = Kept {
        cpu_model: Machine::open()?.cpu_model().to_owned(),
        architecture: std::env::consts::ARCH.to_owned(),
        optimised: !cfg!(debug_assertions),
        iterations_per_reference_second: ITERATIONS_PER_SECOND,
        core_speed: 1.0,
    };
    if let Some(kept) = read(&file).filter(|kept| kept.holds_for(&run)) {
        return Ok(kept.core_speed);
    }
    run.core_speed = measure().map_err(SpeedError::Clock)?;
    keep(&file, &run).map_err(|cause| SpeedError::Keep { file, cause })?;
    Ok(run.core_speed)
}

/// Forgets the kept run.
///
/// # Errors
/// When the file is there and stays.
pub fn forget(state_dir: &Path) -> Result<(), SpeedError> {
    let file = state_dir.join(CACHE_FILE);
    edgeloom_disk::remove(&file).map_err(|cause| SpeedError::Keep { file, cause })
}

/// A file whose checksum does not fit is no file: one flipped bit may make a core ten times as fast.
fn read(file: &Path) -> Option<Kept> {
    match unseal(&std::fs::read(file).ok()?) {
        Unsealed::Sound(text) => serde_json::from_slice(text).ok(),
        Unsealed::Bare(_) | Unsealed::Damaged { .. } => None,
    }
}

fn keep(file: &Path, run: &Kept) -> io::Result<()> {
    edgeloom_disk::replace(file, &seal(&serde_json::to_vec(run)?))
}

/// The mean over the run: all iterations by all CPU time, since tasks live on the mean too.
fn measure() -> nix::Result<f64> {
    let start = Instant::now();
    let first = thread_cpu_time()?;
    let mut iterations = 0;
    loop {
        black_box(spin(black_box(SLICE)));
        iterations += SLICE;
        let (wall, cpu) = (start.elapsed(), thread_cpu_time()? - first);
        if (wall >= WALL_MIN && cpu >= CPU_MIN) || wall >= WALL_MAX {
            return Ok(speed(iterations, cpu));
        }
    }
}

/// One short slice: the speed now of the core that the calling thread is on. None where that core's
/// clock is turned down because it idles, which says nothing of its speed under load.
///
/// # Errors
/// When the CPU clock does not read.
pub fn sample() -> Result<Option<f64>, SpeedError> {
    let before = thread_cpu_time().map_err(SpeedError::Clock)?;
    black_box(spin(black_box(SAMPLE)));
    let cpu_time = thread_cpu_time().map_err(SpeedError::Clock)? - before;
    Ok((!is_clocked_down()).then(|| speed(SAMPLE, cpu_time)))
}

/// Whether the governor holds this thread's core well below the clock rate it allows. A core throttled
/// by heat is not clocked down in this sense: the kernel lowers the allowed rate itself.
fn is_clocked_down() -> bool {
    let Ok(cpu) = nix::sched::sched_getcpu() else { return false };
    let rate_khz = |file: &str| {
        let text = std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/{file}"));
        text.ok()?.trim().parse::<u64>().ok()
    };
    match (rate_khz("scaling_cur_freq"), rate_khz("scaling_max_freq")) {
        (Some(now), Some(allowed)) => is_idle_rate(now, allowed),
        _ => false,
    }
}

/// Idle boards run at 0.4 to 0.63 of the allowed rate (Raspberry Pi 3 to 5), all cores busy at 0.7 or
/// more (processors that raise the clock of a single busy core).
fn is_idle_rate(now_khz: u64, allowed_khz: u64) -> bool {
    now_khz.saturating_mul(100) < allowed_khz.saturating_mul(65)
}

fn thread_cpu_time() -> nix::Result<Duration> {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from)
}

/// Reference-core seconds a CPU second.
#[expect(clippy::cast_precision_loss, reason = "iterations of a slice stay far below 2^52")]
fn speed(iterations: u64, cpu_time: Duration) -> f64 {
    iterations as f64 / cpu_time.as_secs_f64().max(1e-9) / ITERATIONS_PER_SECOND as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_one_on_a_reference_core() {
        assert!((speed(ITERATIONS_PER_SECOND / 2, Duration::from_millis(500)) - 1.0).abs() < 1e-9);
        assert!((speed(ITERATIONS_PER_SECOND, Duration::from_millis(500)) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_sample_is_a_speed() {
        if let Some(speed) = sample().unwrap() {
            assert!(speed > 0.01 && speed < 100.0, "{speed}");
        }
    }

    #[test]
    fn an_idle_board_is_told_from_a_busy_one() {
        assert!(is_idle_rate(600_000, 1_500_000) && is_idle_rate(1_500_000, 2_400_000));
        assert!(!is_idle_rate(1_500_000, 1_500_000) && !is_idle_rate(2_800_000, 4_000_000));
    }

    #[test]
    fn a_second_start_takes_the_kept_run_and_another_cpu_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let first = core_speed(dir.path()).unwrap();
        assert!(first > 0.01 && first < 100.0, "{first}");

        let file = dir.path().join(CACHE_FILE);
        let mut kept = read(&file).unwrap();
        kept.core_speed = 7.25;
        keep(&file, &kept).unwrap();
        assert!((core_speed(dir.path()).unwrap() - 7.25).abs() < 1e-9);

        kept.cpu_model.push_str(" of another board");
        keep(&file, &kept).unwrap();
        assert!((core_speed(dir.path()).unwrap() - 7.25).abs() > 1e-9);
    }

    #[test]
    fn a_forgotten_run_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        core_speed(dir.path()).unwrap();
        forget(dir.path()).unwrap();
        forget(dir.path()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_kept_run_with_a_flipped_bit_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        core_speed(dir.path()).unwrap();
        let file = dir.path().join(CACHE_FILE);
        let whole = std::fs::read(&file).unwrap();
        assert!(read(&file).is_some());
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&file, flipped).unwrap();
            assert!(read(&file).is_none(), "bit {bit}");
        }
    }

    #[test]
    fn a_spoilt_file_is_measured_again() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(CACHE_FILE), b"{\"core_speed\": ").unwrap();
        assert!(core_speed(dir.path()).unwrap() > 0.01);
    }
}
