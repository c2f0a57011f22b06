//! Network namespaces of the tests' own, held by a file descriptor and gone with it.

use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;

/// Whether tests that need root and a real kernel run.
#[track_caller]
pub(super) fn lab() -> bool {
    edgeloom_prepare::lab_allowed(&["ip", "iptables", "nft", "tc"])
}

/// An empty network namespace, loopback up, with the switches of a machine that forwards nothing yet: a new one has
/// the settings of the machine, where a Docker may have been before.
pub(super) struct Namespace(File);

impl Namespace {
    pub(super) fn new() -> Self {
        let made = || {
            unshare(CloneFlags::CLONE_NEWNET).expect("root may make network namespaces");
            sh("ip link set lo up; echo 0 > /proc/sys/net/ipv4/ip_forward");
            File::open("/proc/thread-self/ns/net").unwrap()
        };
        Self(std::thread::spawn(made).join().unwrap())
    }

    /// Runs `work` on a thread inside.
    pub(super) fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let inside = || {
            setns(&self.0, CloneFlags::CLONE_NEWNET).unwrap();
            work()
        };
        std::thread::scope(|scope| match scope.spawn(inside).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    /// How `ip ... netns` is told of it.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

/// Runs a shell script in the calling thread's namespace and returns what it prints.
pub(super) fn sh(script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}
