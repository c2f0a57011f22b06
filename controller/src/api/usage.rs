//! `GET /v1/usage`: what containers used, and what it costs.

use super::Api;
use super::error::ApiError;
use super::request::Parameters;
use axum::Json;
use axum::extract::State;
use edgeloom_cluster::UsageQuery;
use edgeloom_common::usage::{PAGE_MAX, UsageList};
use serde::Deserialize;

/// Parameters of `GET /v1/usage`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Selection {
    /// None: of all jobs.
    job: Option<String>,
    /// Records that begin within these times, in milliseconds since 1970.
    since_ms: Option<u64>,
    until_ms: Option<u64>,
    /// Closed records with a number above this.
    #[serde(default)]
    after: u64,
    /// Closed records in one answer.
    limit: Option<usize>,
}

/// A job that has gone still has its records, so an unknown name is no error but has none.
pub(super) async fn list(
    State(api): State<Api>,
    Parameters(selection): Parameters<Selection>,
) -> Result<Json<UsageList>, ApiError> {
    let Selection { job, since_ms, until_ms, after, limit } = selection;
    let job = job.map(|name| name.parse().map_err(|_| ApiError::UnknownJob { name })).transpose()?;
    let limit = limit.unwrap_or(PAGE_MAX);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(ApiError::Query { reason: format!("limit is {limit}, not from 1 to {PAGE_MAX}") });
    }
    if let (Some(since_ms), Some(until_ms)) = (since_ms, until_ms)
        && since_ms >= until_ms
    {
        let reason = format!("since_ms, {since_ms}, is not before until_ms, {until_ms}");
        return Err(ApiError::Query { reason });
    }
    let found = api.cluster.usage(UsageQuery { job, since_ms, until_ms, after, limit }).await;
    let found = found.map_err(|error| {
        tracing::error!(%error, "what containers used does not read");
        ApiError::Internal
    })?;
    found.map(Json).ok_or(ApiError::NotReady)
}
