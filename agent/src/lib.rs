//! The node daemon's parts; `main.rs` wires them to the command line.
//!
//! `worker` owns the desired state; `engine` and `network` are what it acts through, `store` what it
//! remembers, `session` how it talks to the controller, `app` what starts and ends them all.

mod accept;
pub mod app;
mod code;
mod collect;
pub mod config;
mod contact;
mod counts;
pub mod doctor;
pub mod engine;
mod inventory;
pub mod join;
mod lanes;
mod layers;
mod logs;
mod measure;
mod network;
mod node;
mod notify;
pub mod once;
mod replies;
mod secrets;
pub mod session;
mod store;
mod task;
pub mod wire;
mod worker;
