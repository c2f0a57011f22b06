//! The kernel features of the lab, each tried in a network namespace that goes away with the shell.

use crate::PrepareError;
use std::process::Command;

const TRIALS: [(&str, &str); 5] = [
    ("veth", "ip link add name probe0 type veth peer name probe1"),
    ("bridge", "ip link add name probe0 type bridge"),
    (
        "HTB",
        "ip link add name probe0 type veth peer name probe1 && tc qdisc add dev probe0 root handle 1: htb \
         && tc class add dev probe0 classid 1:1 parent 1: htb rate 1mbit",
    ),
    (
        "tbf",
        "ip link add name probe0 type veth peer name probe1 \
         && tc qdisc add dev probe0 root tbf rate 1mbit burst 16384 limit 150000",
    ),
    (
        "nft maps",
        "nft add table ip t \
         && nft 'add map ip t m { type ipv4_addr . ipv4_addr . inet_proto . inet_service : mark ; }'",
    ),
];

pub(crate) fn trial() -> Result<(), PrepareError> {
    let failures: Vec<String> = TRIALS
        .iter()
        .filter_map(|(feature, script)| attempt(script).err().map(|why| format!("{feature}: {why}")))
        .collect();
    if failures.is_empty() { Ok(()) } else { Err(PrepareError::Kernel { failures }) }
}

/// Runs a script in a new network namespace; the error is what it said.
fn attempt(script: &str) -> Result<(), String> {
    let output = Command::new("unshare").args(["--net", "sh", "-c", script]).output();
    let output = output.map_err(|error| format!("unshare: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{} {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_kernel_has_what_the_lab_needs() {
        if crate::lab_allowed(&["ip", "nft", "tc", "unshare"]) {
            trial().unwrap();
        }
    }

    #[test]
    fn a_feature_that_is_lacking_is_told_in_the_words_of_the_program() {
        if crate::lab_allowed(&["ip", "unshare"]) {
            let why = attempt("ip link add name probe0 type nonsense").unwrap_err();
            assert!(why.contains("exit status"), "{why}");
        }
    }
}
