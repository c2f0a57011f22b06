//! One table of a TOML file, from which fields are taken; what is left over is unknown.

use super::ConfigProblem;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use toml::{Table, Value};

/// A table, its path and its problems so far.
pub(super) struct Section {
    path: String,
    table: Table,
    problems: Vec<ConfigProblem>,
    /// The table itself is not there: said once, not for each of its fields.
    missing: bool,
}

impl Section {
    pub(super) fn root(table: Table) -> Self {
        Self { path: String::new(), table, problems: Vec::new(), missing: false }
    }

    /// A table that has to be there.
    pub(super) fn section(&mut self, key: &str) -> Self {
        let section = self.optional_section(key);
        if section.missing {
            self.refuse(key, format!("is missing; add a [{key}] section"));
        }
        section
    }

    /// A table that may be left out.
    pub(super) fn optional_section(&mut self, key: &str) -> Self {
        let (table, missing) = match self.table.remove(key) {
            Some(Value::Table(table)) => (table, false),
            None => (Table::new(), true),
            Some(_) => {
                self.refuse(key, format!("is no section; write [{key}]"));
                (Table::new(), true)
            }
        };
        Self { path: format!("{}{key}.", self.path), table, problems: Vec::new(), missing }
    }

    /// It is written in the file.
    pub(super) fn is_there(&self) -> bool {
        !self.missing
    }

    /// Notes a problem of a field.
    pub(super) fn refuse(&mut self, key: &str, problem: String) {
        self.problems.push(ConfigProblem { field: format!("{}{key}", self.path), problem });
    }

    /// A text that has to be there and not empty.
    pub(super) fn text(&mut self, key: &str, wanted: &str) -> Option<String> {
        match self.table.remove(key) {
            Some(Value::String(text)) if !text.is_empty() => return Some(text),
            Some(_) => self.refuse(key, format!("is not {wanted}")),
            None if self.missing => {}
            None => self.refuse(key, format!("is missing; write {wanted}")),
        }
        None
    }

    /// A text with a default.
    pub(super) fn text_or(&mut self, key: &str, default: &str) -> String {
        if self.table.contains_key(key) {
            self.text(key, "a text").unwrap_or_else(|| default.to_owned())
        } else {
            default.to_owned()
        }
    }

    /// Yes or no; no if left out.
    pub(super) fn flag(&mut self, key: &str) -> bool {
        match self.table.remove(key) {
            None => false,
            Some(Value::Boolean(flag)) => flag,
            Some(_) => {
                self.refuse(key, "is neither true nor false".to_owned());
                false
            }
        }
    }

    /// Whether any of these is written.
    pub(super) fn has_any(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.table.contains_key(*key))
    }

    /// A path that has to be there.
    pub(super) fn path(&mut self, key: &str) -> Option<PathBuf> {
        self.text(key, "a path").map(PathBuf::from)
    }

    /// A text that reads as a type.
    pub(super) fn parsed<T: FromStr<Err: ToString>>(&mut self, key: &str, wanted: &str) -> Option<T> {
        let text = self.text(key, wanted)?;
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.refuse(key, format!("{text:?} is not {wanted}: {}", error.to_string()));
                None
            }
        }
    }

    /// A list of texts, empty if left out.
    pub(super) fn texts(&mut self, key: &str) -> Vec<String> {
        let Some(value) = self.table.remove(key) else {
            return Vec::new();
        };
        value.try_into().unwrap_or_else(|_| {
            self.refuse(key, "is no list of texts".to_owned());
            Vec::new()
        })
    }

    /// A whole number with its unit; none if left out, or refused.
    pub(super) fn number(
        &mut self,
        key: &str,
        (unit, bounds, example): (&str, RangeInclusive<u32>, &str),
    ) -> Option<u32> {
        if !self.has_any(&[key]) {
            return None;
        }
        let text = self.text(key, &format!("a text such as \"{example}\""))?;
        let found = text.strip_suffix(unit).and_then(|number| number.parse().ok());
        let found = found.filter(|number| bounds.contains(number));
        if found.is_none() {
            let (least, most) = (bounds.start(), bounds.end());
            let problem =
                format!("{text:?} is not from {least}{unit} to {most}{unit}; write it as \"{example}\"");
            self.refuse(key, problem);
        }
        found
    }

    /// The problems of all sections; fields that nobody took are problems too.
    pub(super) fn finish(sections: impl IntoIterator<Item = Self>) -> Vec<ConfigProblem> {
        let mut problems = Vec::new();
        for mut section in sections {
            let unknown: Vec<_> = section.table.keys().cloned().collect();
            for key in unknown {
                section.refuse(&key, "is no field here; remove it or correct its spelling".to_owned());
            }
            problems.append(&mut section.problems);
        }
        problems
    }
}
