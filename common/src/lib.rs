//! The words that agent, controller and tools share: names, units, the job document, what a node
//! reports, what a node should be, and where each message travels.
//!
//! Nothing here does I/O or knows a runtime. Wire types tolerate unknown fields, so that a newer
//! peer may say more; documents written by people refuse them.

pub mod confidential;
pub mod desired;
pub mod digest;
pub mod doctor;
pub mod ids;
pub mod images;
pub mod job;
pub mod join;
pub mod measure;
pub mod prefetch;
pub mod price;
pub mod registry;
pub mod report;
#[cfg(any(test, feature = "fakes"))]
pub mod samples;
pub mod secret;
pub mod token;
pub mod topics;
pub mod units;
pub mod usage;
pub mod view;
pub mod volume;
pub mod work;
