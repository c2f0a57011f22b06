//! The `disconnect` block of a job: what happens when a node of it is out of the controller's reach.
//!
//! The words are those of Nomad's block of that name. Left out, a node counts as lost after
//! [`LOST_AFTER_S`]: long enough for a radio that drops for a moment or a node that starts anew, so that
//! neither moves anything, and a dead node's tasks still come back within minutes.

use super::fields::{self, Fields};
use super::problems::{Place, Problems, excerpt};
use super::tree::Node;
use super::words::Seconds;
use serde::{Deserialize, Serialize};

/// Seconds out of reach after which a node is lost to a job that says nothing else.
pub const LOST_AFTER_S: u32 = 60;
/// Shorter times would move tasks for a lost packet or two.
const LEAST_S: u32 = 5;
/// Seven days.
const MOST_S: u32 = 604_800;

const DISCONNECT_FIELDS: &[&str] = &["lost_after", "replace", "stop_on_client_after", "reconcile"];

/// What happens with a job's tasks on a node out of reach, and when it comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Disconnect {
    /// Seconds out of reach after which the node is lost to the job.
    pub lost_after_s: u32,
    /// Tasks of a lost node are placed on others.
    pub replace: bool,
    /// Seconds without the controller after which the node itself stops the job's containers; none: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_on_client_after_s: Option<u32>,
    pub reconcile: Reconcile,
}

/// Which of two places a task keeps when its lost node returns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reconcile {
    /// It moves back.
    KeepOriginal,
    /// It stays where it was placed meanwhile: nothing that runs is disturbed again.
    #[default]
    KeepReplacement,
}

impl Default for Disconnect {
    fn default() -> Self {
        Self {
            lost_after_s: LOST_AFTER_S,
            replace: true,
            stop_on_client_after_s: None,
            reconcile: Reconcile::default(),
        }
    }
}

impl Disconnect {
    /// Nothing differs from a block left out.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Reads the block; what does not read is a problem and counts as left out.
pub(super) fn disconnect(node: &Node, place: &Place, problems: &mut Problems) -> Option<Disconnect> {
    let fields = Fields::open(node, place, DISCONNECT_FIELDS, problems)?;
    let default = Disconnect::default();
    let lost_after = fields.optional("lost_after").and_then(|(node, place)| time(node, &place, problems));
    let stop = fields.optional("stop_on_client_after").and_then(|(node, place)| time(node, &place, problems));
    let replace = fields.optional("replace").and_then(|(node, place)| {
        let remedy = "write `replace: true` or `replace: false`";
        fields::parsed::<bool>(node, &place, remedy, problems)
    });
    let reconcile = fields.optional("reconcile").and_then(|(node, place)| reconcile(node, &place, problems));
    Some(Disconnect {
        lost_after_s: lost_after.unwrap_or(default.lost_after_s),
        replace: replace.unwrap_or(default.replace),
        stop_on_client_after_s: stop,
        reconcile: reconcile.unwrap_or_default(),
    })
}

fn time(node: &Node, place: &Place, problems: &mut Problems) -> Option<u32> {
    let remedy = "write a time from 5s to 7d, for instance `30s` or `5m`";
    let Seconds(seconds) = fields::parsed(node, place, remedy, problems)?;
    if (LEAST_S..=MOST_S).contains(&seconds) {
        return Some(seconds);
    }
    problems.add(place, format!("{seconds} s is outside of {LEAST_S} s to 7 days"), remedy);
    None
}

fn reconcile(node: &Node, place: &Place, problems: &mut Problems) -> Option<Reconcile> {
    match fields::text(node, place, problems)? {
        "keep_original" => Some(Reconcile::KeepOriginal),
        "keep_replacement" => Some(Reconcile::KeepReplacement),
        other => {
            let problem = format!("{:?} is no way to reconcile", excerpt(other));
            problems.add(place, problem, "write `keep_original` or `keep_replacement`");
            None
        }
    }
}
