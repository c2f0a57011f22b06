//! The answer to one command: numbered pieces, of which the last one says so.
//!
//! A channel without a receiver means that the agent ends: nobody listens.

use crate::wire::Up;
use edgeloom_common::report::Reply;
use tokio::sync::mpsc;

/// Largest text of a reply: well below the packet limit even when every byte is escaped in JSON.
pub(crate) const CHUNK_BYTES: usize = 16 * 1024;

/// Numbers the pieces of one answer.
#[derive(Debug)]
pub(crate) struct Replies {
    id: u64,
    sequence: u64,
    up: mpsc::Sender<Up>,
}

impl Replies {
    pub(crate) fn new(id: u64, up: mpsc::Sender<Up>) -> Self {
        Self { id, sequence: 0, up }
    }

    /// Sends a text in as many pieces as it needs.
    pub(crate) async fn send(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(rest.floor_char_boundary(CHUNK_BYTES));
            self.say(Reply { text: chunk.to_owned(), ..self.next() }).await;
            rest = after;
        }
    }

    /// Sends one piece if there is room for it now: for news that the next one replaces.
    pub(crate) fn offer(&mut self, text: String) {
        if self.up.try_send(Up::Reply(Reply { text, ..self.next() })).is_ok() {
            self.sequence += 1;
        }
    }

    /// The last piece.
    pub(crate) async fn end(&mut self, error: String) {
        self.say(Reply { last: true, error, ..self.next() }).await;
    }

    /// The last piece, with a text.
    pub(crate) async fn end_with(&mut self, text: String) {
        self.say(Reply { last: true, text, ..self.next() }).await;
    }

    fn next(&self) -> Reply {
        Reply { id: self.id, sequence: self.sequence, text: String::new(), last: false, error: String::new() }
    }

    async fn say(&mut self, reply: Reply) {
        self.sequence += 1;
        let _ = self.up.send(Up::Reply(reply)).await;
    }
}
