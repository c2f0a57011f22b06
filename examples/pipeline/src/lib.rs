//! One stage of a pipeline: takes an item from every upstream, works on it, sends bytes to every
//! downstream.
//!
//! What a stage is comes from the environment that Edgeloom gives a task ([`Settings`]). Reading,
//! computing and sending overlap: a thread reads each upstream, one thread computes, a thread sends to
//! each downstream, with at most two items between them, so that whatever is slow slows its
//! upstreams and nothing piles up. Items are counted, their content is noise.

mod frame;
mod intake;
mod join;
mod measure;
mod noise;
mod outlet;
mod settings;
mod stage;
mod work;

pub use measure::{ITEMS, measure};
pub use settings::{Output, SettingError, Settings};
pub use stage::{Counter, StartError, report, start};
