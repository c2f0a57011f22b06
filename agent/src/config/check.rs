//! The values of the file, each read and held against its bounds; what is wrong is gathered.

use super::{CLASS_MAX, ConfigProblem, INTERFACE_NAME_MAX, Link, RawLink};
use edgeloom_common::ids::{NameError, NodeId};
use edgeloom_common::job::Taint;
use edgeloom_common::units::BitRate;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Gathers problems while the values are read.
#[derive(Default)]
pub(super) struct Check {
    pub(super) problems: Vec<ConfigProblem>,
}

impl Check {
    pub(super) fn taints(&mut self, written: &[String]) -> Vec<Taint> {
        let mut read = Vec::new();
        for (index, text) in written.iter().enumerate() {
            match text.parse() {
                Ok(taint) => read.push(taint),
                Err(source) => {
                    self.problems.push(ConfigProblem::Taint { key: format!("taints[{index}]"), source });
                }
            }
        }
        read
    }

    pub(super) fn name<T: std::str::FromStr<Err = NameError>>(
        &mut self,
        key: &str,
        value: &str,
    ) -> Option<T> {
        value
            .parse()
            .map_err(|source| self.problems.push(ConfigProblem::Name { key: key.to_owned(), source }))
            .ok()
    }

    pub(super) fn address(&mut self, key: String, value: &str) -> Option<Ipv4Addr> {
        match value.parse::<Ipv4Addr>() {
            Ok(address)
                if !address.is_unspecified() && !address.is_multicast() && !address.is_broadcast() =>
            {
                Some(address)
            }
            _ => {
                self.problems.push(ConfigProblem::Address { key, value: value.to_owned() });
                None
            }
        }
    }

    pub(super) fn interface(&mut self, key: &str, value: &str) {
        let allowed = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
        let fits = (1..=INTERFACE_NAME_MAX).contains(&value.len());
        if !fits || !value.chars().all(allowed) || value == "." || value == ".." {
            self.problems.push(ConfigProblem::Interface { key: key.to_owned(), value: value.to_owned() });
        }
    }

    pub(super) fn absolute(&mut self, key: &'static str, value: &Path) {
        if !value.is_absolute() {
            self.problems.push(ConfigProblem::RelativePath { key, value: value.to_owned() });
        }
    }

    pub(super) fn docker_socket(&mut self, value: &str) -> PathBuf {
        let path = value.strip_prefix("unix://").map(PathBuf::from).filter(|path| path.is_absolute());
        path.unwrap_or_else(|| {
            self.problems.push(ConfigProblem::Docker { value: value.to_owned() });
            PathBuf::new()
        })
    }

    pub(super) fn cgroup(&mut self, value: &str) {
        if value.is_empty() || value.starts_with('/') || value.split('/').any(|part| part == "..") {
            self.problems.push(ConfigProblem::Cgroup { value: value.to_owned() });
        }
    }

    pub(super) fn class(&mut self, value: &str) {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
        if !(1..=CLASS_MAX).contains(&value.len()) || !value.chars().all(allowed) {
            self.problems.push(ConfigProblem::Class { value: value.to_owned() });
        }
    }

    /// A name of ours: from the file, from joining, and the same if both have it.
    pub(super) fn own<T>(&mut self, key: &'static str, written: Option<&str>, joined: Option<&T>) -> Option<T>
    where
        T: std::str::FromStr<Err = NameError> + PartialEq + Clone + std::fmt::Display,
    {
        let Some(written) = written else {
            if joined.is_none() {
                self.problems.push(ConfigProblem::NotJoined { key });
            }
            return joined.cloned();
        };
        let name = self.name::<T>(key, written)?;
        if let Some(joined) = joined.filter(|joined| **joined != name) {
            let (written, joined) = (written.to_owned(), joined.to_string());
            self.problems.push(ConfigProblem::JoinedAs { key, written, joined });
        }
        Some(name)
    }

    pub(super) fn links(&mut self, raw: &[RawLink], own: Option<&NodeId>) -> Vec<Link> {
        let mut neighbours = BTreeSet::new();
        let mut links = Vec::new();
        for (index, raw) in raw.iter().enumerate() {
            let Some(link) = self.link(index, raw) else {
                continue;
            };
            let key = format!("link[{index}].neighbour");
            if own == Some(&link.neighbour) {
                self.problems.push(ConfigProblem::OwnNeighbour { key, node: link.neighbour.clone() });
            } else if !neighbours.insert(link.neighbour.clone()) {
                self.problems.push(ConfigProblem::Duplicate { key, value: link.neighbour.to_string() });
            }
            links.push(link);
        }
        self.unique_addresses(&links);
        links
    }

    fn link(&mut self, index: usize, raw: &RawLink) -> Option<Link> {
        let key = |field: &str| format!("link[{index}].{field}");
        let neighbour = self.name(&key("neighbour"), &raw.neighbour);
        self.interface(&key("interface"), &raw.interface);
        let address = raw.address.as_ref().map(|address| self.address(key("address"), address));
        let neighbour_address = self.address(key("neighbour_address"), &raw.neighbour_address);
        let capacity = raw.capacity.as_deref().map(str::parse::<BitRate>).transpose();
        let capacity = capacity
            .map_err(|source| self.problems.push(ConfigProblem::Rate { key: key("capacity"), source }))
            .ok()?;
        Some(Link {
            neighbour: neighbour?,
            interface: raw.interface.clone(),
            // One that does not read is a problem, none is not.
            address: address.map_or(Some(None), |address| address.map(Some))?,
            neighbour_address: neighbour_address?,
            capacity,
        })
    }

    /// Our own address may serve several links of one LAN; a neighbour's may not.
    fn unique_addresses(&mut self, links: &[Link]) {
        let own: BTreeSet<Ipv4Addr> = links.iter().filter_map(|link| link.address).collect();
        let mut seen = BTreeSet::new();
        for (index, link) in links.iter().enumerate() {
            if own.contains(&link.neighbour_address) || !seen.insert(link.neighbour_address) {
                let key = format!("link[{index}].neighbour_address");
                self.problems
                    .push(ConfigProblem::Duplicate { key, value: link.neighbour_address.to_string() });
            }
        }
    }
}
