//! What one container uses, from the kernel's own files: no question to the engine, no stream.
//!
//! In: the process id of the container's first process. Out: processor time and memory of its control group
//! (both versions), bytes that its interfaces received and sent: as differences of two readings, and in all
//! since the container was started. The files are found once; a container that was started again has another
//! process and is opened anew.

mod birth;

use crate::cgroup::files::{Files, text};
use crate::cgroup::{CgroupError, MOUNTS, share};
use birth::Birth;
use edgeloom_common::units::{BitRate, Bytes, MilliCores};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PROC: &str = "/proc";

/// Use since the reading before; memory as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    pub cpu: MilliCores,
    pub memory: Bytes,
    pub received: BitRate,
    pub sent: BitRate,
}

/// Use since the container was started, at the last reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Total {
    /// Another one for each start of the container.
    pub run: u64,
    /// Since that start.
    pub age: Duration,
    pub cpu_time: Duration,
    pub received: Bytes,
    pub sent: Bytes,
    pub memory: Bytes,
    /// Bytes times seconds, since the run had the age `memory_from`: the kernel keeps no such sum.
    pub memory_byte_s: u64,
    pub memory_from: Duration,
}

/// Counters at one moment.
#[derive(Debug, Clone, Copy)]
struct Counters {
    at: Instant,
    cpu_time: Duration,
    received: u64,
    sent: u64,
    memory: Bytes,
}

/// One container's files, and its counters at the last reading.
#[derive(Debug)]
pub struct Container {
    files: Files,
    /// Counts what passes the interfaces of the container's network namespace.
    interfaces: PathBuf,
    /// Says which control groups the process is in, and so whether it is the container's.
    membership: PathBuf,
    id: String,
    birth: Birth,
    opened: Instant,
    before: Counters,
    /// Bytes times microseconds since `opened`.
    memory_byte_us: u128,
}

impl Container {
    /// The container `id` whose first process is `pid`: engines name control groups after ids.
    ///
    /// # Errors
    /// When the process is not there or another one's, or its control groups do not read.
    pub fn open(id: &str, pid: u32) -> Result<Self, CgroupError> {
        Self::below(Path::new(PROC), Path::new(MOUNTS), (id, pid))
    }

    fn below(proc: &Path, mounts: &Path, (id, pid): (&str, u32)) -> Result<Self, CgroupError> {
        let process = proc.join(pid.to_string());
        let (interfaces, membership) = (process.join("net/dev"), process.join("cgroup"));
        let member_of = membership_of(&membership, id)?;
        let files = Files::of_member(mounts, &member_of)
            .ok_or_else(|| CgroupError::Missing { path: member_of.clone(), mounts: mounts.to_owned() })?;
        let birth = Birth::of(proc, pid)?;
        let before = Counters::read(&files, &interfaces)?;
        let (id, opened) = (id.to_owned(), before.at);
        Ok(Self { files, interfaces, membership, id, birth, opened, before, memory_byte_us: 0 })
    }

    /// What it used since the reading before.
    ///
    /// # Errors
    /// When the process has gone, or its id belongs to another one by now.
    pub fn used(&mut self) -> Result<Use, CgroupError> {
        membership_of(&self.membership, &self.id)?;
        let now = Counters::read(&self.files, &self.interfaces)?;
        let before = std::mem::replace(&mut self.before, now);
        let elapsed = now.at - before.at;
        // As if it had changed evenly between the two.
        let memory_mean = u128::from(before.memory.0.midpoint(now.memory.0));
        self.memory_byte_us += memory_mean * elapsed.as_micros();
        Ok(Use {
            cpu: share(now.cpu_time.saturating_sub(before.cpu_time), elapsed),
            memory: now.memory,
            received: rate(now.received.saturating_sub(before.received), elapsed),
            sent: rate(now.sent.saturating_sub(before.sent), elapsed),
        })
    }

    /// Which start of the container this is.
    #[must_use]
    pub const fn run(&self) -> u64 {
        self.birth.run
    }

