//! What decides, beside resources and constraints, where a task may run and where it would rather run.
//!
//! The words are those of the Kubernetes scheduler, so that its scores can be computed as they are defined
//! there. A rule looks either at named tasks of the same job or at the labels of any job's tasks.

use super::problems::excerpt;
use super::words::is_label_text;
use super::{Attribute, Constraint};
use crate::ids::{TaskName, VolumeName};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::str::FromStr;

/// The wishes and rules of one task; the default has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Placement {
    /// What rules of other tasks see of this one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Constraints that would rather hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preferences: Vec<Preference>,
    #[serde(skip_serializing_if = "Affinity::is_none")]
    pub affinity: Affinity,
    /// As `affinity`, but apart instead of together.
    #[serde(skip_serializing_if = "Affinity::is_none")]
    pub anti_affinity: Affinity,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<Spread>,
    /// Ports of the node that the container takes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<HostPort>,
    /// Storage of a class that the container takes of its node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// Folders that outlive the container: it stays where they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
}

/// A task without any.
pub static ANYWHERE: Placement = Placement {
    labels: BTreeMap::new(),
    tolerations: Vec::new(),
    preferences: Vec::new(),
    affinity: Affinity { required: Vec::new(), preferred: Vec::new() },
    anti_affinity: Affinity { required: Vec::new(), preferred: Vec::new() },
    spread: Vec::new(),
    ports: Vec::new(),
    volumes: Vec::new(),
    mounts: Vec::new(),
};

impl Placement {
    /// Nothing is asked or shown.
    #[must_use]
    pub fn is_anywhere(&self) -> bool {
        *self == ANYWHERE
    }
}

/// What a node keeps tasks away with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taint {
    pub key: String,
    #[serde(default)]
    pub value: String,
    pub effect: Effect,
}

/// Why a text is no taint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaintError {
    #[error("{text:?} is no taint")]
    Name { text: String },
    #[error("{text:?} is no effect of a taint, one of: no_schedule, prefer_no_schedule, no_execute")]
    Effect { text: String },
}

/// `key[=value][:effect]`.
fn parts(text: &str) -> Result<(&str, Option<&str>, Option<Effect>), TaintError> {
    let (name, effect) = match text.split_once(':') {
        Some((name, effect)) => (name, Some(effect.parse()?)),
        None => (text, None),
    };
    let (key, value) = match name.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (name, None),
    };
    if !is_label_text(key) || value.is_some_and(|value| !is_label_text(value)) {
        return Err(TaintError::Name { text: excerpt(text) });
    }
    Ok((key, value, effect))
}

impl FromStr for Taint {
    type Err = TaintError;
    /// Without an effect nothing is scheduled there.
    fn from_str(text: &str) -> Result<Self, TaintError> {
        let (key, value, effect) = parts(text)?;
        let effect = effect.unwrap_or(Effect::NoSchedule);
        Ok(Self { key: key.to_owned(), value: value.unwrap_or_default().to_owned(), effect })
    }
}

impl FromStr for Effect {
    type Err = TaintError;
    fn from_str(text: &str) -> Result<Self, TaintError> {
        match text {
            "no_schedule" => Ok(Self::NoSchedule),
            "prefer_no_schedule" => Ok(Self::PreferNoSchedule),
            "no_execute" => Ok(Self::NoExecute),
            other => Err(TaintError::Effect { text: excerpt(other) }),
        }
    }
}

/// What a taint does to tasks that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    NoSchedule,
    /// The node is taken where others are worse.
    PreferNoSchedule,
    /// As `NoSchedule`; what runs there already is left alone.
    NoExecute,
}

/// A taint that a task puts up with. What is left out matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toleration {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
}

impl FromStr for Toleration {
    type Err = TaintError;
    /// A taint, or `all`.
    fn from_str(text: &str) -> Result<Self, TaintError> {
        if text == "all" {
            return Ok(Self::default());
        }
        let (key, value, effect) = parts(text)?;
        Ok(Self { key: Some(key.to_owned()), value: value.map(str::to_owned), effect })
    }
}

impl Toleration {
    /// Whether it covers a taint.
    #[must_use]
    pub fn covers(&self, taint: &Taint) -> bool {
        self.key.as_ref().is_none_or(|key| *key == taint.key)
            && self.value.as_ref().is_none_or(|value| *value == taint.value)
            && self.effect.is_none_or(|effect| effect == taint.effect)
    }
}

