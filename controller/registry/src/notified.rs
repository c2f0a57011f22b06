//! What registries tell by themselves: the notifications of the distribution project.
//!
//! In: envelopes of whoever has a token. Out: hints at what to ask about. Nothing of what they say is believed:
//! the registry is asked whether it is so.

use crate::reference::{is_repository, is_tag};
use edgeloom_common::registry::RegistryHost;
use serde::Deserialize;

/// Events of one envelope that are read.
const EVENTS_MAX: usize = 1000;

/// A body of events (distribution, "Work with notifications").
#[derive(Debug, Clone, Deserialize)]
pub struct Envelope {
    #[serde(default)]
    events: Vec<Event>,
}

#[derive(Debug, Clone, Deserialize)]
struct Event {
    action: String,
    target: Target,
    #[serde(default)]
    request: Request,
}

#[derive(Debug, Clone, Deserialize)]
struct Target {
    #[serde(default)]
    repository: String,
    #[serde(default)]
    tag: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Request {
    /// The registry's name, as whoever pushed has it.
    #[serde(default)]
    host: String,
}

/// Something changed here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hint {
    pub(crate) host: RegistryHost,
    pub(crate) repository: String,
    /// None: some tag of the repository.
    pub(crate) tag: Option<String>,
}

impl Envelope {
    /// What to ask about; `registry` says who sends, where the name that pushers use is another.
    pub(crate) fn hints(&self, registry: Option<&RegistryHost>) -> Vec<Hint> {
        let hint = |event: &Event| {
            let changes = matches!(event.action.as_str(), "push" | "delete");
            if !changes || !is_repository(&event.target.repository) {
                return None;
            }
            let host = registry.cloned().or_else(|| event.request.host.parse().ok())?;
            let tag = Some(&event.target.tag).filter(|tag| is_tag(tag) && event.action == "push").cloned();
            Some(Hint { host, repository: event.target.repository.clone(), tag })
        };
        self.events.iter().take(EVENTS_MAX).filter_map(hint).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushes_and_removals_are_hints_and_pulls_are_not() {
        let event = |action: &str, target: &str| {
            format!(
                "{{\"id\":\"1\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"action\":\"{action}\",\"target\":{target},\
                 \"request\":{{\"host\":\"reg.lan:5000\",\"method\":\"PUT\"}},\"actor\":{{}}}}"
            )
        };
        let text = [
            event("push", "{\"repository\":\"a/b\",\"tag\":\"1\",\"digest\":\"sha256:00\"}"),
            event("push", "{\"repository\":\"a/b\"}"),
            event("delete", "{\"repository\":\"c\",\"tag\":\"2\"}"),
            event("pull", "{\"repository\":\"a/b\",\"tag\":\"1\"}"),
            event("push", "{\"repository\":\"../x\",\"tag\":\"1\"}"),
        ];
        let text = format!("{{\"events\":[{}]}}", text.join(","));
        let envelope: Envelope = serde_json::from_str(&text).unwrap();
        let hints = |registry: Option<&RegistryHost>| {
            let text = |it: Hint| format!("{} {} {}", it.host, it.repository, it.tag.unwrap_or_default());
            envelope.hints(registry).into_iter().map(text).collect::<Vec<_>>()
        };
        assert_eq!(hints(None), ["reg.lan:5000 a/b 1", "reg.lan:5000 a/b ", "reg.lan:5000 c "]);
        assert_eq!(hints(Some(&"other".parse().unwrap()))[0], "other a/b 1");
    }
}
