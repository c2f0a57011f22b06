//! Volumes that nodes hold for tasks: they outlive container and job, and are let go by name.

use crate::ids::{JobName, NameError, NodeId, TaskName, VolumeName};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A volume on its node, written `job/task/volume`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HeldVolume {
    pub job: JobName,
    pub task: TaskName,
    pub volume: VolumeName,
}

impl fmt::Display for HeldVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.job, self.task, self.volume)
    }
}

/// Why a text names no volume.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeldVolumeError {
    #[error("{0:?} names no volume; write JOB/TASK/VOLUME as `edgeloom volume list` does")]
    Parts(String),
    #[error(transparent)]
    Name(#[from] NameError),
}

impl FromStr for HeldVolume {
    type Err = HeldVolumeError;
    fn from_str(text: &str) -> Result<Self, HeldVolumeError> {
        let parts: Vec<&str> = text.split('/').collect();
        let [job, task, volume] = parts[..] else { return Err(HeldVolumeError::Parts(text.to_owned())) };
        Ok(Self { job: job.parse()?, task: task.parse()?, volume: volume.parse()? })
    }
}

/// A request to remove a volume with all that is in it: `cmd/volume/<id>`. The answer is empty, or an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeCommand {
    #[serde(flatten)]
    pub volume: HeldVolume,
    /// True: nobody waits for the answer to an earlier request of this id.
    #[serde(default)]
    pub cancel: bool,
}

/// `GET /v1/volumes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeList {
    pub volumes: Vec<VolumeView>,
}

/// A volume on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeView {
    pub node: NodeId,
    #[serde(flatten)]
    pub volume: HeldVolume,
    /// The node is online; of one that is not this is what it told last.
    pub online: bool,
    /// There is a job of this name with such a task and volume.
    pub used: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_reads_back_as_written_and_anything_else_is_refused() {
        let text = "a/detect/data";
        assert_eq!(text.parse::<HeldVolume>().unwrap().to_string(), text);
        for bad in ["", "a", "a/b", "a/b/c/d", "a/b/", "A_b/c/d", "../b/c"] {
            assert!(bad.parse::<HeldVolume>().is_err(), "{bad}");
        }
    }
}