    /// What it used in all, asked for when its first process has just ended: processor time to the end, since its
    /// control group stays until the engine has heard of that; of all else what the last reading knew.
    #[must_use]
    pub fn ended(mut self) -> Total {
        let at = Instant::now();
        // Less than before is the count of another group of that name.
        let cpu_time =
            self.files.cpu_time().map_or(self.before.cpu_time, |now| now.max(self.before.cpu_time));
        self.memory_byte_us += u128::from(self.before.memory.0) * (at - self.before.at).as_micros();
        self.before = Counters { at, cpu_time, ..self.before };
        self.total()
    }

    /// What it used in all, at the last reading.
    #[must_use]
    pub fn total(&self) -> Total {
        let Counters { at, cpu_time, received, sent, memory } = self.before;
        Total {
            run: self.birth.run,
            age: self.birth.age + (at - self.opened),
            cpu_time,
            received: Bytes(received),
            sent: Bytes(sent),
            memory,
            memory_byte_s: u64::try_from(self.memory_byte_us / 1_000_000).unwrap_or(u64::MAX),
            memory_from: self.birth.age,
        }
    }
}

impl Counters {
    fn read(files: &Files, interfaces: &Path) -> Result<Self, CgroupError> {
        let (received, sent) = passed(&text(interfaces)?);
        let memory = files.memory_used()?;
        Ok(Self { at: Instant::now(), cpu_time: files.cpu_time()?, received, sent, memory })
    }
}

/// The control groups of a process, which have to be those of the container `id`.
fn membership_of(file: &Path, id: &str) -> Result<String, CgroupError> {
    let member_of = text(file)?;
    if member_of.contains(id) { Ok(member_of) } else { Err(CgroupError::Foreign { file: file.to_owned() }) }
}

/// Bytes received and sent over all interfaces but the loopback one (proc(5), `/proc/net/dev`).
fn passed(text: &str) -> (u64, u64) {
    let line = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        let number = |at: usize| numbers.split_whitespace().nth(at)?.parse::<u64>().ok();
        (name.trim() != "lo").then_some((number(0)?, number(8)?))
    };
    text.lines().filter_map(line).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