/// A constraint that counts for so much where it holds, 1 to 100.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preference {
    pub constraint: Constraint,
    pub weight: u32,
}

/// Which other tasks this one belongs together with, or apart from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Affinity {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<Term>,
    /// Each with what it counts for, 1 to 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preferred: Vec<(Term, u32)>,
}

impl Affinity {
    /// No rule at all.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.required.is_empty() && self.preferred.is_empty()
    }
}

/// Tasks, and the part of the cluster that counts as the same place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    pub with: Selector,
    /// Nodes that agree in it are one place; nodes without it are none.
    pub by: Attribute,
}

/// Which tasks a rule looks at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selector {
    /// A task of the same job.
    Task(TaskName),
    /// Tasks of any job that have all of these labels.
    Labels(BTreeMap<String, String>),
}

/// Tasks with the same labels are to be spread over places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// Tasks of any job that have all of these labels are counted.
    pub labels: BTreeMap<String, String>,
    pub by: Attribute,
    /// How many more one place may have than the emptiest; at least 1.
    pub max_skew: u32,
    /// A place that would have more is refused, not just a worse one.
    pub required: bool,
}

/// A port of the node's own addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostPort {
    pub port: u16,
    #[serde(default)]
    pub protocol: Protocol,
    /// Where the container listens.
    pub container: u16,
}

impl HostPort {
    /// No node has both.
    #[must_use]
    pub fn clashes(&self, other: &Self) -> bool {
        (self.port, self.protocol) == (other.port, other.protocol)
    }
}

/// A folder that a container finds at `path`, and that outlives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    #[serde(flatten)]
    pub from: Origin,
    /// In the container.
    pub path: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// What is mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The task's own, made on its node when it is mounted for the first time.
    Volume(VolumeName),
    /// A folder of the node, which has to allow that.
    Host(String),
}

/// Whether a path is one of these folders or below one, by its words alone.
#[must_use]
pub fn is_within(path: &str, folders: &[String]) -> bool {
    let below = |folder: &String| {
        let rest = path.strip_prefix(folder.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    folders.iter().any(below)
}

/// Of a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    #[default]
    Tcp,
    Udp,
}

/// Storage of a class, as nodes offer it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    pub class: String,
    pub size: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_toleration_leaves_out_matches_everything() {
        let taint = Taint { key: "gpu".into(), value: "yes".into(), effect: Effect::NoSchedule };
        assert!(Toleration::default().covers(&taint));
        let gpu = Toleration { key: Some("gpu".into()), ..Toleration::default() };
        assert!(gpu.covers(&taint));
        let no = Toleration { value: Some("no".into()), ..gpu.clone() };
        assert!(!no.covers(&taint));
        let prefer = Toleration { effect: Some(Effect::PreferNoSchedule), ..gpu };
        assert!(!prefer.covers(&taint));
    }

    #[test]
    fn a_taint_is_written_as_a_name_with_its_effect() {
        let taint = |text: &str| text.parse::<Taint>();
        let wanted = Taint { key: "gpu".into(), value: "yes".into(), effect: Effect::NoExecute };
        assert_eq!(taint("gpu=yes:no_execute"), Ok(wanted));
        assert_eq!(taint("gpu").map(|it| (it.value, it.effect)), Ok((String::new(), Effect::NoSchedule)));
        assert!(matches!(taint("gpu:"), Err(TaintError::Effect { .. })));
        assert!(matches!(taint("a b"), Err(TaintError::Name { .. })));
    }

    #[test]
    fn a_path_is_within_a_folder_by_whole_names() {
        let allowed = ["/srv".to_owned(), "/data/".to_owned()];
        for path in ["/srv", "/srv/x", "/data/y"] {
            assert!(is_within(path, &allowed), "{path}");
        }
        for path in ["/srvx", "/", "/dat", "/x/srv"] {
            assert!(!is_within(path, &allowed), "{path}");
        }
        assert!(is_within("/anything", &["/".to_owned()]));
    }

    #[test]
    fn a_task_without_rules_is_written_as_nothing() {
        assert_eq!(serde_json::to_string(&Placement::default()).unwrap(), "{}");
        assert!(Placement::default().is_anywhere());
        assert_eq!(serde_json::from_str::<Placement>("{}").unwrap(), ANYWHERE);
    }
}
