//! One address a task, from the pool, for the task's life.
//!
//! The first address of the pool is the gateway and the first [`RESERVED`] are left to the operator; the
//! last is the broadcast address. The lowest unused one is given.

use edgeloom_common::desired::Pool;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Addresses at the start of the pool that no task gets.
pub(crate) const RESERVED: u32 = 10;

/// Every address of the pool is in use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the pool {network}/{prefix_len} has {size} addresses for tasks and all are in use; stop a job or enlarge it"
)]
pub(crate) struct PoolExhausted {
    pub(crate) network: Ipv4Addr,
    pub(crate) prefix_len: u8,
    pub(crate) size: u32,
}

/// The lowest `count` addresses that are not `used`.
pub(crate) fn lease(
    pool: &Pool,
    used: &BTreeSet<Ipv4Addr>,
    count: usize,
) -> Result<Vec<Ipv4Addr>, PoolExhausted> {
    let base = u32::from(pool.network);
    let hosts = 1u64.checked_shl(32 - u32::from(pool.prefix_len.min(32))).unwrap_or(0);
    let end = u32::try_from(hosts.saturating_sub(1)).unwrap_or(u32::MAX);
    let found: Vec<Ipv4Addr> = (RESERVED..end)
        .map(|offset| Ipv4Addr::from(base.wrapping_add(offset)))
        .filter(|address| *address != pool.gateway && !used.contains(address))
        .take(count)
        .collect();
    if found.len() < count {
        return Err(PoolExhausted {
            network: pool.network,
            prefix_len: pool.prefix_len,
            size: end.saturating_sub(RESERVED),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_unused_addresses_are_given_and_exhaustion_is_refused() {
        let pool = Pool {
            network: Ipv4Addr::new(10, 77, 0, 0),
            prefix_len: 28,
            gateway: Ipv4Addr::new(10, 77, 0, 1),
        };
        let used = BTreeSet::from([Ipv4Addr::new(10, 77, 0, 11)]);
        let given = lease(&pool, &used, 4).unwrap();
        assert_eq!(given, [10, 12, 13, 14].map(|last| Ipv4Addr::new(10, 77, 0, last)));
        assert_eq!(lease(&pool, &used, 5).unwrap_err().size, 5);
    }
}
