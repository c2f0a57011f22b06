//! What stands in the cluster's way.

use super::Api;
use crate::doctor;
use axum::Json;
use axum::extract::State;
use edgeloom_common::doctor::Examination;

pub(super) async fn examine(State(api): State<Api>) -> Json<Examination> {
    Json(doctor::examine(&api.cluster).await)
}
