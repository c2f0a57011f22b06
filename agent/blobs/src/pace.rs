//! How fast places are read whose bytes come over a link that flows of jobs take too.
//!
//! Nobody of ours shapes what a registry sends, so it is held back by reading slowly: TCP's window closes. So is a
//! neighbour over a link whose capacity nobody declared: its kernel does not know either what to leave to flows. All
//! downloads over one interface together get what flows leave of it, or what nobody used lately where that is
//! more: a job that waits for this very pull sends nothing yet. In: what flows have of each interface, what the
//! interface receives, bytes as they are read. Out: waiting. Invariant: a pull is never held below
//! [`LEAST`] of the interface, and not at all where no flow has any of it or nothing is known of it.

use edgeloom_common::units::{BitRate, PULL_PART, TCP_GOODPUT};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Part of an interface that flows never reserve, and pulls always have.
const LEAST: f64 = 0.05;
/// How often the interface is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Looks that count: two seconds, in which items that come one by one make a rate.
const LOOKS: usize = 8;
/// A look after a longer time says nothing of how fast others are now.
const LOOK_MAX: Duration = Duration::from_secs(1);
/// How much of a late turn may be made up for.
const CREDIT: Duration = Duration::from_millis(50);

/// An interface that links of ours use: wire rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lane {
    /// Declared; where it is not, what was measured counts.
    pub capacity: Option<BitRate>,
    /// What flows that come in have of it.
    pub reserved: BitRate,
}

/// What the kernel says of interfaces.
#[derive(Debug, Clone, Copy)]
pub struct Meter {
    /// The interface that has an address of ours.
    pub interface_of: fn(IpAddr) -> Option<String>,
    /// Bytes that it has received, as it counts them.
    pub received: fn(&str) -> Option<u64>,
}

/// A handle; clones share the rates.
#[derive(Clone)]
pub struct Pace {
    meter: Meter,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    lanes: BTreeMap<String, Lane>,
    /// Capacities as found by sending: the other direction is taken to be as wide.
    measured: BTreeMap<String, BitRate>,
    turns: BTreeMap<String, Turn>,
    /// Interfaces that registries were read over.
    used: BTreeSet<String>,
}

/// Who sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    Registry,
    /// Its kernel has a class for pulls, which holds where the link's capacity is declared.
    Neighbour,
}

/// Whose turn it is on an interface.
#[derive(Debug)]
struct Turn {
    /// When the next byte may be read.
    next: Instant,
    /// The last look, and what the interface had received then.
    looked: Option<(Instant, u64)>,
    /// Bits that pulls have read since.
    own_bits: f64,
    /// Bits a second that others received, the newest last.
    others: VecDeque<f64>,
}

/// A download over an interface with a rate.
#[derive(Debug, Clone)]
pub(crate) struct Toll {
    pace: Pace,
    interface: String,
}

impl Pace {
    /// Holds nothing back until [`set`](Self::set) says how much there is.
    #[must_use]
    pub fn new(meter: Meter) -> Self {
        Self { meter, state: Arc::default() }
    }

    /// These interfaces, by name, and no others from now on.
    pub fn set(&self, lanes: BTreeMap<String, Lane>) {
        self.lock(|state| state.lanes = lanes);
    }

    /// What the interface was found to carry.
    pub fn measured(&self, interface: &str, capacity: BitRate) {
        self.lock(|state| state.measured.insert(interface.to_owned(), capacity));
    }

    /// The interfaces of [`set`](Self::set) over which registries were read so far.
    #[must_use]
    pub fn used(&self) -> BTreeSet<String> {
        self.lock(|state| state.used.iter().filter(|name| state.lanes.contains_key(*name)).cloned().collect())
    }

