//! Other programs: run them, and tell command, exit code and what they said when they fail.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The environment variable that marks a lab's processes, shims included, since they inherit it.
pub(crate) const MARK: &str = "EDGELOOM_LAB";

/// Runs a program to its end and gives what it wrote.
pub(crate) fn run(words: &[&str]) -> Result<String> {
    feed(words, "")
}

/// Like [`run`], with `input` on standard input.
pub(crate) fn feed(words: &[&str], input: &str) -> Result<String> {
    let told = words.join(" ");
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("`{told}` does not start"))?;
    // A program that ends before it has read everything tells why by its exit code.
    let _ = child.stdin.take().expect("asked for a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output().with_context(|| format!("`{told}`"))?;
    if !output.status.success() {
        bail!(
            "`{told}` failed ({}): {} {input}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Words that start a program in a network namespace. Unlike `ip netns exec`, nsenter leaves /sys
/// as it is, which Docker needs for its cgroups.
pub(crate) fn within(namespace: &str, words: &[&str]) -> Vec<String> {
    let net = format!("--net=/run/netns/{namespace}");
    ["nsenter", &net].into_iter().chain(words.iter().copied()).map(str::to_owned).collect()
}

pub(crate) struct Daemon<'a> {
    pub(crate) words: &'a [String],
    pub(crate) out: &'a Path,
    pub(crate) err: &'a Path,
    pub(crate) pid_file: &'a Path,
    /// Files to write the process's id into before the program starts.
    pub(crate) cgroup_files: &'a [std::path::PathBuf],
    pub(crate) lab: &'a str,
}

/// Starts a program that outlives us, and notes its process id.
pub(crate) fn start(daemon: &Daemon<'_>) -> Result<u32> {
    let open = |path: &Path| -> Result<File> {
        let file = File::options().create(true).append(true).open(path);
        file.with_context(|| format!("log {}", path.display()))
    };
    let enter = r#"n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ > "$1" || exit 97; shift; n=$((n-1)); done; exec "$@""#;
    let child = Command::new("setsid")
        .args(["sh", "-c", enter, "lab", &daemon.cgroup_files.len().to_string()])
        .args(daemon.cgroup_files)
        .args(daemon.words)
        .env(MARK, daemon.lab)
        .stdin(Stdio::null())
        .stdout(open(daemon.out)?)
        .stderr(open(daemon.err)?)
        .current_dir("/")
        .spawn()
        .with_context(|| format!("`{}` does not start", daemon.words.join(" ")))?;
    std::fs::write(daemon.pid_file, child.id().to_string())
        .with_context(|| format!("pid file {}", daemon.pid_file.display()))?;
    Ok(child.id())
}
