//! What containers of ours use, and what those that have ended used to their ends.
//!
//! In: containers with their first processes. Out: figures of the kernel's own files, for reports, and last counts, for
//! the observed state. The kernel tells of a process's end at once, and the engine takes the control group away
//! some tens of milliseconds after it has heard of it: what is read in between lacks nothing. Last counts stay
//! until the controller has had time to hear of them.

use crate::engine::TaskKey;
use edgeloom_common::report::{TaskTotal, TaskUse};
use edgeloom_observe::container::{Container, Total};
use futures_util::stream::{FuturesUnordered, StreamExt};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Last counts that are held; where the controller is away for longer the oldest go.
const ENDED_MAX: usize = 256;
/// How long they are told while there is a session.
const TOLD_FOR: Duration = Duration::from_secs(5);

/// What is known of containers; one for all who ask.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    known: Arc<Mutex<Known>>,
    /// Processes whose end is to be waited for; none where nobody waits.
    begun: Option<mpsc::UnboundedSender<Begun>>,
}

#[derive(Debug, Default)]
struct Known {
    /// By id.
    followed: BTreeMap<String, Followed>,
    ended: VecDeque<Ended>,
}

#[derive(Debug)]
struct Followed {
    key: TaskKey,
    container: Container,
    /// Its end is waited for.
    awaited: bool,
    /// A report has looked at it: from then on differences are of whole periods.
    looked: bool,
}

/// A last count, and since when somebody is told of it.
#[derive(Debug)]
struct Ended {
    told: Option<Instant>,
    total: TaskTotal,
}

/// A run of a container, and its first process.
#[derive(Debug)]
struct Begun {
    id: String,
    run: u64,
    process: OwnedFd,
}

/// Waits for the ends of containers.
#[derive(Debug)]
pub(crate) struct Ends {
    counts: Counts,
    begun: mpsc::UnboundedReceiver<Begun>,
}

/// Nothing followed yet.
pub(crate) fn open() -> (Counts, Ends) {
    let (sender, begun) = mpsc::unbounded_channel();
    let counts = Counts { begun: Some(sender), ..Counts::default() };
    (counts.clone(), Ends { counts, begun })
}

impl Counts {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody waits for ends.
    pub(crate) const fn awaits_ends(&self) -> bool {
        self.begun.is_some()
    }

    /// Follows the container whose first process this is, from now to its end.
    pub(crate) fn follow(&self, key: &TaskKey, id: &str, process: u32) {
        // Before the control groups are looked at: what then proves to be the container's is what ends.
        let ending = i32::try_from(process).ok().and_then(Pid::from_raw);
        let ending = ending.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let container = match Container::open(id, process) {
            Ok(container) => container,
            Err(error) => {
                tracing::debug!(%error, id, "what a container uses is not measured");
                return;
            }
        };
        let run = container.run();
        let mut known = self.known();
        if known.followed.get(id).is_some_and(|followed| followed.container.run() == run) {
            return;
        }
        known.end(id);
        let begun = ending.map(|process| Begun { id: id.to_owned(), run, process });
        let awaited =
            begun.zip(self.begun.as_ref()).is_some_and(|(begun, sender)| sender.send(begun).is_ok());
        let followed = Followed { key: key.clone(), container, awaited, looked: false };
        known.followed.insert(id.to_owned(), followed);
    }

    /// What a container used since the look before, if there was one, and in all; none of one that is not followed.
    pub(crate) fn look(&self, id: &str) -> Option<(Option<TaskUse>, TaskTotal)> {
        let mut known = self.known();
        let followed = known.followed.get_mut(id)?;
        let used = followed.container.used().ok()?;
        let before = std::mem::replace(&mut followed.looked, true);
        let used = before.then(|| TaskUse {
            job: followed.key.job.clone(),
            task: followed.key.task.clone(),
            cpu: used.cpu,
            memory: used.memory,
            received: used.received,
            sent: used.sent,
        });
        Some((used, total(&followed.key, id, followed.container.total())))
    }

    /// Forgets those that do not run, but for those whose ends are waited for.
    pub(crate) fn retain(&self, runs: impl Fn(&str) -> bool) {
        self.known().followed.retain(|id, followed| followed.awaited || runs(id));
    }

    /// Last counts that the controller may not know: those that it was not told of for long enough, in the session that
    /// there is since `connected`.
    pub(crate) fn ended(&self, connected: Option<Instant>, now: Instant) -> Vec<TaskTotal> {
        let mut known = self.known();
        if let Some(connected) = connected {
            known.ended.retain(|ended| ended.told.is_none_or(|told| now < told.max(connected) + TOLD_FOR));
            known.ended.iter_mut().for_each(|ended| ended.told = ended.told.or(Some(now)));
        }
        known.ended.iter().map(|ended| ended.total.clone()).collect()
    }

