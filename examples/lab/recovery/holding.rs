//! What nodes hold of ours, seen from outside, and how two looks differ.
//!
//! Each thing has a content (what it is, with its limits or rates) and an identity (which one it is: a container's
//! id and start, a kernel object's handle). After a restart of a daemon both have to be as before; after a power
//! cut the content has to be, and the identity cannot.

use super::{containers, kernel};
use crate::lab::Node;
use anyhow::Result;
use std::collections::BTreeMap;
use std::fmt;

/// The kind of containers.
pub(super) const CONTAINER: &str = "container";

/// One container or kernel object of a node, by what it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Thing {
    pub(super) node: String,
    /// `container`, `class`, `element`, `rule`, `route`, …
    pub(super) kind: &'static str,
    pub(super) content: String,
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.node, self.kind, self.content)
    }
}

/// Content -> identity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Holding(BTreeMap<Thing, String>);

impl Holding {
    /// Everything on these nodes.
    pub(super) fn of<'a>(nodes: impl IntoIterator<Item = &'a Node<'a>>) -> Result<Self> {
        let mut holding = Self::default();
        for node in nodes {
            for (kind, content, identity) in containers::of(node)?.into_iter().chain(kernel::of(node)?) {
                let thing = Thing { node: node.spec.name.clone(), kind, content };
                holding.0.insert(thing, identity);
            }
        }
        Ok(holding)
    }

    /// How many things of a kind there are.
    pub(super) fn count(&self, kind: &str) -> usize {
        self.0.keys().filter(|thing| thing.kind == kind).count()
    }

    /// `5 containers, 9 classes, …`, for people.
    pub(super) fn summary(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for thing in self.0.keys() {
            *counts.entry(thing.kind).or_default() += 1;
        }
        counts.iter().map(|(kind, count)| format!("{kind} {count}")).collect::<Vec<_>>().join(", ")
    }

    /// The same after an address became another one.
    pub(super) fn renamed(&self, old: &str, new: &str) -> Self {
        let rename = |thing: &Thing| Thing { content: thing.content.replace(old, new), ..thing.clone() };
        Self(self.0.iter().map(|(thing, identity)| (rename(thing), identity.clone())).collect())
    }

    /// What became of this in `after`.
    pub(super) fn until(&self, after: &Self) -> Difference {
        let beyond = |one: &Self, other: &Self| -> Vec<Thing> {
            one.0.keys().filter(|thing| !other.0.contains_key(thing)).cloned().collect()
        };
        let renewed =
            self.0.iter().filter(|(thing, identity)| after.0.get(thing).is_some_and(|now| now != *identity));
        Difference {
            missing: beyond(self, after),
            new: beyond(after, self),
            renewed: renewed.map(|(thing, _)| thing.clone()).collect(),
        }
    }
}

/// How two looks differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) missing: Vec<Thing>,
    pub(super) new: Vec<Thing>,
    /// The same content, made anew.
    pub(super) renewed: Vec<Thing>,
}

impl Difference {
    /// The part about what satisfies `wanted`.
    pub(super) fn only(mut self, wanted: impl Fn(&Thing) -> bool) -> Self {
        for things in [&mut self.missing, &mut self.new, &mut self.renewed] {
            things.retain(&wanted);
        }
        self
    }

    /// Things that are not what they were.
    pub(super) fn contents(&self) -> usize {
        self.missing.len() + self.new.len()
    }

    /// Things that are not what or which they were.
    pub(super) fn all(&self) -> usize {
        self.contents() + self.renewed.len()
    }

    /// The part about containers, and the part about the kernel.
    pub(super) fn parts(&self) -> (usize, usize) {
        let containers = [&self.missing, &self.new, &self.renewed]
            .map(|things| things.iter().filter(|thing| thing.kind == CONTAINER).count());
        let containers: usize = containers.iter().sum();
        (containers, self.all() - containers)
    }

    /// Each difference on a line of its own.
    pub(super) fn print(&self) {
        for (word, things) in [("missing", &self.missing), ("new", &self.new), ("made anew", &self.renewed)] {
            things.iter().for_each(|thing| println!("  {word}: {thing}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(things: &[(&'static str, &str, &str)]) -> Holding {
        let thing = |kind, content: &str| Thing { node: "n1".to_owned(), kind, content: content.to_owned() };
        Holding(
            things
                .iter()
                .map(|(kind, content, identity)| (thing(kind, content), (*identity).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn what_is_gone_what_is_new_and_what_was_made_anew_differ() {
        let before =
            holding(&[("route", "a", ""), ("class", "rate 1", "leaf 1:"), (CONTAINER, "task", "id1")]);
        assert_eq!(before.until(&before), Difference::default());
        let after =
            holding(&[("route", "a", ""), ("class", "rate 2", "leaf 1:"), (CONTAINER, "task", "id2")]);
        let difference = before.until(&after);
        assert_eq!((difference.contents(), difference.all()), (2, 3));
        assert_eq!(difference.parts(), (1, 2));
        assert_eq!(difference.only(|thing| thing.kind == CONTAINER).all(), 1);
        assert_eq!(before.renamed("task", "job").until(&before).contents(), 2);
    }
}
