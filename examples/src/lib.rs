//! What the examples and the laboratory share.

pub mod images;
