//! The accept for the pool's own traffic in the filter table that Docker and others fill.
//!
//! A drop in any base chain wins over an accept in ours, so the rule has to be where the drop is: in
//! DOCKER-USER where Docker made that chain, else in FORWARD when its policy drops. The table belongs to
//! the `iptables` program (its nf_tables and legacy forms are not the same to the kernel), so it is asked.

use crate::kernel::KernelError;
use crate::object::{ForwardAccept, Prefix};
use crate::tag::COMMENT;
use std::collections::BTreeSet;
use std::process::Command;

const PROGRAM: &str = "iptables";
/// Seconds to wait for another program's lock.
const LOCK_WAIT: &str = "5";

/// What the filter table says about forwarding.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    /// The chain that needs our accept, if one does.
    pub(crate) chain: Option<String>,
    /// The accepts of ours.
    pub(crate) accepts: BTreeSet<ForwardAccept>,
}

/// Lists the filter table; without the program, or the kernel's part of it, there is none.
pub(crate) fn list() -> Result<Filter, KernelError> {
    let output = match Command::new(PROGRAM).args(["-w", LOCK_WAIT, "-S"]).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Filter::default()),
        Err(error) => return Err(KernelError::Io(error)),
    };
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        tracing::debug!(status = %output.status, %message, "the filter table cannot be listed");
        return Ok(Filter::default());
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads `iptables -S`.
fn parse(listing: &str) -> Filter {
    let mut filter = Filter::default();
    let mut drops = false;
    for line in listing.lines() {
        match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["-N", "DOCKER-USER"] => filter.chain = Some("DOCKER-USER".to_owned()),
            ["-P", "FORWARD", "DROP"] => drops = true,
            ["-A", chain, "-s", source, "-d", to, "-m", "comment", "--comment", COMMENT, "-j", "ACCEPT"]
                if source == to =>
            {
                let Some(pool) = parse_prefix(source) else {
                    continue;
                };
                filter.accepts.insert(ForwardAccept { chain: (*chain).to_owned(), pool });
            }
            _ => {}
        }
    }
    if drops && filter.chain.is_none() {
        filter.chain = Some("FORWARD".to_owned());
    }
    filter
}

fn parse_prefix(text: &str) -> Option<Prefix> {
    let (address, len) = text.split_once('/')?;
    Some(Prefix { address: address.parse().ok()?, len: len.parse().ok()? })
}

/// Puts the accept first in its chain.
pub(crate) fn add(accept: &ForwardAccept) -> Result<(), KernelError> {
    run("-I", accept)
}

/// Removes the accept.
pub(crate) fn remove(accept: &ForwardAccept) -> Result<(), KernelError> {
    run("-D", accept)
}

fn run(verb: &str, accept: &ForwardAccept) -> Result<(), KernelError> {
    let pool = accept.pool.to_string();
    let output = Command::new(PROGRAM)
        .args(["-w", LOCK_WAIT, verb, &accept.chain, "-s", &pool, "-d", &pool])
        .args(["-m", "comment", "--comment", COMMENT, "-j", "ACCEPT"])
        .output()
        .map_err(KernelError::Io)?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(KernelError::Program { program: PROGRAM, status: output.status.to_string(), message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dockers_chain_is_preferred_to_forward() {
        let filter =
            parse("-P INPUT ACCEPT\n-P FORWARD DROP\n-N DOCKER\n-N DOCKER-USER\n-A DOCKER-USER -j RETURN\n");
        assert_eq!(filter.chain.as_deref(), Some("DOCKER-USER"));
        assert!(filter.accepts.is_empty());
        assert_eq!(parse("-P FORWARD DROP\n").chain.as_deref(), Some("FORWARD"));
        assert_eq!(parse("-P FORWARD ACCEPT\n").chain, None);
    }

    #[test]
    fn only_rules_with_our_comment_are_ours() {
        let line = "-A DOCKER-USER -s 10.77.0.0/16 -d 10.77.0.0/16 -m comment --comment edgeloom -j ACCEPT";
        assert_eq!(parse(line).accepts.len(), 1);
        assert!(parse(&line.replace("edgeloom", "other")).accepts.is_empty());
        assert!(parse(&line.replacen("10.77.0.0/16", "10.0.0.0/8", 1)).accepts.is_empty());
    }
}
