//! What laboratory and tests run, built by cargo: each package on its own, so that it gets its own features.
//!
//! In: the profile. Out: paths of programs that are up to date. Programs of other packages are not known to
//! cargo while it builds a test, so the test asks for them when it runs.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// How to build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// As tests are.
    Dev,
    /// As users have it.
    Release,
}

/// Why there is no program.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("{program} does not start: {source}")]
    Start { program: String, source: std::io::Error },
    #[error("`cargo {words}` failed ({status})")]
    Failed { words: String, status: ExitStatus },
    #[error("rustc names no host")]
    Host,
}

impl Profile {
    fn folder(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Release => "release",
        }
    }

    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Dev => &[],
            Self::Release => &["--release"],
        }
    }
}

/// The folder with `edgeloom-agent`, `edgeloom-controller` and `edgeloom`.
///
/// # Errors
/// When cargo fails.
pub fn daemons(profile: Profile) -> Result<PathBuf, BuildError> {
    for package in ["edgeloom-agent", "edgeloom-controller"] {
        cargo(&[&["build", "-p", package], profile.words()].concat())?;
    }
    Ok(target().join(profile.folder()))
}

/// The example application, static so that its image needs no libraries.
///
/// # Errors
/// When cargo fails.
pub fn pipeline(profile: Profile) -> Result<PathBuf, BuildError> {
    let host = host()?;
    let package = ["rustc", "-p", "edgeloom-pipeline", "--bin", "pipeline", "--target", &host];
    let linking = ["--", "-C", "target-feature=+crt-static"];
    cargo(&[&package[..], profile.words(), &linking].concat())?;
    Ok(target().join(host).join(profile.folder()).join("pipeline"))
}

fn host() -> Result<String, BuildError> {
    let start = |source| BuildError::Start { program: "rustc".to_owned(), source };
    let output = Command::new("rustc").arg("-vV").output().map_err(start)?;
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or(BuildError::Host)
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from)
}

fn cargo(words: &[&str]) -> Result<(), BuildError> {
    let told = words.join(" ");
    eprintln!("cargo {told}");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What cargo says of the package that runs now is no part of the next build; scripts of dependencies look at
    // these variables and would have all above them built anew.
    let ours =
        |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"].iter().any(|it| name.starts_with(it));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(ours)) {
        command.env_remove(name);
    }
    let status = command.args(words).current_dir(workspace()).status();
    let status = status.map_err(|source| BuildError::Start { program: "cargo".to_owned(), source })?;
    if status.success() { Ok(()) } else { Err(BuildError::Failed { words: told, status }) }
}