fn rate(bytes: u64, elapsed: Duration) -> BitRate {
    let bits = u128::from(bytes) * 8_000_000;
    let rate = bits.checked_div(elapsed.as_micros()).unwrap_or(0);
    BitRate(u64::try_from(rate).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(root: &Path, name: &str, content: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    const DEV: &str = "Inter-|   Receive |  Transmit\n face |bytes packets\n    lo: 9 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n  \
                       eth0: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0\n";
    const V1: &[(&str, &str)] = &[
        ("proc/7/cgroup", "5:memory:/lab/docker/c1\n3:cpuset:/\n2:cpu,cpuacct:/lab/docker/c1\n0::/\n"),
        ("sys/cpu,cpuacct/lab/docker/c1/cpuacct.usage", "5000000000\n"),
        ("sys/memory/lab/docker/c1/memory.usage_in_bytes", "5000000\n"),
        ("sys/memory/lab/docker/c1/memory.stat", "cache 9\ntotal_inactive_file 1000000\n"),
    ];
    const APART: &[(&str, &str)] = &[
        ("proc/7/cgroup", "5:memory:/lab/docker/c1\n3:cpuacct:/lab/docker/c1\n2:cpu:/lab/docker/c1\n0::/\n"),
        ("sys/cpuacct/lab/docker/c1/cpuacct.usage", "5000000000\n"),
        ("sys/memory/lab/docker/c1/memory.usage_in_bytes", "5000000\n"),
        ("sys/memory/lab/docker/c1/memory.stat", "total_inactive_file 1000000\n"),
    ];
    const V2: &[(&str, &str)] = &[
        ("proc/7/cgroup", "0::/system.slice/docker-c1.scope\n"),
        ("sys/system.slice/docker-c1.scope/cpu.stat", "usage_usec 5000000\n"),
        ("sys/system.slice/docker-c1.scope/memory.current", "5000000\n"),
        ("sys/system.slice/docker-c1.scope/memory.stat", "anon 9\ninactive_file 1000000\n"),
    ];

    fn container(files: &[(&str, &str)]) -> (tempfile::TempDir, Container) {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "proc/7/net/dev", DEV);
        birth::tests::write_all(|name, content| write(root.path(), name, content));
        files.iter().for_each(|(name, content)| write(root.path(), name, content));
        let container =
            Container::below(&root.path().join("proc"), &root.path().join("sys"), ("c1", 7)).unwrap();
        (root, container)
    }

    #[test]
    fn every_layout_of_control_groups_reads() {
        for files in [V1, APART, V2] {
            let (root, mut container) = container(files);
            assert_eq!(container.before.cpu_time, Duration::from_secs(5));
            assert_eq!((container.before.received, container.before.sent), (1000, 2000));
            let quiet = container.used().unwrap();
            let nothing = (MilliCores(0), Bytes(4_000_000), BitRate(0), BitRate(0));
            assert_eq!((quiet.cpu, quiet.memory, quiet.received, quiet.sent), nothing);
            write(root.path(), "proc/7/net/dev", &DEV.replace("1000", "9000"));
            let used = container.used().unwrap();
            assert!(used.received > BitRate(0) && used.sent == BitRate(0));
        }
    }

    #[test]
    fn what_was_used_in_all_counts_from_the_start_of_the_container() {
        let (root, mut container) = container(V2);
        let first = container.total();
        assert_eq!(
            (first.cpu_time, first.received, first.sent),
            (Duration::from_secs(5), Bytes(1000), Bytes(2000))
        );
        assert_eq!(
            (first.age, first.memory_from, first.memory_byte_s),
            (birth::tests::AGE, birth::tests::AGE, 0)
        );
        write(root.path(), "sys/system.slice/docker-c1.scope/cpu.stat", "usage_usec 7000000\n");
        std::thread::sleep(Duration::from_millis(400));
        container.used().unwrap();
        let later = container.total();
        assert_eq!((later.run, later.cpu_time), (first.run, Duration::from_secs(7)));
        let watched = (later.age - later.memory_from).as_secs_f64();
        assert!(watched >= 0.4);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few megabytes")]
        let expected = (4e6 * watched) as u64;
        assert!(later.memory_byte_s.abs_diff(expected) <= 10, "{} {expected}", later.memory_byte_s);
    }

    #[test]
    fn what_an_ended_one_used_is_counted_to_its_end_while_its_group_is_there() {
        let (root, ended) = container(V2);
        fs::remove_dir_all(root.path().join("proc")).unwrap();
        write(root.path(), "sys/system.slice/docker-c1.scope/cpu.stat", "usage_usec 5900000\n");
        let total = ended.ended();
        assert_eq!((total.cpu_time, total.sent), (Duration::from_millis(5900), Bytes(2000)));
        assert!(total.age > birth::tests::AGE);
        for gone in ["usage_usec 70", ""] {
            let (root, ended) = container(V2);
            write(root.path(), "sys/system.slice/docker-c1.scope/cpu.stat", gone);
            assert_eq!(ended.ended().cpu_time, Duration::from_secs(5), "what was counted stays counted");
        }
    }

    #[test]
    fn a_process_that_is_no_longer_the_container_s_is_refused() {
        let (root, mut container) = container(V2);
        write(root.path(), "proc/7/cgroup", "0::/user.slice\n");
        assert!(matches!(container.used(), Err(CgroupError::Foreign { .. })));
        fs::remove_dir_all(root.path().join("proc")).unwrap();
        assert!(matches!(container.used(), Err(CgroupError::Read { .. })));
    }

    #[test]
    fn a_rate_is_bits_by_time() {
        assert_eq!(rate(1_250_000, Duration::from_secs(10)), BitRate(1_000_000));
        assert_eq!(rate(1, Duration::ZERO), BitRate(0));
    }

    #[test]
    fn a_real_process_reads() {
        let mut own = Container::open("/", std::process::id()).unwrap();
        assert!(own.used().unwrap().memory > Bytes(0));
    }
}
