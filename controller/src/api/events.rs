//! `GET /v1/events`: what happened, newest last.

use super::Api;
use super::error::ApiError;
use super::request::Parameters;
use axum::Json;
use axum::extract::State;
use edgeloom_common::view::EventList;
use serde::Deserialize;

/// Parameters of `GET /v1/events`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Selection {
    /// None: events of all jobs, and of nodes and links.
    job: Option<String>,
    /// Only events with a number above this.
    #[serde(default)]
    after: u64,
}

/// A job that has gone still has its events, so an unknown name is no error but has none.
pub(super) async fn list(
    State(api): State<Api>,
    Parameters(selection): Parameters<Selection>,
) -> Result<Json<EventList>, ApiError> {
    let job = selection.job.map(|name| name.parse().map_err(|_| ApiError::UnknownJob { name }));
    let events = api.cluster.events(selection.after, job.transpose()?).await;
    Ok(Json(EventList { events }))
}
