//! Certificates of nodes: joining with a token, renewal with the present certificate, revocation, and a new
//! authority.

use super::error::ApiError;
use super::{Api, Joining, body};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use edgeloom_common::ids::NodeId;
use edgeloom_common::join::{
    AuthorityView, IdentityAnswer, JoinRequest, RenewRequest, RenewalView, RevokedView,
};
use edgeloom_identity::{JoinError, Peer};

/// The certificate of the connection, if it has one.
type Shown = Option<Extension<Option<Peer>>>;

/// Runs what waits for the disk where it holds up no other request.
pub(super) async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| ApiError::Internal)
}

fn mqtt_port(api: &Api) -> Result<u16, ApiError> {
    match api.joining {
        Joining::Here { mqtt_port } => Ok(mqtt_port),
        Joining::Elsewhere => Err(ApiError::JoiningElsewhere),
    }
}

fn peer(shown: Shown) -> Result<Peer, ApiError> {
    shown.and_then(|Extension(peer)| peer).ok_or(ApiError::NoCertificate)
}

pub(super) async fn join(State(api): State<Api>, body: Body) -> Result<Json<IdentityAnswer>, ApiError> {
    let port = mqtt_port(&api)?;
    let request: JoinRequest = body::json(body).await?;
    let (identity, node) = (api.identity.clone(), request.node.clone());
    match off_the_runtime(move || identity.join(&request, port)).await? {
        Ok(answer) => Ok(Json(answer)),
        Err(error) => {
            if !matches!(error, JoinError::Token(_) | JoinError::Unknown) {
                // Whoever holds a real token and is refused is worth a look.
                api.cluster.refused(format!("node {node} may not join: {error}")).await;
            }
            Err(error.into())
        }
    }
}

pub(super) async fn renewal(State(api): State<Api>, shown: Shown) -> Result<Json<RenewalView>, ApiError> {
    let (identity, peer) = (api.identity.clone(), peer(shown)?);
    Ok(Json(off_the_runtime(move || identity.renewal(&peer)).await??))
}

pub(super) async fn renew(
    State(api): State<Api>,
    shown: Shown,
    body: Body,
) -> Result<Json<IdentityAnswer>, ApiError> {
    let (port, peer) = (mqtt_port(&api)?, peer(shown)?);
    let request: RenewRequest = body::json(body).await?;
    let identity = api.identity.clone();
    Ok(Json(off_the_runtime(move || identity.renew(&peer, &request, port)).await??))
}

pub(super) async fn revoke(
    State(api): State<Api>,
    Path(name): Path<String>,
) -> Result<Json<RevokedView>, ApiError> {
    let node: NodeId = name.parse().map_err(|_| ApiError::UnknownNode { name })?;
    let (identity, revoked) = (api.identity.clone(), node.clone());
    let serials = off_the_runtime(move || identity.revoke_node(&revoked)).await??;
    Ok(Json(RevokedView { node, serials }))
}

pub(super) async fn rotate(State(api): State<Api>) -> Result<Json<AuthorityView>, ApiError> {
    mqtt_port(&api)?;
    Ok(Json(off_the_runtime(move || api.identity.rotate()).await??))
}
