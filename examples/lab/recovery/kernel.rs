//! What a node's kernel holds of ours, as `nft`, `tc`, `ip` and `iptables` show it: nothing is asked from the agent.

use super::containers::Told;
use crate::command::{run, within};
use crate::lab::Node;
use anyhow::{Context, Result};
use serde_json::Value;

/// Priorities of our rules.
const PRIORITIES: std::ops::RangeInclusive<u64> = 4500..=4999;
/// Protocol of our routes.
const PROTOCOL: &str = "117";
/// Handle of our root qdisc.
const ROOT: &str = "4501:";
/// What changes by itself.
const COUNTERS: [&str; 6] = ["packets", "bytes", "direct_packets_stat", "drops", "overlimits", "metainfo"];
/// What tasks behind the bridge are reached by.
const BRIDGE_SETTINGS: [&str; 2] =
    ["/proc/sys/net/ipv4/conf/edgeloom0/proxy_arp", "/proc/sys/net/ipv4/neigh/edgeloom0/proxy_delay"];

pub(super) fn of(node: &Node<'_>) -> Result<Vec<Told>> {
    let mut told = Vec::new();
    for object in rows(&ask_json(node, &["nft", "-j", "list", "ruleset"])?["nftables"]) {
        told.extend(nft(object));
    }
    for rule in rows(&ask_json(node, &["ip", "-j", "-4", "rule"])?) {
        if rule["priority"].as_u64().is_some_and(|priority| PRIORITIES.contains(&priority)) {
            told.push(("rule", rule.to_string(), String::new()));
        }
    }
    let routes = ask_json(node, &["ip", "-j", "-4", "route", "show", "table", "all", "proto", PROTOCOL])?;
    told.extend(rows(&routes).iter().map(|route| ("route", route.to_string(), String::new())));
    told.extend(shaping(node)?);
    told.push(forwarding(&ask(node, &["iptables", "-S"])?));
    for path in BRIDGE_SETTINGS {
        // A node that no task was ever on has no bridge.
        if let Ok(value) = ask(node, &["cat", path]) {
            told.push(("setting", format!("{path} {}", value.trim()), String::new()));
        }
    }
    Ok(told)
}

