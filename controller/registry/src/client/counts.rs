//! What registries were asked: requests and questions that came to nothing, since the start.
//!
//! Jobs may name any number of registries; only so many are counted each by itself.

use crate::watch::HOSTS_MAX;
use reqwest::Method;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// All others together. It is no registry's address, which has a dot or a port.
const OTHERS: &str = "other";

/// Of one registry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Requests without a body in the answer.
    pub heads: u64,
    pub gets: u64,
    /// Questions without the answer to them, for whatever reason; a question may take several requests.
    pub errors: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<BTreeMap<String, Count>>);

impl Counts {
    pub(super) fn sent(&self, registry: &str, method: &Method) {
        self.add(registry, |count| match *method {
            Method::HEAD => count.heads += 1,
            _ => count.gets += 1,
        });
    }

    pub(super) fn failed(&self, registry: &str) {
        self.add(registry, |count| count.errors += 1);
    }

    pub(crate) fn all(&self) -> BTreeMap<String, Count> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, registry: &str, change: impl FnOnce(&mut Count)) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_room = counts.len() < HOSTS_MAX || counts.contains_key(registry);
        change(counts.entry(if is_room { registry } else { OTHERS }.to_owned()).or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_beyond_the_bound_are_counted_together() {
        let counts = Counts::default();
        for number in 0..2 * HOSTS_MAX {
            counts.sent(&format!("reg{number}.lan"), &Method::HEAD);
        }
        counts.sent("reg0.lan", &Method::GET);
        counts.failed("reg0.lan");
        let all = counts.all();
        assert_eq!(all.len(), HOSTS_MAX + 1);
        assert_eq!(all["reg0.lan"], Count { heads: 1, gets: 1, errors: 1 });
        assert_eq!(all[OTHERS].heads, HOSTS_MAX as u64);
    }
}