    fn end(&self, id: &str, run: u64) {
        let mut known = self.known();
        if known.followed.get(id).is_some_and(|followed| followed.container.run() == run) {
            known.end(id);
        }
    }
}

impl Known {
    fn end(&mut self, id: &str) {
        let Some(Followed { key, container, .. }) = self.followed.remove(id) else { return };
        if self.ended.len() >= ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back(Ended { told: None, total: total(&key, id, container.ended()) });
    }
}

impl Ends {
    /// Waits for ends, for ever.
    pub(crate) async fn run(mut self) {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(begun) = self.begun.recv() => open.push(end(begun)),
                Some(ended) = open.next() => {
                    if let Some((id, run)) = ended {
                        self.counts.end(&id, run);
                    }
                }
            }
        }
    }
}

/// The run, once it has ended; none if that cannot be waited for.
async fn end(Begun { id, run, process }: Begun) -> Option<(String, u64)> {
    let ended = async { registered(process)?.readable().await.map(drop) };
    match ended.await {
        Ok(()) => Some((id, run)),
        Err(error) => {
            tracing::debug!(%error, id, "the end of a container is not waited for");
            None
        }
    }
}

/// Readable from the process's end on (pidfd_open(2)).
#[expect(
    unsafe_code,
    reason = "only the caller can know that a descriptor stays open while it is registered"
)]
fn registered(process: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd always gives the one descriptor that it owns, and closes it when it is dropped; here that is
    // when the AsyncFd, which takes it over, has let go of it.
    let registered = unsafe { AsyncFd::register_with_interest(process, Interest::READABLE) };
    Ok(registered?)
}

fn total(key: &TaskKey, id: &str, total: Total) -> TaskTotal {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    TaskTotal {
        job: key.job.clone(),
        task: key.task.clone(),
        container: id.to_owned(),
        run: total.run,
        age_ms: ms(total.age),
        cpu_us: u64::try_from(total.cpu_time.as_micros()).unwrap_or(u64::MAX),
        sent: total.sent,
        received: total.received,
        memory: total.memory,
        memory_byte_s: total.memory_byte_s,
        memory_from_ms: ms(total.memory_from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn key() -> TaskKey {
        TaskKey { job: "j".parse().unwrap(), task: "t".parse().unwrap() }
    }

    /// A process of the test's own groups: their path holds the id `/`.
    fn child() -> Child {
        Command::new("sleep").arg("1000").spawn().unwrap()
    }

    async fn ended(counts: &Counts) -> Vec<TaskTotal> {
        loop {
            let ended = counts.ended(None, Instant::now());
            if !ended.is_empty() {
                return ended;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn an_end_is_counted_once_and_told_for_a_while() {
        let (counts, ends) = open();
        let waiting = tokio::spawn(ends.run());
        let mut child = child();
        counts.follow(&key(), "/", child.id());
        counts.follow(&key(), "/", child.id());
        assert!(counts.look("/").unwrap().0.is_none(), "no difference yet");
        let (used, running) = counts.look("/").unwrap();
        assert!(used.is_some() && counts.ended(None, Instant::now()).is_empty());
        child.kill().unwrap();
        let last = ended(&counts).await;
        assert_eq!((last.len(), last[0].run, &last[0].job), (1, running.run, &key().job));
        assert!(last[0].age_ms >= running.age_ms && last[0].cpu_us >= running.cpu_us);
        assert!(counts.look("/").is_none());
        let (began, now) = (Instant::now(), Instant::now() + 100 * TOLD_FOR);
        assert_eq!(counts.ended(None, now).len(), 1, "nobody is there to hear it");
        assert_eq!(counts.ended(Some(began), now).len(), 1, "it was not told before");
        assert_eq!(counts.ended(Some(now + TOLD_FOR), now + TOLD_FOR).len(), 1, "another session has begun");
        assert!(counts.ended(Some(began), now + TOLD_FOR).is_empty());
        child.wait().unwrap();
        waiting.abort();
    }

    #[tokio::test]
    async fn a_run_that_follows_ends_the_one_before() {
        let (counts, _ends) = open();
        let mut first = child();
        counts.follow(&key(), "/", first.id());
        // Ticks are hundredths of a second.
        tokio::time::sleep(Duration::from_millis(30)).await;
        let mut later = child();
        counts.follow(&key(), "/", later.id());
        assert_eq!(counts.ended(None, Instant::now()).len(), 1);
        counts.retain(|_| false);
        assert!(counts.look("/").is_some(), "its end is waited for");
        for child in [&mut first, &mut later] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn where_nobody_waits_those_that_do_not_run_are_forgotten() {
        let counts = Counts::default();
        counts.follow(&key(), "/", std::process::id());
        assert!(counts.look("/").is_some() && !counts.awaits_ends());
        counts.retain(|_| false);
        assert!(counts.look("/").is_none());
    }
}
