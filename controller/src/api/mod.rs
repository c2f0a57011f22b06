//! The HTTP API: which path is served by what. Types of the answers are in [`edgeloom_common::view`].
//!
//! In: requests of anybody who reaches the port, every one hostile until read. Out: JSON, a text
//! stream for logs, and a problem document for every refusal ([`error`] alone knows status codes).
//! Who may ask what stands in one table ([`access`]); what is not in it is for administrators.

mod access;
mod body;
mod doctor;
mod drain;
mod error;
mod events;
mod health;
mod identity;
mod images;
mod jobs;
mod logs;
mod measure;
mod metrics;
mod nodes;
mod prefetch;
mod registries;
mod request;
mod secrets;
pub mod serve;
#[cfg(test)]
mod tests;
mod tokens;
mod usage;
mod volumes;

use crate::logs::Logs;
use axum::routing::{delete, get, post, put};
use axum::{Router, middleware};
use edgeloom_cluster::Cluster;
use edgeloom_identity::Identity;
use tower_http::catch_panic::CatchPanicLayer;

/// What the handlers work with.
#[derive(Debug, Clone)]
pub struct Api {
    pub cluster: Cluster,
    pub logs: Logs,
    pub identity: Identity,
    pub guard: Guard,
    pub joining: Joining,
}

/// Whether requests need a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    Tokens,
    /// Everybody may do everything.
    Open,
}

/// Whether nodes get their certificates here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joining {
    /// The broker listens on this port.
    Here { mqtt_port: u16 },
    /// Certificates are managed from outside.
    Elsewhere,
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
        .route("/v1/images/prefetch", get(prefetch::list).post(prefetch::ask))
        .route("/v1/doctor", get(doctor::examine))
        .route("/v1/events", get(events::list))
        .route("/v1/usage", get(usage::list))
        .route("/v1/nodes/{name}", delete(nodes::forget))
        .route("/v1/nodes/{name}/cordon", post(drain::cordon))
        .route("/v1/nodes/{name}/drain", post(drain::drain))
        .route("/v1/nodes/{name}/uncordon", post(drain::uncordon))
        .route("/v1/consolidation", get(drain::consolidation).post(drain::consolidate))
        .route("/v1/nodes/{name}/certificate", delete(identity::revoke))
        .route("/v1/secrets", get(secrets::list))
        .route("/v1/secrets/{name}", put(secrets::keep).delete(secrets::remove))
        .route("/v1/registries", get(registries::list))
        .route("/v1/registries/{host}", put(registries::log_in).delete(registries::log_out))
        .route("/v1/registry/events", post(images::notified))
        .route("/v1/images", get(images::list))
        .route("/v1/volumes", get(volumes::list))
        .route("/v1/volumes/{node}/{job}/{task}/{volume}", delete(volumes::remove))
        .route("/v1/tokens", get(tokens::list).post(tokens::create))
        .route("/v1/tokens/{id}", delete(tokens::revoke))
        .route("/v1/join", post(identity::join))
        .route("/v1/identity", get(identity::renewal).post(identity::renew))
        .route("/v1/authority", post(identity::rotate))
        .route("/metrics", get(metrics::show))
        .route("/livez", get(health::live))
        .route("/readyz", get(health::ready))
        .fallback(request::no_such_path)
        .method_not_allowed_fallback(request::no_such_method)
        .layer(middleware::from_fn_with_state(api.clone(), access::check))
        .layer(CatchPanicLayer::custom(error::after_panic))
        .with_state(api)
}
