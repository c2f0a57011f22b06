//! What containers used, and what it costs: an invoice of what was measured, not of what was promised.
//!
//! In: counters that nodes keep of each run of a container ([`TaskTotal`](edgeloom_common::report::TaskTotal)), where
//! jobs are placed, the price table. Out: a record for each container ([`UsageView`]), closed when the container
//! goes, when the day ends (UTC) and when prices change, so that any days add up to what they cost.
//!
//! Counters only rise from the start of a run, and a record holds the reading up to which it has counted: what
//! nodes counted while nobody listened comes with the next report, and no report counts twice. Durations
//! are the nodes' steady clocks', times the controller's own. `book` is part of the model; `archive` keeps closed
//! records in files beside the journal, since the model is copied often.

pub(crate) mod archive;
mod book;
mod charge;
mod open;
mod reading;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use book::{Book, Change, Pricing};
pub(crate) use open::{Key, Open, Opening};
pub(crate) use reading::{Bounds, Reading};

use edgeloom_common::ids::JobName;
use edgeloom_common::usage::UsageView;

/// Which records are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageQuery {
    pub job: Option<JobName>,
    /// Those that begin within these times.
    pub since_ms: Option<u64>,
    pub until_ms: Option<u64>,
    /// Closed ones with a number above this.
    pub after: u64,
    /// So many closed ones at most.
    pub limit: usize,
}

impl UsageQuery {
    pub(crate) fn wants(&self, record: &UsageView) -> bool {
        record.number.is_none_or(|number| number > self.after)
            && self.job.as_ref().is_none_or(|job| *job == record.job)
            && self.since_ms.is_none_or(|since_ms| record.from_ms >= since_ms)
            && self.until_ms.is_none_or(|until_ms| record.from_ms < until_ms)
    }
}
