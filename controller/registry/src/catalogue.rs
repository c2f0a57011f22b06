//! What is known of all registries: which tags there are, what each names, and since when that is known.
//!
//! In: answers of registries. Out: images for whoever asks, lines for the cache. Invariant: a tag that cannot be
//! asked for keeps what was known of it, with the reason; what is in the table has been verified.

use crate::cache::{Line, Record};
use crate::client::Found;
use crate::rota::Outcome;
use crate::table::{Extent, Table};
use edgeloom_common::digest::Digest;
use edgeloom_common::registry::RegistryHost;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Tags of one registry that are kept.
pub(crate) const TAGS_MAX: usize = 50_000;

/// A tag of a repository of a registry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) host: RegistryHost,
    pub(crate) repository: Arc<str>,
    pub(crate) tag: Arc<str>,
}

/// What is known of a tag.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tag {
    /// What it named when it was asked for last with success.
    pub(crate) digest: Option<Digest>,
    /// Where it is something else than the digest.
    pub(crate) etag: Option<Box<str>>,
    /// When that was.
    pub(crate) seen_ms: u64,
    /// Why it is not sound, or not known.
    pub(crate) problem: Option<Box<str>>,
}

impl Tag {
    /// The entity tag of what is known, if that is sound.
    pub(crate) fn entity(&self) -> Option<String> {
        let digest = self.digest.filter(|_| self.problem.is_none())?;
        Some(self.etag.as_ref().map_or_else(|| format!("\"{digest}\""), ToString::to_string))
    }
}

/// How a registry is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Since when it is out of reach, and why.
    pub(crate) away: Option<(u64, String)>,
    /// Why not all of it is watched.
    pub(crate) limit: Option<String>,
    /// It tells by itself what changes.
    pub(crate) notifies: bool,
}

/// What is known of one registry.
#[derive(Debug, Default)]
pub(crate) struct Host {
    pub(crate) repositories: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Tag>>,
    pub(crate) standing: Standing,
    tags: usize,
}

/// What is known of all.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    pub(crate) table: Table,
    pub(crate) hosts: BTreeMap<RegistryHost, Host>,
    /// For the cache; nothing is gathered without one.
    lines: Option<Vec<u8>>,
}

impl Catalogue {
    /// Gathers lines for a cache from now on.
    pub(crate) fn with_cache(mut self) -> Self {
        self.lines = Some(Vec::new());
        self
    }

    /// Gathers none any more.
    pub(crate) fn without_cache(&mut self) {
        self.lines = None;
    }

    pub(crate) fn tag(&self, place: &Place) -> Option<&Tag> {
        self.hosts.get(&place.host)?.repositories.get(&place.repository)?.get(&place.tag)
    }

    /// Whether some tag of the repository names the image.
    pub(crate) fn has(&self, host: &RegistryHost, repository: &str, digest: Digest) -> bool {
        let tags = self.hosts.get(host).and_then(|known| known.repositories.get(repository));
        tags.is_some_and(|tags| tags.values().any(|tag| tag.digest == Some(digest) && tag.problem.is_none()))
    }

    /// The tag named this when it was asked for; says whether that is new. Does nothing for an unknown image.
    pub(crate) fn confirm(&mut self, place: &Place, digest: Digest, now_ms: u64) -> Outcome {
        let same = self.tag(place).filter(|tag| tag.digest == Some(digest));
        let etag = same.and_then(|tag| tag.etag.clone());
        self.name(place, (digest, etag), now_ms)
    }

    fn name(&mut self, place: &Place, (digest, etag): (Digest, Option<Box<str>>), now_ms: u64) -> Outcome {
        if !self.table.contains(&digest) {
            return Outcome::Failed;
        }
        let Some(tag) = self.tag_mut(place) else { return Outcome::Failed };
        let before = (tag.digest, tag.etag.take());
        *tag = Tag { digest: Some(digest), etag, seen_ms: now_ms, problem: None };
        if before == (tag.digest, tag.etag.clone()) {
            return Outcome::Same;
        }
        if let Some(before) = before.0 {
            self.table.untagged(&before);
        }
        self.table.tagged(&digest);
        self.write_tag(place);
        if before.0 == Some(digest) { Outcome::Same } else { Outcome::Changed }
    }

    /// Keeps an image that a tag names, whole or with its flaw.
    pub(crate) fn found(&mut self, place: &Place, found: Found, now_ms: u64) -> Outcome {
        if !self.table.has_room() {
            self.fail(place, "the registries have more images than the catalogue keeps");
            return Outcome::Failed;
        }
        self.keep(&found);
        let outcome = self.name(place, (found.digest, found.etag.map(Into::into)), now_ms);
        if let Some(flaw) = found.flaw {
            self.fail(place, &flaw.to_string());
        }
        outcome
    }

