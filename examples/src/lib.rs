//! What the examples and the laboratory share.

pub mod build;
pub mod images;
