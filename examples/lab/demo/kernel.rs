//! A node's classes and flow maps as `tc` and `nft` show them: none of it is asked from the agent.

use anyhow::{Context, Result};
use edgeloom_common::desired::FlowKey;
use serde_json::Value;
use std::collections::BTreeMap;

/// One traffic class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClassCount {
    /// Bytes sent since the class was made.
    pub(crate) bytes: u64,
    /// Bytes waiting.
    pub(crate) backlog: u64,
}

/// Reads `tc -s class show dev X`: `class htb 4501:1 …` followed by `Sent N bytes` and `backlog Nb`.
pub(crate) fn parse_classes(text: &str) -> BTreeMap<String, ClassCount> {
    let mut classes = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["class", "htb", id, ..] => {
                current = (*id).to_owned();
                classes.insert(current.clone(), ClassCount::default());
            }
            ["Sent", bytes, "bytes", ..] => {
                if let Some(class) = classes.get_mut(&current) {
                    class.bytes = bytes.parse().unwrap_or(0);
                }
            }
            ["backlog", backlog, ..] => {
                if let Some(class) = classes.get_mut(&current) {
                    class.backlog = parse_backlog(backlog);
                }
            }
            _ => {}
        }
    }
    classes
}

/// `1514b`, and for larger queues `147Kb` (thousands of bytes).
fn parse_backlog(text: &str) -> u64 {
    let digits = text.trim_end_matches('b');
    let (digits, scale) = match digits.strip_suffix('K') {
        Some(digits) => (digits, 1000),
        None => (digits, 1),
    };
    digits.parse::<u64>().unwrap_or(0) * scale
}

/// Which class each flow has, from `nft -j list map ip edgeloom flow_class`.
pub(crate) fn parse_flow_classes(json: &str) -> Result<BTreeMap<FlowKey, String>> {
    let listing: Value = serde_json::from_str(json).context("nft's answer is no JSON")?;
    let objects = listing["nftables"].as_array().context("nft's answer has no list")?;
    let elements = objects.iter().filter_map(|object| object["map"]["elem"].as_array()).flatten();
    elements.map(parse_element).collect()
}

fn parse_element(element: &Value) -> Result<(FlowKey, String)> {
    let read = || {
        let key = element[0]["concat"].as_array()?;
        let key = serde_json::json!({
            "source": key.first()?, "destination": key.get(1)?,
            "protocol": key.get(2)?, "destination_port": key.get(3)?,
        });
        Some((serde_json::from_value(key).ok()?, element[1].as_str()?.to_owned()))
    };
    read().with_context(|| format!("unexpected map element {element}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_read_from_text() {
        let text = "class htb 4501:1 parent 4501:ffff leaf 8001: prio 0 rate 5Mbit\n Sent 1514 bytes 1 pkt\n \
                    backlog 147Kb 98p requeues 0\nclass htb 4501:fffe root\n Sent 7 bytes 1 pkt\n backlog 0b 0p\n";
        let classes = parse_classes(text);
        assert_eq!(classes["4501:1"], ClassCount { bytes: 1514, backlog: 147_000 });
        assert_eq!(classes["4501:fffe"], ClassCount { bytes: 7, backlog: 0 });
    }

    #[test]
    fn flow_classes_read_from_json() {
        let json = r#"{"nftables": [{"metainfo": {}}, {"map": {"elem":
            [[{"concat": ["10.77.0.10", "10.77.0.11", "tcp", 7000]}, "4501:1"]]}}]}"#;
        let classes = parse_flow_classes(json).unwrap();
        assert_eq!(classes.values().collect::<Vec<_>>(), ["4501:1"]);
        assert!(parse_flow_classes("[").is_err());
    }
}
