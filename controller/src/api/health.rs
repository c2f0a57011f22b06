//! Whether the daemon lives, and whether it can take requests.

use super::Api;
use super::error::ApiError;
use axum::extract::State;

/// Looks at nothing else: a daemon that answers lives.
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// The cluster's owner answers.
pub(super) async fn ready(State(api): State<Api>) -> Result<&'static str, ApiError> {
    if api.cluster.ready().await { Ok("ok\n") } else { Err(ApiError::NotReady) }
}
