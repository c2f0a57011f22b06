//! The preparation of a Debian machine for the lab and for the tests that need more than cargo: one
//! table of programs and packages, one way to install what is missing, one way to skip.
//!
//! In: what is needed, `EDGELOOM_NO_INSTALL` and `EDGELOOM_SKIP_LAB`. Out: programs on the machine, or
//! an error that names them with the remedy. Nothing is installed that is there already, no service is
//! started, and processes that prepare at the same time wait for each other.

mod install;
mod kernel;
mod skip;

pub use skip::lab_allowed;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// Program and the Debian package it comes with. The Docker client is not among them.
const PROGRAMS: [(&str, &str); 18] = [
    ("containerd", "containerd"),
    ("docker-registry", "docker-registry"),
    ("dockerd", "docker.io"),
    ("ip", "iproute2"),
    ("iptables", "iptables"),
    ("kill", "procps"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mosquitto", "mosquitto"),
    ("mount", "mount"),
    ("nft", "nftables"),
    ("nsenter", "util-linux"),
    ("runc", "runc"),
    ("setpriv", "util-linux"),
    ("setsid", "util-linux"),
    ("systemctl", "systemd"),
    ("tc", "iproute2"),
    ("umount", "mount"),
    ("unshare", "util-linux"),
];

/// What the lab and its demo start; the tests alone need the others.
const LAB: [&str; 14] = [
    "containerd",
    "docker-registry",
    "dockerd",
    "ip",
    "iptables",
    "mkfs.ext4",
    "mount",
    "nft",
    "nsenter",
    "runc",
    "setsid",
    "tc",
    "umount",
    "unshare",
];

/// What somebody is about to use.
#[derive(Debug, Clone, Copy)]
pub enum Need<'a> {
    /// All programs of the lab, and the kernel features it builds on.
    Lab,
    /// These programs, by the names they are started with.
    Programs(&'a [&'a str]),
}

/// Programs that are not there, with the packages that bring them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub programs: Vec<String>,
    pub packages: Vec<String>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packages = self.packages.join(" ");
        write!(f, "missing: {} (Debian packages: {packages})", self.programs.join(", "))
    }
}

/// Why the machine is not prepared. Written out, since this package builds before any other.
#[derive(Debug)]
pub enum PrepareError {
    Unlisted { program: String },
    Forbidden(Missing),
    NotRoot(Missing),
    NotOnPath { program: String, folder: &'static str },
    File { path: PathBuf, source: std::io::Error },
    AptMissing { source: std::io::Error },
    Apt { words: String, status: ExitStatus },
    StillMissing(Missing),
    Kernel { failures: Vec<String> },
}

impl fmt::Display for PrepareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlisted { program } => write!(f, "no Debian package is known to bring `{program}`"),
            Self::Forbidden(missing) => {
                let packages = missing.packages.join(" ");
                write!(
                    f,
                    "{missing}; EDGELOOM_NO_INSTALL=1 forbids installing them: \
                     unset it, or run `apt-get install {packages}`"
                )
            }
            Self::NotRoot(missing) => write!(f, "{missing}; installing them needs root"),
            Self::NotOnPath { program, folder } => write!(
                f,
                "`{program}` is in {folder}, which PATH lacks: run `export PATH=$PATH:{folder}`, \
                 or become root with `su -`"
            ),
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::AptMissing { source } => {
                write!(f, "apt-get does not start ({source}); only Debian can be prepared")
            }
            Self::Apt { words, status } => write!(f, "`apt-get {words}` failed ({status})"),
            Self::StillMissing(missing) => write!(f, "{missing} after apt-get installed the packages"),
            Self::Kernel { failures } => {
                write!(f, "the kernel lacks what the lab needs:\n{}", failures.join("\n"))
            }
        }
    }
}

impl std::error::Error for PrepareError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. } | Self::AptMissing { source } => Some(source),
            _ => None,
        }
    }
}

/// Installs the programs that are missing, and for the lab tries the kernel.
pub fn prepare(need: Need<'_>) -> Result<(), PrepareError> {
    match need {
        Need::Programs(programs) => install::programs(programs, &PROGRAMS),
        Need::Lab => install::programs(&LAB, &PROGRAMS).and_then(|()| kernel::trial()),
    }
}

/// Whether an environment variable says yes.
fn asked(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}

/// Whether the process acts as root: the second number of `Uid:` is the effective one (proc_pid_status(5)).
fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uids.and_then(|uids| uids.split_whitespace().nth(1)) == Some("0")
}

fn file_error(path: &Path) -> impl FnOnce(std::io::Error) -> PrepareError {
    move |source| PrepareError::File { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_of_the_lab_has_a_package() {
        for program in LAB {
            assert!(PROGRAMS.iter().any(|(listed, _)| *listed == program), "{program}");
        }
    }

    #[test]
    fn a_refusal_names_programs_packages_and_remedy() {
        let missing = Missing {
            programs: vec!["dockerd".to_owned(), "nft".to_owned()],
            packages: vec!["docker.io".to_owned(), "nftables".to_owned()],
        };
        assert_eq!(
            PrepareError::Forbidden(missing).to_string(),
            "missing: dockerd, nft (Debian packages: docker.io nftables); EDGELOOM_NO_INSTALL=1 forbids \
             installing them: unset it, or run `apt-get install docker.io nftables`"
        );
    }
}