    /// Keeps an image that no tag has to name. One of which a part is broken is not kept over a restart.
    pub(crate) fn keep(&mut self, found: &Found) {
        let extent = if found.flaw.is_none() { Extent::Whole } else { Extent::Part };
        let new = self.table.keep(found.digest, (&found.platforms, extent));
        let Some(lines) = &mut self.lines else { return };
        for (id, layer) in new {
            Line::of(&Record::Layer { id: id.0, layer }).append_to(lines);
        }
        if self.table.is_whole(&found.digest) {
            Line::of(&Record::image(found.digest, &self.table)).append_to(lines);
        }
    }

    /// The tag could not be asked for, or what it names is broken.
    pub(crate) fn fail(&mut self, place: &Place, reason: &str) {
        if let Some(tag) = self.tag_mut(place) {
            tag.problem = Some(reason.into());
        }
    }

    /// The tag is of no interest any more.
    pub(crate) fn remove(&mut self, place: &Place) {
        let Some(host) = self.hosts.get_mut(&place.host) else { return };
        let Some(tags) = host.repositories.get_mut(&place.repository) else { return };
        let removed = tags.remove(&place.tag);
        if tags.is_empty() {
            host.repositories.remove(&place.repository);
        }
        host.tags -= usize::from(removed.is_some());
        if let Some(digest) = removed.and_then(|tag| tag.digest) {
            self.table.untagged(&digest);
            let (registry, repository, tag) =
                (place.host.clone(), place.repository.to_string(), place.tag.to_string());
            self.write(|| Record::Gone { registry, repository, tag });
        }
    }

    /// The registry is of no interest any more.
    pub(crate) fn remove_host(&mut self, host: &RegistryHost) {
        for place in self.places(host) {
            self.remove(&place);
        }
        self.hosts.remove(host);
    }

    /// All tags of a registry.
    pub(crate) fn places(&self, host: &RegistryHost) -> BTreeSet<Place> {
        let repositories = self.hosts.get(host).into_iter().flat_map(|known| &known.repositories);
        let place = |repository: &Arc<str>, tag: &Arc<str>| Place {
            host: host.clone(),
            repository: repository.clone(),
            tag: tag.clone(),
        };
        repositories
            .flat_map(|(repository, tags)| tags.keys().map(move |tag| place(repository, tag)))
            .collect()
    }

    pub(crate) fn standing(&mut self, host: &RegistryHost) -> &mut Standing {
        &mut self.hosts.entry(host.clone()).or_default().standing
    }

    /// What the cache does not have yet.
    pub(crate) fn take_lines(&mut self) -> Vec<u8> {
        self.lines.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Everything, as lines of a new cache.
    pub(crate) fn all_lines(&self) -> Vec<u8> {
        let mut lines = Vec::new();
        for (id, layer) in self.table.layers() {
            Line::of(&Record::Layer { id: id.0, layer }).append_to(&mut lines);
        }
        for digest in self.table.digests() {
            Line::of(&Record::image(digest, &self.table)).append_to(&mut lines);
        }
        for place in self.hosts.keys().flat_map(|host| self.places(host)) {
            if let Some(record) = self.tag(&place).and_then(|tag| Record::tag(&place, tag)) {
                Line::of(&record).append_to(&mut lines);
            }
        }
        lines
    }

    /// Takes in what a cache holds, in its order.
    pub(crate) fn restore(&mut self, records: impl Iterator<Item = Record>) {
        let mut layers = BTreeMap::new();
        for record in records {
            match record {
                Record::Layer { id, layer } => drop(layers.insert(id, layer)),
                Record::Image { digest, platforms } => {
                    let platforms =
                        platforms.into_iter().map(|it| it.with(&layers)).collect::<Option<Vec<_>>>();
                    platforms
                        .into_iter()
                        .for_each(|platforms| drop(self.table.keep(digest, (&platforms, Extent::Whole))));
                }
                Record::Tag { registry, repository, tag, digest, etag, seen_ms } => {
                    let place = Place { host: registry, repository: repository.into(), tag: tag.into() };
                    self.name(&place, (digest, etag.map(Into::into)), seen_ms);
                }
                Record::Gone { registry, repository, tag } => {
                    self.remove(&Place { host: registry, repository: repository.into(), tag: tag.into() });
                }
            }
        }
    }

    /// The tag's entry, made where there is room for one.
    fn tag_mut(&mut self, place: &Place) -> Option<&mut Tag> {
        let host = self.hosts.entry(place.host.clone()).or_default();
        let tags = host.repositories.entry(place.repository.clone()).or_default();
        if !tags.contains_key(&place.tag) {
            if host.tags >= TAGS_MAX {
                return None;
            }
            host.tags += 1;
        }
        Some(tags.entry(place.tag.clone()).or_default())
    }

    fn write_tag(&mut self, place: &Place) {
        if let Some(record) = self.tag(place).and_then(|tag| Record::tag(place, tag)) {
            self.write(|| record);
        }
    }

    fn write(&mut self, record: impl FnOnce() -> Record) {
        if let Some(lines) = &mut self.lines {
            Line::of(&record()).append_to(lines);
        }
    }
}

#[cfg(test)]
mod tests;
