//! Jobs: post, list, show, explain, stop.

use super::error::ApiError;
use super::request::{Job, Parameters};
use super::{Api, body};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use edgeloom_common::view::{Explanation, JobList, JobView};
use serde::Deserialize;
use tracing::Instrument;

/// Parameters of `POST /v1/jobs`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Submission {
    /// Plan only: nothing changes.
    #[serde(default)]
    dry_run: bool,
}

/// Takes a job document in YAML or JSON, which YAML includes.
pub(super) async fn submit(
    State(api): State<Api>,
    Parameters(submission): Parameters<Submission>,
    body: Body,
) -> Result<(StatusCode, Json<JobView>), ApiError> {
    let document = body::text(body).await?;
    let job = edgeloom_common::job::parse(&document).map_err(ApiError::JobInvalid)?;
    let refused = |error| ApiError::Submit { error, document: document.clone() };
    let span = tracing::info_span!("job", job = %job.name, dry_run = submission.dry_run);
    if submission.dry_run {
        let planned = api.cluster.plan(job).instrument(span).await;
        return Ok((StatusCode::OK, Json(planned.map_err(refused)?)));
    }
    let view = api.cluster.submit(job).instrument(span.clone()).await.map_err(refused)?;
    span.in_scope(|| tracing::info!(state = ?view.state, "job accepted"));
    Ok((StatusCode::CREATED, Json(view)))
}

pub(super) async fn list(State(api): State<Api>) -> Json<JobList> {
    Json(JobList { jobs: api.cluster.jobs().await })
}

pub(super) async fn show(State(api): State<Api>, Job(name): Job) -> Result<Json<JobView>, ApiError> {
    let view = api.cluster.job(&name).await;
    view.map(Json).ok_or_else(|| ApiError::UnknownJob { name: name.to_string() })
}

pub(super) async fn explain(State(api): State<Api>, Job(name): Job) -> Result<Json<Explanation>, ApiError> {
    let explanation = api.cluster.explain(&name).await;
    explanation.map(Json).ok_or_else(|| ApiError::UnknownJob { name: name.to_string() })
}

/// Accepts the stop; the answer shows the job as it stops.
pub(super) async fn stop(
    State(api): State<Api>,
    Job(name): Job,
) -> Result<(StatusCode, Json<JobView>), ApiError> {
    let span = tracing::info_span!("job", job = %name);
    let view = api.cluster.stop(name).instrument(span.clone()).await?;
    span.in_scope(|| tracing::info!("job stops"));
    Ok((StatusCode::ACCEPTED, Json(view)))
}
