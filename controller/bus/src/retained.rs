//! The latest retained value of each topic, bounded in number and bytes.

use bytes::Bytes;
use std::collections::BTreeMap;

/// Topics kept at most: some for each of a thousand nodes.
const TOPICS_MAX: usize = 4096;

/// Payload bytes kept at most, in all.
const BYTES_MAX: usize = 256 * 1024 * 1024;

/// A value that does not fit any more.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the retained store is full: {topics} topics, {bytes} bytes")]
pub(crate) struct Full {
    topics: usize,
    bytes: usize,
}

/// The store. Topics come from the controller alone, so it fills only by its doing.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    values: BTreeMap<String, Bytes>,
    bytes: usize,
}

impl Retained {
    /// Replaces the value of a topic; an empty one removes it (MQTT 3.1.1, 3.3.1.3).
    pub(crate) fn set(&mut self, topic: &str, payload: Bytes) -> Result<(), Full> {
        if let Some(old) = self.values.remove(topic) {
            self.bytes -= old.len();
        }
        if payload.is_empty() {
            return Ok(());
        }
        let bytes = self.bytes + payload.len();
        if self.values.len() >= TOPICS_MAX || bytes > BYTES_MAX {
            return Err(Full { topics: self.values.len(), bytes: self.bytes });
        }
        self.bytes = bytes;
        self.values.insert(topic.to_owned(), payload);
        Ok(())
    }

    /// What a new subscription to `filter` gets.
    pub(crate) fn matching(&self, filter: &str) -> Vec<(String, Bytes)> {
        self.values
            .iter()
            .filter(|(topic, _)| rumqttc::matches(topic, filter))
            .map(|(topic, payload)| (topic.clone(), payload.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_value_removes_and_a_full_store_refuses() {
        let mut retained = Retained::default();
        retained.set("a", Bytes::from_static(b"1")).unwrap();
        retained.set("a", Bytes::new()).unwrap();
        assert_eq!(retained.matching("#"), vec![]);
        for n in 0..TOPICS_MAX {
            retained.set(&format!("t/{n}"), Bytes::from_static(b"1")).unwrap();
        }
        assert_eq!(
            retained.set("one-more", Bytes::from_static(b"1")),
            Err(Full { topics: TOPICS_MAX, bytes: TOPICS_MAX })
        );
        retained.set("t/7", Bytes::from_static(b"22")).unwrap();
        assert_eq!(retained.matching("t/7"), vec![("t/7".to_owned(), Bytes::from_static(b"22"))]);
    }
}
