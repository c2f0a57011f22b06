//! What is to be written, in its order, by a thread that lives as long as there is something.
//!
//! In: counts and events. Out: the same in sled. The queue is bounded: where the disk does not keep up, events
//! are dropped, and counts are right again with the next change.

use super::{pack, pack_end};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub(super) const RESTARTS: &str = "restarts";
pub(super) const ENDS: &str = "ends";
const EVENTS: &str = "events";
/// Events kept: about a day of a busy node.
pub(super) const EVENTS_MAX: usize = 256;
const QUEUE_MAX: usize = 512;
/// What sled needs is some ten kilobytes.
const STACK_BYTES: usize = 256 * 1024;
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// One change.
#[derive(Debug)]
pub(super) enum Write {
    /// Of a task; zero forgets it.
    Restarts(String, u32),
    /// Of a task, as JSON; none forgets it.
    End(String, Option<Vec<u8>>),
    /// As JSON.
    Event(Vec<u8>),
}

#[derive(Debug, Default)]
struct Queue {
    writes: VecDeque<Write>,
    /// There while somebody takes from the queue.
    writing: bool,
    thread: Option<JoinHandle<()>>,
    /// sled has panicked: it is not asked again.
    broken: bool,
}

#[derive(Debug)]
struct Shared {
    database: sled::Db,
    queue: Mutex<Queue>,
}

/// The open database and what waits for it.
#[derive(Debug)]
pub(super) struct Writer(Option<Arc<Shared>>);

impl Writer {
    pub(super) fn over(database: sled::Db) -> Self {
        Self(Some(Arc::new(Shared { database, queue: Mutex::default() })))
    }

    /// Queues a change; it is written soon.
    pub(super) fn add(&self, write: Write) {
        let Some(shared) = &self.0 else { return };
        let mut queue = shared.queue();
        if queue.broken || queue.writes.len() >= QUEUE_MAX {
            tracing::debug!(broken = queue.broken, "a change of the history is not written");
            return;
        }
        queue.writes.push_back(write);
        if queue.writing {
            return;
        }
        let shared = Arc::clone(shared);
        let builder = thread::Builder::new().name("history".to_owned()).stack_size(STACK_BYTES);
        match builder.spawn(move || shared.write_all()) {
            Ok(thread) => (queue.writing, queue.thread) = (true, Some(thread)),
            Err(error) => tracing::warn!(%error, "the history is not written"),
        }
    }

    #[cfg(test)]
    pub(super) fn events(&self) -> Vec<sled::IVec> {
        let shared = self.0.as_ref().unwrap();
        shared.finish();
        let events = || shared.database.open_tree(EVENTS)?.iter().values().collect::<sled::Result<Vec<_>>>();
        catch_unwind(AssertUnwindSafe(events)).map(Result::unwrap_or_default).unwrap_or_default()
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next change; the end of the thread has begun when there is none.
    fn next(&self) -> Option<Write> {
        let mut queue = self.queue();
        let next = queue.writes.pop_front().filter(|_| !queue.broken);
        queue.writing = next.is_some();
        next
    }

    fn write_all(&self) {
        while let Some(write) = self.next() {
            match catch_unwind(AssertUnwindSafe(|| self.write(write))) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the history is not written"),
                Err(_) => {
                    self.queue().broken = true;
                    tracing::error!("the history is damaged; going on without until the next start");
                }
            }
        }
    }

    fn write(&self, write: Write) -> sled::Result<()> {
        match write {
            Write::Restarts(name, 0) => self.database.open_tree(RESTARTS)?.remove(&name).map(drop),
            Write::Restarts(name, count) => {
                self.database.open_tree(RESTARTS)?.insert(&name, &pack(&name, count)).map(drop)
            }
            Write::End(name, None) => self.database.open_tree(ENDS)?.remove(&name).map(drop),
            Write::End(name, Some(text)) => {
                self.database.open_tree(ENDS)?.insert(&name, pack_end(&name, &text)).map(drop)
            }
            Write::Event(bytes) => {
                let tree = self.database.open_tree(EVENTS)?;
                let last =
                    tree.last()?.and_then(|(key, _)| key.as_ref().try_into().ok().map(u64::from_be_bytes));
                tree.insert((last.unwrap_or(0) + 1).to_be_bytes(), bytes)?;
                while EVENTS_MAX < tree.len() {
                    tree.pop_min()?;
                }
                Ok(())
            }
        }
    }

    /// Waits until nobody writes any more.
    fn finish(&self) {
        let thread = self.queue().thread.take();
        if let Some(thread) = thread {
            // It catches every panic of its own.
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    /// After a write that failed sled waits for ever when it is let go; the agent does not wait with it.
    fn drop(&mut self) {
        let Some(shared) = self.0.take() else { return };
        let (ended, end) = sync_channel::<()>(0);
        let close = move || {
            shared.finish();
            drop(shared);
            drop(ended);
        };
        if thread::Builder::new().name("history".to_owned()).spawn(close).is_ok() {
            // Nothing is ever sent: the answer is the end of the thread, or that it does not come.
            let _ = end.recv_timeout(CLOSE_WAIT);
        }
    }
}
