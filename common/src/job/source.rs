//! The source of a job: where its items come from and what makes them.

use super::document::{NAME_REMEDY, positive_bytes};
use super::fields::{self, Fields};
use super::problems::{Place, Problems, excerpt};
use super::program::{self, PROGRAM_FIELDS};
use super::tree::Node;
use super::words::PerSecond;
use super::{Program, Source};

const SOURCE_FIELDS: &[&str] =
    &["node", "item", "rate", "from", "image", "command", "environment", "resources", "secrets"];

/// Reads the `source` of a job.
pub(super) fn source(node: &Node, place: &Place, problems: &mut Problems) -> Option<Source> {
    let fields = Fields::open(node, place, SOURCE_FIELDS, problems)?;
    let host = fields
        .required("node", "name the node where the items come from", problems)
        .and_then(|(node, place)| fields::parsed(node, &place, NAME_REMEDY, problems));
    let item = fields
        .required("item", "write the bytes of one item, for instance `item: 600KB`", problems)
        .and_then(|(node, place)| positive_bytes(node, &place, problems));
    let rate = fields.optional("rate").and_then(|(node, place)| {
        fields::parsed::<PerSecond>(node, &place, "write items a second, for instance `30/s`", problems)
    });
    let container = source_container(&fields, problems);
    Some(Source { node: host?, item: item?, rate_per_s: rate.map(|rate| rate.0), container })
}

/// `from: task` runs an image; `from: host` is a process that runs already. Left out, an image decides.
fn source_container(fields: &Fields<'_>, problems: &mut Problems) -> Option<Program> {
    let runs_image = match fields.optional("from") {
        None => fields.has("image"),
        Some((node, place)) => match fields::text(node, &place, problems)? {
            "task" => true,
            "host" => false,
            other => {
                let problem = format!("{:?} is no kind of source", excerpt(other));
                problems.add(&place, problem, "write `from: task` or `from: host`");
                return None;
            }
        },
    };
    if runs_image {
        return program::program(fields, problems);
    }
    for (key, _, place) in fields.iter().filter(|(key, ..)| PROGRAM_FIELDS.contains(key)) {
        let problem = format!("a source on the host runs no container, so `{key}` means nothing");
        problems.add(&place, problem, "remove it, or write `from: task` with an `image`");
    }
    None
}
