//! Reads the fields of a mapping: refuses what is unknown, doubled or empty, and types the rest.
//!
//! Every function notes its problems and answers `None` where nothing usable was written, so that
//! reading goes on and finds the other problems too.

use super::problems::{Place, Problems, nearest};
use super::tree::{Entry, Node, Value};
use std::collections::HashMap;
use std::fmt::Display;
use std::str::FromStr;

/// The longest text of a quantity, an image reference or a constraint, in bytes.
const TEXT_MAX: usize = 512;

/// Words that have a meaning in the job document, but that this version does not carry out. To read
/// and ignore them would promise something that does not happen.
const UNSUPPORTED: &[&str] = &["depends_on", "devices", "gpu", "healthcheck", "restart", "runtime"];

/// The entries of one mapping, each key once.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    pub(super) place: Place,
    entries: Vec<&'a Entry>,
}

impl<'a> Fields<'a> {
    /// The entries of `node`, whatever their names: doubled keys and empty values are told and left out.
    pub(super) fn any(node: &'a Node, place: &Place, problems: &mut Problems) -> Option<Self> {
        let Value::Map(all) = &node.value else {
            let problem = format!("is {}, a mapping is wanted", node.value.kind());
            problems.add(place, problem, "write `name: value`, one a line");
            return None;
        };
        let mut first_lines = HashMap::new();
        let mut entries = Vec::new();
        for entry in all {
            if let Some(first) = first_lines.get(entry.key.as_str()) {
                let problem = format!("is written twice, first on line {first}");
                problems.add(&place.field(&entry.key, entry.line), problem, "remove or rename one of them");
                continue;
            }
            first_lines.insert(entry.key.as_str(), entry.line);
            entries.push(entry);
        }
        Some(Self { place: place.clone(), entries })
    }

    /// The entries of `node`, all of them named in `known`.
    pub(super) fn open(
        node: &'a Node,
        place: &Place,
        known: &'static [&'static str],
        problems: &mut Problems,
    ) -> Option<Self> {
        let fields = Self::any(node, place, problems)?;
        for entry in &fields.entries {
            let key = entry.key.as_str();
            let here = place.field(key, entry.line);
            if known.contains(&key) {
                if matches!(entry.value.value, Value::Null) {
                    problems.add(&here, "has no value", "write one or remove the field");
                }
            } else if UNSUPPORTED.contains(&key) {
                problems.add(&here, "is not supported by this version", "remove it");
            } else if !problems.full() {
                let remedy = match nearest(key, known.iter().copied()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("remove it; known here: {}", known.join(", ")),
                };
                problems.add(&here, "is no known field", remedy);
            }
        }
        Some(fields)
    }

    /// Every entry with its place.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a Node, Place)> + '_ {
        self.entries
            .iter()
            .map(|entry| (entry.key.as_str(), &entry.value, self.place.field(&entry.key, line_of(entry))))
    }

    /// A field's value; none if it is absent or empty.
    pub(super) fn optional(&self, name: &str) -> Option<(&'a Node, Place)> {
        self.iter()
            .find(|(key, node, _)| *key == name && !matches!(node.value, Value::Null))
            .map(|(_, node, place)| (node, place))
    }

    /// A field's value; its absence is a problem, told on the line of the mapping.
    pub(super) fn required(
        &self,
        name: &str,
        remedy: &str,
        problems: &mut Problems,
    ) -> Option<(&'a Node, Place)> {
        if !self.has(name) {
            problems.add(&self.place.field(name, self.place.line), "is missing", remedy);
        }
        self.optional(name)
    }

    /// Whether the field is written at all.
    pub(super) fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == name)
    }
}

/// A single value shows its own line; a mapping or list that of its key.
fn line_of(entry: &Entry) -> usize {
    match entry.value.value {
        Value::Text(_) => entry.value.line,
        _ => entry.line,
    }
}

/// A text of any length.
pub(super) fn long_text<'a>(node: &'a Node, place: &Place, problems: &mut Problems) -> Option<&'a str> {
    match &node.value {
        Value::Text(text) if text.contains('\0') => {
            problems.add(place, "holds a NUL character", "remove it");
            None
        }
        Value::Text(text) => Some(text),
        other => {
            let problem = format!("is {}, a single value is wanted", other.kind());
            problems.add(place, problem, "write one value, in quotes if in doubt");
            None
        }
    }
}

/// A text of a length that fits a message.
pub(super) fn text<'a>(node: &'a Node, place: &Place, problems: &mut Problems) -> Option<&'a str> {
    let text = long_text(node, place, problems)?;
    if text.len() > TEXT_MAX {
        let problem = format!("has {} bytes, at most {TEXT_MAX} are read", text.len());
        problems.add(place, problem, "shorten it");
        return None;
    }
    Some(text)
}

/// A text that reads as a `T`.
pub(super) fn parsed<T>(node: &Node, place: &Place, remedy: &str, problems: &mut Problems) -> Option<T>
where
    T: FromStr<Err: Display>,
{
    match text(node, place, problems)?.parse() {
        Ok(value) => Some(value),
        Err(error) => {
            problems.add(place, error.to_string(), remedy);
            None
        }
    }
}

/// The items of a list of at most `max`, each with its place.
pub(super) fn list<'a>(
    node: &'a Node,
    place: &Place,
    max: usize,
    problems: &mut Problems,
) -> Option<Vec<(&'a Node, Place)>> {
    let Value::List(items) = &node.value else {
        let problem = format!("is {}, a list is wanted", node.value.kind());
        problems.add(place, problem, "write it as a list: `[one, two]`");
        return None;
    };
    if items.len() > max {
        let problem = format!("has {} items, at most {max} are allowed", items.len());
        problems.add(place, problem, "shorten the list");
        return None;
    }
    Some(items.iter().enumerate().map(|(index, item)| (item, place.item(index, item.line))).collect())
}
