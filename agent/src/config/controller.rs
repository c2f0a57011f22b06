//! The section [controller]: where the controller is, and certificates if they are managed from outside.

use super::{CONTROLLER_PORT, Check, ConfigProblem};
use serde::Deserialize;
use std::path::PathBuf;

/// Where the controller is and how to prove who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controller {
    pub host: String,
    pub port: u16,
    /// Certificates managed from outside; none: what joining gave.
    pub files: Option<IdentityFiles>,
}

/// PEM files: the authority to trust, our certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityFiles {
    pub ca: PathBuf,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawController {
    host: String,
    #[serde(default = "controller_port")]
    port: u16,
    pub(super) ca: Option<PathBuf>,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

fn controller_port() -> u16 {
    CONTROLLER_PORT
}

impl Check {
    /// What is written; problems are noted.
    pub(super) fn controller(&mut self, raw: RawController) -> Controller {
        if raw.host.is_empty() {
            self.problems.push(ConfigProblem::Host);
        }
        if raw.port == 0 {
            self.problems.push(ConfigProblem::Port);
        }
        let files = match (raw.ca, raw.certificate, raw.key) {
            (None, None, None) => None,
            (Some(ca), Some(certificate), Some(key)) => {
                self.absolute("controller.ca", &ca);
                self.absolute("controller.certificate", &certificate);
                self.absolute("controller.key", &key);
                Some(IdentityFiles { ca, certificate, key })
            }
            _ => {
                self.problems.push(ConfigProblem::SomeFiles);
                None
            }
        };
        Controller { host: raw.host, port: raw.port, files }
    }
}