    /// For a connection with this address of ours; none where nothing holds it back.
    pub(crate) fn toll(&self, local: IpAddr, sender: Sender) -> Option<Toll> {
        let interface = (self.meter.interface_of)(local)?;
        self.lock(|state| {
            let lane = state.lanes.get(&interface)?;
            match sender {
                Sender::Neighbour if lane.capacity.is_some() => return None,
                Sender::Neighbour => {}
                Sender::Registry => drop(state.used.insert(interface.clone())),
            }
            state.turns.entry(interface.clone()).or_insert_with(Turn::new);
            Some(())
        })?;
        Some(Toll { pace: self.clone(), interface })
    }

    fn lock<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pace").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Toll {
    /// Waits until so many bytes may have been read.
    pub(crate) async fn pay(&self, bytes: usize) {
        let received = self.pace.meter.received;
        let until = self.pace.lock(|state| {
            let lane = state.known(&self.interface)?;
            let turn = state.turns.get_mut(&self.interface)?;
            let now = Instant::now();
            if turn.is_look_due(now) {
                turn.look(now, received(&self.interface));
            }
            Some(turn.pay(lane, bytes, now))
        });
        if let Some(until) = until {
            sleep_until(until).await;
        }
    }
}

impl State {
    /// An interface of which flows have a part; none where nothing holds a pull back.
    fn known(&self, interface: &str) -> Option<Known> {
        let lane = self.lanes.get(interface).filter(|lane| lane.reserved.0 > 0)?;
        let capacity = lane.capacity.or_else(|| self.measured.get(interface).copied())?;
        Some(Known { capacity: capacity.as_f64(), reserved: lane.reserved.as_f64() })
    }
}

/// Wire bits a second of an interface.
#[derive(Debug, Clone, Copy)]
struct Known {
    capacity: f64,
    reserved: f64,
}

impl Turn {
    fn new() -> Self {
        Self { next: Instant::now(), looked: None, own_bits: 0.0, others: VecDeque::new() }
    }

    fn is_look_due(&self, now: Instant) -> bool {
        self.looked.is_none_or(|(at, _)| now.duration_since(at) >= LOOK_EVERY)
    }

    #[expect(clippy::cast_precision_loss, reason = "a second's bytes are far below 2^52")]
    fn look(&mut self, now: Instant, received: Option<u64>) {
        let Some(received) = received else { return };
        if let Some((at, before)) = self.looked {
            let took = now.duration_since(at);
            if took > LOOK_MAX {
                self.others.clear();
            } else {
                let bits = received.saturating_sub(before) as f64 * 8.0 - self.own_bits / TCP_GOODPUT;
                self.others.push_back(bits.max(0.0) / took.as_secs_f64());
                self.others.drain(..self.others.len().saturating_sub(LOOKS));
            }
        }
        (self.looked, self.own_bits) = (Some((now, received)), 0.0);
    }

    /// When so many bytes are through.
    #[expect(clippy::cast_precision_loss, reason = "a frame is small")]
    fn pay(&mut self, lane: Known, bytes: usize, now: Instant) -> Instant {
        let bits = bytes as f64 * 8.0;
        self.own_bits += bits;
        let from = self.next.max(now.checked_sub(CREDIT).unwrap_or(now));
        self.next = from + Duration::from_secs_f64(bits / (self.wire_bps(lane) * TCP_GOODPUT));
        self.next
    }

    /// Wire bits a second. The part that is not taken lets whoever sends more be heard, and given more at the next
    /// look.
    #[expect(clippy::cast_precision_loss, reason = "a few looks")]
    fn wire_bps(&self, Known { capacity, reserved }: Known) -> f64 {
        // Until the interface was looked at for all the time that counts, flows are taken to use what they have.
        let heard = (self.others.len() == LOOKS).then(|| self.others.iter().sum::<f64>() / LOOKS as f64);
        let unused = heard.map_or(0.0, |others| capacity - others);
        let left = (capacity - reserved).max(unused);
        (PULL_PART * left).max(LEAST * capacity).max(1.0)
    }
}

#[cfg(test)]
mod tests;
