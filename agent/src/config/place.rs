//! `agent.toml` before this machine is a node: what joining has to know of it, and the first one.

use super::{Check, ConfigError, STATE_DIR, read};
use edgeloom_common::ids::{ClusterId, NodeId};
use std::path::{Path, PathBuf};

/// What joining has to know of the file before this machine is a node.
#[derive(Debug)]
pub struct Place {
    pub cluster: Option<ClusterId>,
    pub node: Option<NodeId>,
    pub state_dir: PathBuf,
    /// Certificates are managed from outside.
    pub has_files: bool,
}

impl Place {
    /// Where state is unless a file says otherwise.
    pub fn default_state_dir() -> PathBuf {
        PathBuf::from(STATE_DIR)
    }

    /// Reads the file; none if there is none.
    pub fn read(path: &Path) -> Result<Option<Self>, ConfigError> {
        let raw = match read(path) {
            Ok(raw) => raw,
            Err(ConfigError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let mut check = Check::default();
        let cluster = raw.cluster.as_deref().and_then(|text| check.name("cluster", text));
        let node = raw.node.as_deref().and_then(|text| check.name("node", text));
        check.absolute("state_dir", &raw.state_dir);
        if !check.problems.is_empty() {
            return Err(ConfigError::Invalid { path: path.to_owned(), problems: check.problems });
        }
        let has_files =
            raw.controller.is_some_and(|it| it.ca.is_some() || it.certificate.is_some() || it.key.is_some());
        Ok(Some(Self { cluster, node, state_dir: raw.state_dir, has_files }))
    }

    /// Writes the least that `run` needs. The names stand here too, so that a node whose membership is lost
    /// still knows whose containers are its own.
    pub fn write_first(path: &Path, (cluster, node): (&ClusterId, &NodeId)) -> std::io::Result<()> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let text = format!(
            "# Written when this machine joined; where the controller is, is known from that.\n\
             cluster = \"{cluster}\"\nnode = \"{node}\"\nstate_dir = {STATE_DIR:?}\n"
        );
        std::fs::write(path, text)
    }
}
