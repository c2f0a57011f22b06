//! Staying a member: asking every hour whether it is time for the next certificate.
//!
//! The controller judges, since our clock may be wrong; its answer also tells the time. Half of a
//! certificate's life is left when it first says yes, so weeks of failures harm nothing.

use super::file::Membership;
use super::https::{Api, AskError};
use super::live::Live;
use super::{MembershipError, command};
use edgeloom_common::join::{IdentityAnswer, RenewRequest, RenewalView};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

const INTERVAL: Duration = Duration::from_secs(3600);
/// After a start, so that a node that was away for long renews soon; after a failure, too.
const SOON: Duration = Duration::from_secs(60);

/// Why a certificate was not renewed; the present one goes on.
#[derive(Debug, thiserror::Error)]
pub enum RenewalError {
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error(transparent)]
    Membership(#[from] MembershipError),
    #[error("cannot make a key: {0}")]
    Key(#[from] rcgen::Error),
    #[error("the controller answered for node {node} of cluster {cluster}, which is not this one")]
    Another { node: String, cluster: String },
}

/// Asks for ever. `host` is where the controller is now.
pub(crate) async fn run(live: Arc<Live>, host: String) {
    let mut pause = SOON;
    loop {
        // Apart from each other, as a power cut starts all nodes at once.
        sleep(pause.mul_f32(0.75 + fastrand::f32() / 2.0)).await;
        pause = match renew_now(&live, &host).await {
            Ok(Renewal::Renewed) => {
                tracing::info!("certificate renewed");
                // The new one is shown once soon, which ends the old one at the controller.
                SOON
            }
            Ok(Renewal::NotDue) => INTERVAL,
            Err(error @ RenewalError::Ask(AskError::Unreachable { .. } | AskError::Slow { .. })) => {
                tracing::debug!(%error, "cannot ask about our certificate");
                SOON
            }
            Err(error) => {
                tracing::warn!(%error, "our certificate is not renewed");
                INTERVAL
            }
        };
    }
}

/// What came of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    NotDue,
    Renewed,
}

/// Asks once, and renews if it is time.
///
/// # Errors
/// When the controller is not there, refuses, or the disk does.
pub async fn renew_now(live: &Arc<Live>, host: &str) -> Result<Renewal, RenewalError> {
    let present = live.membership();
    let api = Api { host: host.to_owned(), port: present.api_port, tls: live.client_config() };
    let view: RenewalView = api.fetch("/v1/identity").await?;
    if !view.due {
        live.replace(Membership { good_s: view.now_s, ..present })?;
        return Ok(Renewal::NotDue);
    }
    let (key, request) = command::key_and_request()?;
    let answer: IdentityAnswer = api.post("/v1/identity", &RenewRequest { request }).await?;
    if answer.node != present.node || answer.cluster != present.cluster {
        return Err(RenewalError::Another {
            node: answer.node.to_string(),
            cluster: answer.cluster.to_string(),
        });
    }
    live.replace(Membership {
        certificate: answer.certificate,
        key,
        authorities: answer.authorities,
        mqtt_port: answer.mqtt_port,
        good_s: answer.now_s,
        ..present
    })?;
    Ok(Renewal::Renewed)
}
