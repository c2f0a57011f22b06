//! The `measure` block of a task: how the profiler runs it.

use super::Measure;
use super::fields::{self, Fields};
use super::problems::{Place, Problems, excerpt};
use super::program;
use super::tree::Node;

/// The most items of one run.
pub const ITEMS_MAX: u32 = 1_000_000;

const MEASURE_FIELDS: &[&str] = &["command", "items"];

/// Reads the block.
pub(super) fn measure(node: &Node, place: &Place, problems: &mut Problems) -> Option<Measure> {
    let fields = Fields::open(node, place, MEASURE_FIELDS, problems)?;
    let remedy = "write the arguments of a run that ends by itself, for instance `command: [\"measure\"]`";
    let command = fields.required("command", remedy, problems).and_then(|(node, place)| {
        let command = program::command(node, &place, problems)?;
        if command.is_empty() {
            problems.add(&place, "is an empty list", remedy);
        }
        Some(command)
    });
    let items = fields
        .required("items", "write how many items one run computes, for instance `items: 20`", problems)
        .and_then(|(node, place)| items(node, &place, problems));
    Some(Measure { command: command?, items: items? })
}

fn items(node: &Node, place: &Place, problems: &mut Problems) -> Option<u32> {
    let text = fields::text(node, place, problems)?;
    match text.parse() {
        Ok(items) if (1..=ITEMS_MAX).contains(&items) => Some(items),
        _ => {
            let problem = format!("{:?} is no number of items from 1 to {ITEMS_MAX}", excerpt(text));
            problems.add(place, problem, "write a whole number, for instance `items: 20`");
            None
        }
    }
}
