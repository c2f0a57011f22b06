//! `edgeloom doctor`: the controller's examination of itself and its nodes, and whether it can be reached at all.

use crate::client::Client;
use crate::error::Error;
use edgeloom_common::doctor::{Check, Examination};

/// What the check of the way to the controller is called.
const CONTROLLER: &str = "controller";

/// Asks; a controller that cannot be asked is what the examination found.
pub(crate) fn examine(client: &Client) -> Examination {
    let server = client.server();
    match client.fetch::<Examination>("/v1/doctor") {
        Ok(mut examination) => {
            examination.checks.insert(0, Check::ok(CONTROLLER, format!("answers at {server}")));
            examination
        }
        Err(error) => Examination { checks: vec![unasked(&error)] },
    }
}

fn unasked(error: &Error) -> Check {
    let seen = error.text();
    let seen = seen.trim();
    match error {
        Error::Unreachable { .. } => Check::fail(
            CONTROLLER,
            seen,
            "systemctl status edgeloom-controller there; another address is set by --server or EDGELOOM_SERVER",
        ),
        _ => Check::fail(CONTROLLER, seen, "see that it is the controller, and of this version"),
    }
}
