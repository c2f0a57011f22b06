//! The controller: the HTTP API and the logs behind it, and the wiring between API, cluster and bus.
//!
//! In: requests over HTTP, messages of the agents from the bus. Out: answers, and what the cluster
//! publishes. No state lives here but open log streams: the cluster owns the truth.

pub mod api;
pub mod app;
pub mod config;
mod doctor;
pub mod logs;
mod metrics;
mod notify;
pub mod upkeep;
