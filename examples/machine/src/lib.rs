//! A machine for tests: systemd as the first process of namespaces of its own, over the files of the machine
//! around it, which it sees but cannot change.
//!
//! In: files to install. Out: a running systemd in which programs can be started and looked at. Mounts,
//! processes, network, host name, IPC and control groups are the machine's own; its files live in memory. All
//! of it ends with the value, also where the test panics or is killed; only control groups have no owner that
//! the kernel cleans up after, so those of killed tests go at the next start.

mod shipped;
mod watchdog;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Makes the root and becomes systemd.
const BOOT: &str = include_str!("boot.sh");
/// What systemd is to reach: sysinit with users, files and sysctls, and nothing of the machine around.
const TARGET: &str = "[Unit]\nRequires=basic.target\nAfter=basic.target\nAllowIsolate=yes\n";
/// The test's process id follows, and which of its machines it is.
const CGROUP_PREFIX: &str = "edgeloom-machine-";
/// The end of a wire in each machine.
const LAN: &str = "lan0";
/// A loaded machine takes its time; one that does not boot never does.
const BOOT_LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);
/// What a machine needs.
const PROGRAMS: [&str; 7] = ["ip", "kill", "mount", "nsenter", "setpriv", "systemctl", "unshare"];

/// What a machine is made of, before it boots.
#[derive(Debug)]
pub struct Parts {
    directory: TempDir,
}

impl Parts {
    /// Begins one that also needs `programs`; none, with a word about it, where `EDGELOOM_SKIP_LAB=1` asks
    /// for that.
    #[must_use]
    #[track_caller]
    pub fn gather(programs: &[&str]) -> Option<Self> {
        let needed: Vec<&str> = PROGRAMS.iter().chain(programs).copied().collect();
        if !edgeloom_prepare::lab_allowed(&needed) {
            return None;
        }
        remove_cgroups(|pid| !Path::new("/proc").join(pid).exists());
        let directory = TempDir::new().expect("there is room for temporary files");
        let parts = Self { directory };
        parts.write("/etc/systemd/system/machine.target", TARGET);
        fs::create_dir(parts.directory.path().join("memory")).expect("the folder is new");
        Some(parts)
    }

    /// Puts a text at an absolute path.
    pub fn write(&self, path: &str, text: &str) {
        let file = self.place(path);
        fs::write(&file, text).expect("the folder is writable");
        permit(&file, 0o644);
    }

    /// Puts a copy of a file at an absolute path, as executable as it is.
    pub fn install(&self, from: &Path, path: &str) {
        let file = self.place(path);
        fs::copy(from, &file).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        let mode = fs::metadata(from).map_or(0, |found| found.mode());
        permit(&file, if mode & 0o111 == 0 { 0o644 } else { 0o755 });
    }

    /// The place in the folder; folders on the way get the usual mode, whatever the umask.
    fn place(&self, path: &str) -> PathBuf {
        let mut place = self.directory.path().join("files");
        let path = Path::new(path.strip_prefix('/').expect("paths in the machine are absolute"));
        let folders = path.parent().into_iter().flat_map(Path::components);
        for part in std::iter::once(None).chain(folders.map(Some)) {
            place.extend(part);
            fs::create_dir_all(&place).expect("the folder is writable");
            permit(&place, 0o755);
        }
        place.join(path.file_name().expect("a file has a name"))
    }

    /// Boots, and waits until systemd has nothing left to start.
    #[must_use]
    pub fn boot(self) -> Machine {
        let mount = cgroup_mount().expect("control groups of version 2 are mounted somewhere");
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let cgroup = mount.join(format!("{CGROUP_PREFIX}{}-{number}", std::process::id()));
        fs::create_dir_all(&cgroup).expect("root makes control groups");
        let script = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", cgroup.display());
        let log = fs::File::create(self.directory.path().join("log")).expect("the folder is writable");
        let unshare = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "sh", "-c", &script, "sh", "unshare", "-mpfuinC"])
            .args(["--kill-child", "--mount-proc", "sh", "-c", BOOT, "sh"])
            .arg(self.directory.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file can be opened twice"))
            .stderr(log)
            .spawn()
            .expect("setpriv is installed");
        let mut machine = Machine { unshare, first: 0, directory: self.directory, cgroup };
        machine.await_boot();
        machine
    }
}

/// A machine that runs, until it is dropped.
#[derive(Debug)]
pub struct Machine {
    /// `unshare`, whose one child is systemd.
    unshare: Child,
    /// Systemd, as seen from here.
    first: u32,
    directory: TempDir,
    cgroup: PathBuf,
}

