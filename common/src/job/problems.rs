//! Problems of a document: collected, each with its place and remedy, and handed out in line order.

use crate::view::ProblemItem;

/// So many problems are told one by one; a hostile document could hold a hundred thousand.
const PROBLEMS_MAX: usize = 50;

/// A quoted text is cut after so many characters.
const EXCERPT_MAX: usize = 80;

/// Where a value stands: its line, from 1, and its path, for instance `tasks.detect.resources.cpu`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    path: String,
}

impl Place {
    /// The document itself.
    pub(super) fn root(line: usize) -> Self {
        Self { line, path: String::new() }
    }

    /// A field of the mapping here.
    pub(super) fn field(&self, name: &str, line: usize) -> Self {
        let name = excerpt(name);
        let path = if self.path.is_empty() { name } else { format!("{}.{name}", self.path) };
        Self { line, path }
    }

    /// An item of the list here, counted from 0.
    pub(super) fn item(&self, index: usize, line: usize) -> Self {
        Self { line, path: format!("{}[{index}]", self.path) }
    }

    /// A problem with what stands here.
    pub(super) fn problem(&self, problem: impl Into<String>, remedy: impl Into<String>) -> ProblemItem {
        ProblemItem {
            line: self.line,
            field: self.path.clone(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

/// All problems found so far.
#[derive(Debug, Default)]
pub(super) struct Problems {
    items: Vec<ProblemItem>,
    untold: usize,
}

impl Problems {
    /// Notes a problem with what stands at `place`.
    pub(super) fn add(&mut self, place: &Place, problem: impl Into<String>, remedy: impl Into<String>) {
        if self.full() {
            self.untold += 1;
        } else {
            self.items.push(place.problem(problem, remedy));
        }
    }

    /// True when further problems are only counted, so that costly advice can be spared.
    pub(super) fn full(&self) -> bool {
        self.items.len() >= PROBLEMS_MAX
    }

    /// The accepted value if there was no problem, else every problem in line order.
    pub(super) fn finish<T>(mut self, accepted: Option<T>) -> Result<T, Vec<ProblemItem>> {
        match accepted {
            Some(value) if self.items.is_empty() => Ok(value),
            _ => {
                self.items.sort_by_key(|item| item.line);
                if self.untold > 0 {
                    let problem = format!("and {} further problems", self.untold);
                    self.items.push(Place::root(0).problem(problem, "mend the ones above first"));
                }
                Err(self.items)
            }
        }
    }
}

/// A text as a message may quote it: short, without control characters.
pub(super) fn excerpt(text: &str) -> String {
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut short: String = text.chars().take(EXCERPT_MAX).map(clean).collect();
    if short.len() < text.len() && text.chars().nth(EXCERPT_MAX).is_some() {
        short.push_str("...");
    }
    short
}

/// The candidate that was probably meant: at most a third of its characters differ.
pub(super) fn nearest<'a>(written: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if written.len() > crate::ids::NAME_MAX {
        return None;
    }
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(written, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3).min(3))
        .min()
        .map(|(_, candidate)| candidate)
}
