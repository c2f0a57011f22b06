//! What holds of a whole [`Network`](crate::Network): on the fake for many documents, on the real kernel
//! in namespaces of the tests' own.

mod contract;
mod convergence;
mod document;
mod faults;
mod foreign;
mod namespace;
mod orphans;
mod pulls;
mod traffic;
