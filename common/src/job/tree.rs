//! A document as a tree in which every value and key knows its line.
//!
//! Takes the bytes of one YAML or JSON document (JSON is YAML's flow style) and answers with its root
//! or with the one reason why it can't be read at all. Types are left to the reader: `0.5`, `"0.5"` and
//! `true` are all text here. Bounded: size and depth are limited, and aliases, which would let
//! a small text stand for a huge tree, are refused.

use super::problems::{Place, excerpt};
use crate::view::ProblemItem;
use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde::de::IgnoredAny;
use std::borrow::Cow;

/// The largest document, in bytes.
pub const DOCUMENT_MAX_BYTES: usize = 1 << 20;

/// The deepest nesting of lists and mappings; a job needs five.
pub(super) const DEPTH_MAX: usize = 16;

/// A value and the line it starts on, from 1.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    /// Nothing, `~` or `null`.
    Null,
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// One `key: value` of a mapping, in the order written; duplicates are kept for the reader to refuse.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) line: usize,
    pub(super) value: Node,
}

impl Value {
    /// What it is, for people.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "empty",
            Self::Text(_) => "a single value",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

/// Reads the one document of `text`.
pub(super) fn read(text: &[u8]) -> Result<Node, ProblemItem> {
    if text.len() > DOCUMENT_MAX_BYTES {
        return Err(Place::root(0).problem(
            format!("the document has {} bytes, at most {DOCUMENT_MAX_BYTES} are read", text.len()),
            "split it into several jobs",
        ));
    }
    let text = std::str::from_utf8(text).map_err(|error| {
        let before = &text[..error.valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Place::root(line).problem("the document is not UTF-8 text", "save it as UTF-8")
    })?;
    let text = surrogates_joined(text);
    let mut builder = Builder::default();
    for event in Parser::new_from_str(&text) {
        let (event, span) = event.map_err(|error| {
            let problem = format!("this is not readable as YAML: {}", excerpt(error.info()));
            Place::root(error.marker().line()).problem(problem, "correct the text at or just above this line")
        })?;
        builder.take(event, span)?;
    }
    builder.root.ok_or_else(|| {
        Place::root(1).problem("the document is empty", "write a job, starting with `kind: Job`")
    })
}

/// JSON may write a character beyond U+FFFF as two escapes (RFC 8259, section 7), YAML may not: that is the
/// one difference that matters here. Other texts are left as they are.
fn surrogates_joined(text: &str) -> Cow<'_, str> {
    let is_json = || serde_json::from_str::<IgnoredAny>(text).is_ok();
    if !text.contains("\\u") || !text.trim_start().starts_with('{') || !is_json() {
        return Cow::Borrowed(text);
    }
    let mut joined = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        joined.push_str(&rest[..at]);
        rest = &rest[at..];
        // In JSON a backslash escapes one ASCII character, a `u` takes four more.
        let (plain, used) = match surrogate_pair(rest) {
            Some(character) => (Cow::Owned(character.to_string()), 12),
            None => (Cow::Borrowed(&rest[..2]), 2),
        };
        joined.push_str(&plain);
        rest = &rest[used..];
    }
    joined.push_str(rest);
    Cow::Owned(joined)
}

/// The character of `\uD83D\uDE00` at the start of a text.
fn surrogate_pair(text: &str) -> Option<char> {
    let unit = |from: usize| {
        let digits = text.get(from..from + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let high = unit(0).filter(|unit| (0xd800..0xdc00).contains(unit))?;
    char::decode_utf16([high, unit(6)?]).next()?.ok()
}

/// A list or mapping whose end has not come yet.
#[derive(Debug)]
struct Open {
    line: usize,
    container: Container,
}

#[derive(Debug)]
enum Container {
    List(Vec<Node>),
    /// The entries so far, and the key that waits for its value.
    Map(Vec<Entry>, Option<(String, usize)>),
}

#[derive(Debug, Default)]
struct Builder {
    open: Vec<Open>,
    root: Option<Node>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), ProblemItem> {
        let line = span.start.line();
        refuse_references(&event, line)?;
        match event {
            Event::DocumentStart(_) if self.root.is_some() => Err(Place::root(line).problem(
                "a second document starts here",
                "post each document by itself, without `---` between",
            )),
            Event::SequenceStart(..) => self.push(line, Container::List(Vec::new())),
            Event::MappingStart(..) => self.push(line, Container::Map(Vec::new(), None)),
            Event::Scalar(text, style, ..) => {
                let null = style == ScalarStyle::Plain && matches!(&*text, "" | "~" | "null");
                let value = if null { Value::Null } else { Value::Text(text.into_owned()) };
                self.add(Node { line, value })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else {
                    return Ok(());
                };
                let value = match open.container {
                    Container::List(items) => Value::List(items),
                    Container::Map(entries, _) => Value::Map(entries),
                };
                self.add(Node { line: open.line, value })
            }
            _ => Ok(()),
        }
    }

    fn push(&mut self, line: usize, container: Container) -> Result<(), ProblemItem> {
        if self.open.len() >= DEPTH_MAX {
            return Err(Place::root(line).problem(
                format!("lists and mappings nest deeper than {DEPTH_MAX}"),
                "a job document needs no such depth: check brackets and indentation",
            ));
        }
        self.open.push(Open { line, container });
        Ok(())
    }

    /// Puts a finished value where it belongs: the root, a list's end, or as key or value of a mapping.
    fn add(&mut self, node: Node) -> Result<(), ProblemItem> {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.container {
            Container::List(items) => items.push(node),
            Container::Map(entries, waiting) => match waiting.take() {
                Some((key, line)) => entries.push(Entry { key, line, value: node }),
                None => *waiting = Some(key_text(node)?),
            },
        }
        Ok(())
    }
}

fn key_text(node: Node) -> Result<(String, usize), ProblemItem> {
    match node.value {
        Value::Text(text) => Ok((text, node.line)),
        other => Err(Place::root(node.line)
            .problem(format!("a key is {}, not a name", other.kind()), "write `name: value`")),
    }
}

fn refuse_references(event: &Event<'_>, line: usize) -> Result<(), ProblemItem> {
    let refused = match event {
        Event::Alias(_) => Some("an alias (`*name`)"),
        Event::Scalar(_, _, anchor, _) | Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _)
            if *anchor != 0 =>
        {
            Some("an anchor (`&name`)")
        }
        Event::Scalar(.., Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
            Some("a tag (`!name`)")
        }
        _ => None,
    };
    match refused {
        Some(what) => Err(Place::root(line)
            .problem(format!("{what} is not read here"), "write the value out where it is needed")),
        None => Ok(()),
    }
}
