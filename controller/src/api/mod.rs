//! The HTTP API: which path is served by what. Types of the answers are in [`edgeloom_common::view`].
//!
//! In: requests of anybody who reaches the port, every one hostile until read. Out: JSON, a text
//! stream for logs, and a problem document for every refusal ([`error`] alone knows status codes).

mod body;
mod error;
mod events;
mod health;
mod jobs;
mod logs;
mod measure;
mod nodes;
mod request;
pub mod serve;
#[cfg(test)]
mod tests;

use crate::logs::Logs;
use axum::Router;
use axum::routing::{get, post};
use edgeloom_cluster::Cluster;
use tower_http::catch_panic::CatchPanicLayer;

/// What the handlers work with.
#[derive(Debug, Clone)]
pub struct Api {
    pub cluster: Cluster,
    pub logs: Logs,
}

/// Every path of the API.
pub fn router(api: Api) -> Router {
    Router::new()
        .route("/v1/jobs", get(jobs::list).post(jobs::submit))
        .route("/v1/jobs/{name}", get(jobs::show).delete(jobs::stop))
        .route("/v1/jobs/{name}/explain", get(jobs::explain))
        .route("/v1/jobs/{name}/logs", get(logs::stream))
        .route("/v1/measure", post(measure::measure))
        .route("/v1/profiles", get(measure::profiles))
        .route("/v1/nodes", get(nodes::list))
        .route("/v1/events", get(events::list))
        .route("/livez", get(health::live))
        .route("/readyz", get(health::ready))
        .fallback(request::no_such_path)
        .method_not_allowed_fallback(request::no_such_method)
        .layer(CatchPanicLayer::custom(error::after_panic))
        .with_state(api)
}
