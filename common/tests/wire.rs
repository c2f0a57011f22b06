//! Agents and controllers of neighbouring versions understand each other: messages of every version so far
//! (`wire/<version>/<message>.json`, never changed again) read without loss, and fields of versions to come are
//! passed over.
//!
//! 0.0 is what was said before nodes joined by tokens.

use edgeloom_common::confidential::{Delivery, Enclosed};
use edgeloom_common::desired::DesiredState;
use edgeloom_common::join::{IdentityAnswer, JoinRequest, RenewRequest, RenewalView};
use edgeloom_common::measure::{MeasureCommand, MeasureReply};
use edgeloom_common::report::{
    ContainerPhase, ImageStore, Inventory, Links, LogsCommand, Observed, Reply, Report, Status,
};
use edgeloom_common::volume::VolumeCommand;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// The folder of messages as this version writes them. Whoever changes a message adds a folder and says it here.
const NOW: &str = "0.1";

/// Objects whose keys are data.
const MAPS: [&str; 10] = [
    "environment",
    "hosts",
    "labels",
    "stop_after_s",
    "neighbours",
    "copies",
    "layer_grants",
    "secrets",
    "logins",
    "reserved",
];

/// Reads a message as the one who receives it does, and writes what was understood.
fn understood<T: DeserializeOwned + Serialize>(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::to_value(serde_json::from_str::<T>(text)?)
}

/// A document with the values beside it, each read by itself.
fn delivered(text: &str) -> Result<Value, serde_json::Error> {
    let document: DesiredState = serde_json::from_str(text)?;
    let Enclosed { confidential } = serde_json::from_str(text)?;
    serde_json::to_value(Delivery { document: &document, confidential: &confidential })
}

fn reader(message: &str) -> fn(&str) -> Result<Value, serde_json::Error> {
    match message {
        "desired" | "desired-batch" | "desired-hosting" | "desired-reserved" | "held" => {
            understood::<DesiredState>
        }
        "delivery" => delivered,
        "status" => understood::<Status>,
        "report" | "report-totals" => understood::<Report>,
        "inventory" | "inventory-folders" | "inventory-volumes" => understood::<Inventory>,
        "volume" => understood::<VolumeCommand>,
        "links" | "links-pulls" => understood::<Links>,
        "observed" | "observed-batch" => understood::<Observed>,
        "logs" | "logs-times" => understood::<LogsCommand>,
        "reply" => understood::<Reply>,
        "measure" | "measure-private" => understood::<MeasureCommand>,
        "measured" | "measure-failed" => understood::<MeasureReply>,
        "join" => understood::<JoinRequest>,
        "renew" => understood::<RenewRequest>,
        "identity" => understood::<IdentityAnswer>,
        "renewal" => understood::<RenewalView>,
        other => panic!("{other}.json is of no message"),
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire")
}

/// Version, message and text of each file.
fn messages() -> Vec<(String, String, String)> {
    let entries = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut found = Vec::new();
    for version in entries(&folder()) {
        // A version has a point, so no part of its name is an extension.
        let of = version.file_name().unwrap().to_str().unwrap().to_owned();
        let file = |path: PathBuf| (of.clone(), name(&path), std::fs::read_to_string(&path).unwrap());
        found.extend(entries(&version).into_iter().map(file));
    }
    found.sort();
    found
}

/// What of `said` is not in `heard`, by its place.
fn lost(said: &Value, heard: &Value, place: &str) -> Vec<String> {
    match (said, heard) {
        (Value::Object(said), Value::Object(heard)) => {
            let of = |(key, value): (&String, &Value)| {
                lost(value, heard.get(key).unwrap_or(&Value::Null), &format!("{place}.{key}"))
            };
            said.iter().flat_map(of).collect()
        }
        (Value::Array(said), Value::Array(heard)) if said.len() == heard.len() => {
            let pairs = said.iter().zip(heard).enumerate();
            pairs.flat_map(|(at, (said, heard))| lost(said, heard, &format!("{place}[{at}]"))).collect()
        }
        _ if said == heard => Vec::new(),
        _ => vec![format!("{place}: {said} became {heard}")],
    }
}

/// The message with a field that nobody knows in every object.
fn with_strangers(value: &Value, key: &str) -> Value {
    match value {
        Value::Object(fields) => {
            let known = fields.iter().map(|(key, value)| (key.clone(), with_strangers(value, key)));
            let mut fields: Map<String, Value> = known.collect();
            if !MAPS.contains(&key) {
                fields.insert("of_a_later_version".to_owned(), json!({ "any": [1, "thing"] }));
            }
            Value::Object(fields)
        }
        Value::Array(items) => items.iter().map(|item| with_strangers(item, key)).collect(),
        other => other.clone(),
    }
}

#[test]
fn messages_of_every_version_read_without_loss() {
    let messages = messages();
    assert!(messages.iter().any(|(version, ..)| version != NOW), "{messages:?}");
    for (version, message, text) in messages {
        let heard = reader(&message)(&text).unwrap_or_else(|error| panic!("{version}/{message}: {error}"));
        let said: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(lost(&said, &heard, &message), Vec::<String>::new(), "version {version}");
    }
}

#[test]
fn this_version_says_nothing_that_its_messages_do_not_show() {
    for (_, message, text) in messages().into_iter().filter(|(version, ..)| version == NOW) {
        let said: Value = serde_json::from_str(&text).unwrap();
        let written = reader(&message)(&text).unwrap();
        assert_eq!(written, said, "{message} has changed: keep {NOW} as it is and add a folder");
    }
}

#[test]
fn fields_of_later_versions_are_passed_over() {
    for (version, message, text) in messages() {
        let said: Value = serde_json::from_str(&text).unwrap();
        let later = with_strangers(&said, "").to_string();
        let heard = reader(&message)(&later).unwrap_or_else(|error| panic!("{version}/{message}: {error}"));
        assert_eq!(heard, reader(&message)(&text).unwrap(), "{version}/{message}");
    }
}

#[test]
fn words_of_later_versions_leave_the_rest_of_a_message_readable() {
    let container = json!({ "job": "j", "task": "t", "spec_hash": "h", "container_id": "c", "phase": "hibernating", "restarts": 0 });
    let observed = json!({ "schema": 1, "version": { "epoch": 1, "generation": 2 }, "network_applied": true, "converged": false, "containers": [container] });
    let observed: Observed = serde_json::from_value(observed).unwrap();
    assert_eq!(observed.containers[0].phase, ContainerPhase::Unknown);

    let text = std::fs::read_to_string(folder().join(NOW).join("inventory.json")).unwrap();
    let mut inventory: Value = serde_json::from_str(&text).unwrap();
    inventory["store"] = json!("holographic");
    let inventory: Inventory = serde_json::from_value(inventory).unwrap();
    assert_eq!(inventory.store, ImageStore::Graphdriver);

    let reply: MeasureReply = serde_json::from_value(json!({ "state": "cooling", "seconds": 3 })).unwrap();
    assert_eq!(reply, MeasureReply::Unknown);
}