impl Machine {
    fn await_boot(&mut self) {
        let begun = Instant::now();
        loop {
            if let Some(first) = child_of(self.unshare.id()) {
                self.first = first;
                let state = self.attempt(&["systemctl", "is-system-running"]);
                if matches!(text(&state.stdout).trim(), "running" | "degraded") {
                    return;
                }
            }
            let ended = self.unshare.try_wait().expect("the child is ours");
            assert!(
                ended.is_none() && begun.elapsed() < BOOT_LIMIT,
                "no machine ({ended:?}):\n{}",
                self.log()
            );
            std::thread::sleep(PAUSE);
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// What is at an absolute path in the machine, seen from here.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.first))
    }

    /// The machine's network namespace.
    #[must_use]
    pub fn network(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.first))
    }

    /// A wire to another machine, `lan0` on both ends, with these addresses (`10.60.0.1/24`).
    pub fn wire(&self, other: &Self, addresses: [&str; 2]) {
        let pid = other.first.to_string();
        let network = format!("--net={}", self.network().display());
        let wire = ["link", "add", LAN, "type", "veth", "peer", "name", LAN, "netns", &pid];
        let made = Command::new("nsenter").arg(network).arg("ip").args(wire).status();
        assert!(made.expect("nsenter is installed").success(), "no wire");
        for (machine, address) in [self, other].into_iter().zip(addresses) {
            machine.run(&["ip", "address", "add", address, "dev", LAN]);
            machine.run(&["ip", "link", "set", LAN, "up"]);
        }
    }

    /// Starts a program in the machine and waits for it, whatever comes of it.
    #[must_use]
    pub fn attempt(&self, words: &[&str]) -> Output {
        let entered = Command::new("nsenter")
            .args([
                "--target",
                &self.first.to_string(),
                "--mount",
                "--pid",
                "--net",
                "--uts",
                "--ipc",
                "--cgroup",
            ])
            .args(words)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::null())
            .output();
        entered.expect("nsenter is installed")
    }

    /// What a program prints that has to succeed; its end is told with the journal where it does not.
    #[track_caller]
    pub fn run(&self, words: &[&str]) -> String {
        let output = self.attempt(words);
        if !output.status.success() {
            let journal =
                self.attempt(&["journalctl", "--no-pager", "--output=short-monotonic", "--lines=80"]);
            panic!("{words:?}: {}{}\n{}", text(&output.stdout), text(&output.stderr), text(&journal.stdout));
        }
        text(&output.stdout)
    }

    /// A property of a unit, as systemd has it.
    #[track_caller]
    pub fn property(&self, unit: &str, name: &str) -> String {
        self.run(&["systemctl", "show", "--value", "--property", name, unit]).trim().to_owned()
    }

    /// What systemd does not like about a unit, such as a setting that it does not know.
    #[must_use]
    pub fn complaints(&self, unit: &str) -> String {
        let verified = self.attempt(&["systemd-analyze", "verify", "--man=no", unit]);
        text(&verified.stderr).lines().filter(|line| line.contains(unit)).collect()
    }

    /// Asks until the answer is yes; ends the test with the journal where it never is.
    #[track_caller]
    pub fn await_that(&self, what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !holds() {
            if limit < begun.elapsed() {
                let journal =
                    self.attempt(&["journalctl", "--no-pager", "--output=short-monotonic", "--lines=80"]);
                panic!("not within {} s: {what}\n{}", limit.as_secs(), text(&journal.stdout));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// The machine's control group, which is gone with it.
    #[must_use]
    pub fn cgroup(&self) -> &Path {
        &self.cgroup
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // With the first process of its namespace, everything in there ends, and only then does `unshare`.
        let killed = Command::new("kill").args(["-KILL", &self.first.to_string()]).status();
        if self.first == 0 || !killed.is_ok_and(|status| status.success()) {
            let _ = self.unshare.kill();
        }
        let _ = self.unshare.wait();
        remove_tree(&self.cgroup);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn permit(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the file is ours");
}

fn child_of(pid: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

/// Where version 2 is mounted: beside version 1 or alone.
fn cgroup_mount() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mut fields = mounts.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    fields.find(|fields| fields.get(2) == Some(&"cgroup2")).map(|fields| PathBuf::from(fields[1]))
}

/// Removes the control groups of the chosen tests.
fn remove_cgroups(is_chosen: impl Fn(&str) -> bool) {
    for group in cgroup_mount().iter().flat_map(|mount| directories(mount)) {
        let name = group.file_name().unwrap_or_default().to_string_lossy();
        let process = name.strip_prefix(CGROUP_PREFIX).and_then(|rest| rest.split('-').next());
        if process.is_some_and(&is_chosen) {
            remove_tree(&group);
        }
    }
}

/// Control groups hold files that cannot be removed: only directories go, from the innermost on.
fn remove_tree(group: &Path) {
    directories(group).iter().for_each(|inner| remove_tree(inner));
    if let Err(error) = fs::remove_dir(group) {
        eprintln!("control group {} stays: {error}", group.display());
    }
}

fn directories(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| entry.path()).collect()
}
