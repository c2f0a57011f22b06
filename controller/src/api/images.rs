//! `GET /v1/images`: what the registries have; `POST /v1/registry/events`: what they tell by themselves.

use super::error::ApiError;
use super::request::Parameters;
use super::{Api, body};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use edgeloom_cluster::Envelope;
use edgeloom_common::images::ImageList;
use edgeloom_common::registry::RegistryHost;
use serde::Deserialize;

/// Parameters of a list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Selection {
    /// Images whose name has this in it.
    #[serde(default)]
    name: String,
}

/// Parameters of notifications.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sender {
    /// The registry's name here, where those who push know it by another.
    registry: Option<RegistryHost>,
}

pub(super) async fn list(
    State(api): State<Api>,
    Parameters(selection): Parameters<Selection>,
) -> Json<ImageList> {
    Json(api.cluster.images(&selection.name).await)
}

/// Nothing of it is believed: the registry is asked whether it is so. What is of no interest is no mistake, since a
/// registry would send it again and again.
pub(super) async fn notified(
    State(api): State<Api>,
    Parameters(sender): Parameters<Sender>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let envelope: Envelope = body::json(body).await?;
    let count = api.cluster.registry_notified(&envelope, sender.registry.as_ref());
    tracing::debug!(count, "a registry notifies of changes");
    Ok(StatusCode::NO_CONTENT)
}