fn ask(node: &Node<'_>, words: &[&str]) -> Result<String> {
    let words = within(&node.namespace(), words);
    run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn ask_json(node: &Node<'_>, words: &[&str]) -> Result<Value> {
    let text = ask(node, words)?;
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(&text).with_context(|| format!("the answer to `{}`", words.join(" ")))
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// An object of our table: the elements of a map each by itself, and the rest with its handle.
fn nft(object: &Value) -> Vec<Told> {
    let Some((kind, inner)) = object.as_object().and_then(|object| object.iter().next()) else {
        return Vec::new();
    };
    let table = if kind == "table" { &inner["name"] } else { &inner["table"] };
    if table != "edgeloom" {
        return Vec::new();
    }
    let mut inner = inner.clone();
    let handle = inner.as_object_mut().and_then(|inner| inner.remove("handle")).unwrap_or_default();
    let elements = inner.as_object_mut().and_then(|inner| inner.remove("elem")).unwrap_or_default();
    strip(&mut inner);
    let name = inner["name"].as_str().unwrap_or_default();
    let elements = rows(&elements).iter().map(|one| ("element", format!("{name} {one}"), String::new()));
    let mut told: Vec<Told> = elements.collect();
    told.push(("nft", format!("{kind} {inner}"), handle.to_string()));
    told
}

/// Whether the pool's packets pass the filter table. Docker makes no chains and drops nothing when it takes over
/// containers that it believes to be running; then our accept is not needed either.
fn forwarding(listing: &str) -> Told {
    let has = |start: &str| listing.lines().any(|line| line.starts_with(start));
    let ours = listing.lines().find(|line| line.starts_with("-A") && line.contains("--comment edgeloom"));
    let drops = has("-N DOCKER-USER") || has("-P FORWARD DROP");
    let passes = if ours.is_some() || !drops { "the pool passes" } else { "the pool is dropped" };
    ("accept", passes.to_owned(), ours.unwrap_or_default().to_owned())
}

/// Takes away what changes by itself.
fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !COUNTERS.contains(&key.as_str()));
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Qdiscs and classes of the interfaces whose root is ours.
fn shaping(node: &Node<'_>) -> Result<Vec<Told>> {
    let qdiscs = ask_json(node, &["tc", "-j", "qdisc", "show"])?;
    let roots = rows(&qdiscs).iter().filter(|qdisc| qdisc["handle"] == ROOT);
    let devices: Vec<&str> = roots.filter_map(|qdisc| qdisc["dev"].as_str()).collect();
    let mut told = Vec::new();
    for qdisc in
        rows(&qdiscs).iter().filter(|one| one["dev"].as_str().is_some_and(|dev| devices.contains(&dev)))
    {
        let mut qdisc = qdisc.clone();
        let handle = qdisc.as_object_mut().and_then(|qdisc| qdisc.remove("handle")).unwrap_or_default();
        strip(&mut qdisc);
        told.push(("qdisc", qdisc.to_string(), handle.to_string()));
    }
    for device in devices {
        let classes = ask(node, &["tc", "class", "show", "dev", device])?;
        told.extend(
            classes
                .lines()
                .filter_map(class)
                .map(|(content, leaf)| ("class", format!("{device} {content}"), leaf)),
        );
    }
    Ok(told)
}

/// `class htb 4501:1 parent 4501:ffff leaf 8001: prio 0 rate 5Mbit …`: all of it but the leaf's handle, which is
/// given when the leaf is made; and that.
fn class(line: &str) -> Option<(String, String)> {
    let rest = line.strip_prefix("class htb ")?;
    let mut words: Vec<&str> = rest.split_whitespace().collect();
    let leaf = words.iter().position(|word| *word == "leaf");
    let leaf = leaf.map(|at| words.drain(at..at + 2).next_back().unwrap_or_default().to_owned());
    Some((words.join(" "), leaf.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_class_is_its_rates_and_its_leaf_is_which_one() {
        let (content, leaf) =
            class("class htb 4501:1 parent 4501:ffff leaf 8001: prio 0 rate 5Mbit ").unwrap();
        assert_eq!((content.as_str(), leaf.as_str()), ("4501:1 parent 4501:ffff prio 0 rate 5Mbit", "8001:"));
        assert_eq!(class("class htb 4501:fffe root rate 7bit").unwrap().1, "");
        assert_eq!(class("class fq_codel 8001:1 parent 8001:"), None);
    }

    #[test]
    fn the_pool_passes_by_our_accept_or_where_nothing_drops() {
        let ours = "-A DOCKER-USER -s a -d a -m comment --comment edgeloom -j ACCEPT";
        for (listing, content) in [
            (format!("-P FORWARD DROP\n-N DOCKER-USER\n{ours}"), "the pool passes"),
            ("-P FORWARD DROP\n-N DOCKER-USER".to_owned(), "the pool is dropped"),
            ("-P FORWARD DROP\n-A FORWARD -s a -j ACCEPT".to_owned(), "the pool is dropped"),
            ("-P FORWARD ACCEPT".to_owned(), "the pool passes"),
        ] {
            assert_eq!(forwarding(&listing).1, content, "{listing}");
        }
    }

    #[test]
    fn elements_count_one_by_one_and_other_tables_not_at_all() {
        let map = json!({"map": {"table": "edgeloom", "name": "flow_class", "handle": 3,
            "elem": [["a", "4501:1"], ["b", "4501:2"]]}});
        let told = nft(&map);
        assert_eq!(told.iter().filter(|(kind, ..)| *kind == "element").count(), 2);
        assert_eq!(told.last().unwrap().2, "3");
        assert!(!told.last().unwrap().1.contains("elem"));
        assert!(nft(&json!({"chain": {"table": "filter", "name": "DOCKER-USER"}})).is_empty());
    }
}
