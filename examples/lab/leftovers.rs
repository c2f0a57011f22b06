//! What is on a node beyond what was there before: containers, networks, rules, classes, routes.
//!
//! A snapshot counts normalised lines for each kind; numbers that change by themselves are left out.

use crate::command::{run, within};
use crate::docker;
use crate::lab::Node;
use anyhow::Result;
use serde_json::Value;
use std::collections::BTreeMap;

/// Kind (`containers`, `classes`, `map_entries`, ...) -> line -> how often.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot(BTreeMap<&'static str, BTreeMap<String, usize>>);

const VOLATILE: [&str; 8] =
    ["handle", "index", "packets", "bytes", "ifindex", "expires", "flags", "metainfo"];

impl Snapshot {
    pub(crate) fn take(node: &Node<'_>) -> Result<Self> {
        let mut snapshot = Self::default();
        let ask = |words: &[&str]| -> Result<Value> {
            let words = within(&node.namespace(), words);
            let text = run(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
            Ok(if text.trim().is_empty() { Value::Null } else { serde_json::from_str(&text)? })
        };
        for object in rows(&ask(&["nft", "-j", "list", "ruleset"])?["nftables"]) {
            snapshot.add_nft(object);
        }
        for (kind, words) in [
            ("routes", &["ip", "-j", "-4", "route", "show", "table", "all"][..]),
            ("rules", &["ip", "-j", "-4", "rule"][..]),
            ("qdiscs", &["tc", "-j", "qdisc", "show"][..]),
        ] {
            for row in rows(&ask(words)?) {
                snapshot.add(kind, row);
            }
        }
        for row in rows(&ask(&["ip", "-j", "link"])?) {
            let name = row["ifname"].as_str().unwrap_or_default();
            snapshot.add("links", &Value::from(name));
            // `tc` answers with text for classes, whatever it is told.
            let words = within(&node.namespace(), &["tc", "class", "show", "dev", name]);
            let classes = run(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
            for class in classes.lines().filter(|line| line.starts_with("class ")) {
                let id: Vec<&str> = class.split_whitespace().take(3).collect();
                snapshot.add_text("classes", format!("{name} {}", id.join(" ")));
            }
        }
        for row in rows(&docker::ask(&node.docker_socket(), "/containers/json?all=1")?) {
            snapshot.add("containers", &row["Names"]);
        }
        for row in rows(&docker::ask(&node.docker_socket(), "/networks")?) {
            snapshot.add("networks", &row["Name"]);
        }
        Ok(snapshot)
    }

    fn add_nft(&mut self, object: &Value) {
        for entry in rows(&object["map"]["elem"]) {
            self.add_text("map_entries", format!("{} {entry}", object["map"]["name"]));
        }
        let mut object = object.clone();
        if let Some(map) = object.get_mut("map").and_then(Value::as_object_mut) {
            map.remove("elem");
        }
        self.add("nft", &object);
    }

    fn add(&mut self, kind: &'static str, row: &Value) {
        let mut row = row.clone();
        normalise(&mut row);
        self.add_text(kind, row.to_string());
    }

    fn add_text(&mut self, kind: &'static str, line: String) {
        *self.0.entry(kind).or_default().entry(line).or_default() += 1;
    }

    /// What there is beyond `before`, by kind.
    pub(crate) fn beyond(&self, before: &Self) -> BTreeMap<&'static str, Vec<String>> {
        let mut left: BTreeMap<_, Vec<String>> = BTreeMap::new();
        for (kind, lines) in &self.0 {
            for (line, count) in lines {
                let had = before.0.get(kind).and_then(|lines| lines.get(line)).copied().unwrap_or(0);
                let more = count.saturating_sub(had);
                left.entry(*kind).or_default().extend(std::iter::repeat_n(line.clone(), more));
            }
        }
        left
    }
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn normalise(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !VOLATILE.contains(&key.as_str()));
            map.values_mut().for_each(normalise);
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        _ => {}
    }
}
