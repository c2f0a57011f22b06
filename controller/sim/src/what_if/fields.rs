//! Fields of a TOML file with their lines; what is wrong with one never hides what is wrong with the next.

use edgeloom_common::view::ProblemItem;
use std::fmt::Display;
use std::ops::Range;
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Nobody reads more.
const PROBLEMS_MAX: usize = 100;

/// A text with the problems found in it so far.
pub(super) struct Reading<'a> {
    text: &'a str,
    problems: Vec<ProblemItem>,
}

/// One table, as `nodes[2]`.
pub(super) struct Fields<'t> {
    table: &'t DeTable<'t>,
    span: Range<usize>,
    pub(super) path: String,
}

/// A value with where it is.
pub(super) type Found<'t> = (&'t Spanned<DeValue<'t>>, String);

impl<'a> Reading<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, problems: Vec::new() }
    }

    pub(super) fn add(&mut self, span: &Range<usize>, field: &str, problem: String, remedy: &str) {
        if self.problems.len() >= PROBLEMS_MAX {
            return;
        }
        let before = self.text.as_bytes().iter().take(span.start);
        let line = before.filter(|byte| **byte == b'\n').count() + 1;
        self.problems.push(ProblemItem { line, field: field.to_owned(), problem, remedy: remedy.to_owned() });
    }

    /// The value if there was no problem, else every problem in the order of the lines.
    pub(super) fn finish<T>(mut self, value: T) -> Result<T, Vec<ProblemItem>> {
        self.problems.sort_by(|x, y| (x.line, &x.field).cmp(&(y.line, &y.field)));
        if self.problems.is_empty() { Ok(value) } else { Err(self.problems) }
    }

    /// A table that holds nothing but `known` fields.
    pub(super) fn open<'t>(&mut self, (value, path): Found<'t>, known: &[&str]) -> Option<Fields<'t>> {
        let Some(table) = value.get_ref().as_table() else {
            let problem = format!("{}, not a table", value.get_ref().type_str());
            self.add(&value.span(), &path, problem, "write { name = value, … }");
            return None;
        };
        Some(self.fields(table, (value.span(), path), known))
    }

    /// As `open`, of the root.
    pub(super) fn fields<'t>(
        &mut self,
        table: &'t DeTable<'t>,
        (span, path): (Range<usize>, String),
        known: &[&str],
    ) -> Fields<'t> {
        let fields = Fields { table, span, path };
        for key in table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())) {
            let remedy = format!("one of: {}", known.join(", "));
            self.add(&key.span(), &fields.at(key.get_ref()), "unknown".to_owned(), &remedy);
        }
        fields
    }

    /// As `parsed`, where none is a problem too.
    pub(super) fn required<T>(&mut self, fields: &Fields<'_>, key: &str, remedy: &str) -> Option<T>
    where
        T: FromStr<Err: Display>,
    {
        if fields.value(key).is_none() {
            self.missing(fields, key, remedy);
        }
        self.parsed(fields, key, remedy)
    }

    /// A text that reads as `T`.
    pub(super) fn parsed<T>(&mut self, fields: &Fields<'_>, key: &str, remedy: &str) -> Option<T>
    where
        T: FromStr<Err: Display>,
    {
        let (value, path) = fields.value(key)?;
        let Some(text) = value.get_ref().as_str() else {
            self.add(&value.span(), &path, format!("{}, not a text", value.get_ref().type_str()), remedy);
            return None;
        };
        let refused = |error: T::Err| self.add(&value.span(), &path, error.to_string(), remedy);
        text.parse().map_err(refused).ok()
    }

    /// A number within bounds.
    pub(super) fn number(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        (least, most): (f64, f64),
    ) -> Option<f64> {
        let (value, path) = fields.value(key)?;
        let number = match value.get_ref() {
            DeValue::Integer(integer) => integer.as_str().parse().ok(),
            DeValue::Float(float) => float.as_str().parse().ok(),
            _ => None,
        };
        let found: Option<f64> = number.filter(|number| (least..=most).contains(number));
        if found.is_none() {
            let remedy = format!("write a number from {least} to {most}");
            self.add(&value.span(), &path, "no number within its bounds".to_owned(), &remedy);
        }
        found
    }

    /// Says that a field is missing.
    pub(super) fn missing(&mut self, fields: &Fields<'_>, key: &str, remedy: &str) {
        self.add(&fields.span, &fields.at(key), "missing".to_owned(), remedy);
    }

    /// The members of a list; none of what is no list.
    pub(super) fn list<'t>(&mut self, fields: &Fields<'t>, key: &str, remedy: &str) -> Vec<Found<'t>> {
        let Some((value, path)) = fields.value(key) else { return Vec::new() };
        let Some(array) = value.get_ref().as_array() else {
            self.add(&value.span(), &path, format!("{}, not a list", value.get_ref().type_str()), remedy);
            return Vec::new();
        };
        array.iter().enumerate().map(|(at, member)| (member, format!("{path}[{at}]"))).collect()
    }
}

impl<'t> Fields<'t> {
    pub(super) fn value(&self, key: &str) -> Option<Found<'t>> {
        let (_, value) = self.table.iter().find(|(found, _)| found.get_ref().as_ref() == key)?;
        Some((value, self.at(key)))
    }

    pub(super) fn span(&self) -> &Range<usize> {
        &self.span
    }

    fn at(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}
