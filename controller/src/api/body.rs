//! Reading a posted document: bounded in bytes and time, and never cut off before the answer.

use super::error::ApiError;
use axum::body::Body;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::timeout;

/// The largest document, in bytes.
pub(super) const BODY_MAX: usize = 1024 * 1024;

/// What is read and thrown away of a body that is too large, so that the client, still sending, gets to
/// read the refusal instead of a reset connection.
const DISCARD_MAX: usize = 64 * 1024 * 1024;

/// The longest a client may take to send its document.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The whole body, of at most `limit` bytes.
pub(super) async fn bytes(body: Body, limit: usize) -> Result<Vec<u8>, ApiError> {
    let late = |_| ApiError::BodyTimeout { seconds: BODY_TIMEOUT.as_secs() };
    timeout(BODY_TIMEOUT, read(body, limit)).await.map_err(late)?
}

/// The whole body as text, or the reason against it.
pub(super) async fn text(body: Body) -> Result<Vec<u8>, ApiError> {
    let bytes = bytes(body, BODY_MAX).await?;
    if let Err(error) = std::str::from_utf8(&bytes) {
        return Err(ApiError::BodyNotText { position: error.valid_up_to() });
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(ApiError::BodyEmpty);
    }
    Ok(bytes)
}

/// The whole body as a JSON document.
pub(super) async fn json<T: DeserializeOwned>(body: Body) -> Result<T, ApiError> {
    let bytes = text(body).await?;
    serde_json::from_slice(&bytes).map_err(|error| {
        // Place and kind alone: the text may hold a secret.
        let reason =
            format!("{:?} error in line {}, column {}", error.classify(), error.line(), error.column());
        ApiError::BodyNotDocument { reason }
    })
}

async fn read(mut body: Body, limit: usize) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::new();
    let mut total = 0_usize;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ApiError::BodyUnreadable { reason: error.to_string() })?;
        let Ok(part) = frame.into_data() else { continue };
        total = total.saturating_add(part.len());
        if total <= limit {
            bytes.extend_from_slice(&part);
        } else {
            bytes = Vec::new();
        }
        if total > DISCARD_MAX {
            break;
        }
    }
    if total > limit { Err(ApiError::BodyTooLarge { limit }) } else { Ok(bytes) }
}
