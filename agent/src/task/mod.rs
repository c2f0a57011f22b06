//! One task of a job on this node: what to do next ([`step`]) and when to try again ([`backoff`]).

pub(crate) mod backoff;
pub(crate) mod step;
