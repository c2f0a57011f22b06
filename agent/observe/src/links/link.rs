//! One link: what is sent over it, and what is said of it.

use super::packet::{Kind, Probe, TRAIN_PAYLOAD};
use super::socket::{ProbeSocket, now_ns};
use super::track::{Presence, Track};
use super::traffic::Traffic;
use super::train::LENGTH;
use super::{LinkSettings, PORT};
use edgeloom_common::report::LinkReport;
use edgeloom_common::units::BitRate;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Trains at the start, close together, and later ones far apart.
const FIRST_TRAINS: u32 = 5;
const FIRST_TRAINS_EVERY: Duration = Duration::from_millis(200);
const TRAIN_EVERY: Duration = Duration::from_secs(60);
/// When a busy link is tried again.
const BUSY_PAUSE: Duration = Duration::from_secs(5);
/// Between trains while a queue stands that should not.
const DOUBT_PAUSE: Duration = Duration::from_secs(2);
/// Trains whose median may contradict a declared rate.
const TRAINS_AGAINST_DECLARED: usize = 3;
/// More than the chatter of an idle link.
const IN_USE: BitRate = BitRate(100_000);
/// Ethernet, IPv4 and UDP headers around a probe, bytes.
const HEADERS: u64 = 14 + 20 + 8;
/// When the receiver is asked for the result of a train.
pub(super) const TRAIN_END_AFTER: Duration = Duration::from_millis(250);

/// One link and what is known of it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) settings: LinkSettings,
    pub(super) socket: Arc<ProbeSocket>,
    pub(super) track: Track,
    /// What the listener was told last.
    pub(super) announced: Presence,
    pub(super) trains_sent: u32,
    pub(super) next_train: Instant,
    /// When the last train left.
    pub(super) last_train: Instant,
    pub(super) traffic: Traffic,
}

impl Link {
    /// Whether a train may leave now; where others use the link it has to wait, unless the capacity is in
    /// doubt.
    pub(super) fn is_train_due(&mut self, now: Instant) -> bool {
        if self.is_up() && self.is_in_doubt() {
            return now >= self.last_train + DOUBT_PAUSE;
        }
        if !self.is_up() || now < self.next_train {
            return false;
        }
        let busy = self.traffic.is_busy(self.track.capacity().or(self.settings.capacity));
        if busy {
            self.next_train = now + jittered(BUSY_PAUSE, 20);
        }
        !busy
    }

    /// Packets wait though the link, as it was measured, should have room. Not asked of a link whose rate is
    /// declared: there our own classes hold a train back, and it would measure them.
    fn is_in_doubt(&self) -> bool {
        let room = self.track.capacity().is_some_and(|capacity| self.traffic.should_have_room(capacity));
        self.settings.capacity.is_none() && room && self.track.is_queued()
    }

    /// Notes what a train read. What passed beside it passed too, so the link carries no less; and where a
    /// standing queue had no room left for a train, what passes is all that the link carries.
    pub(super) fn train_read(&mut self, rate: Option<BitRate>) {
        // Behind our own classes a train reads the least class, not the link.
        if self.settings.capacity.is_some() && self.traffic.is_busy(self.settings.capacity) {
            return;
        }
        let passed = self.traffic.rate();
        let capacity = if rate.is_some() || self.is_in_doubt() { passed.max(rate) } else { None };
        if let Some(capacity) = capacity {
            self.track.capacity_measured(capacity);
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.track.presence() == Presence::Up
    }

    pub(super) fn send_echo(&mut self, now: Instant) {
        let sequence = self.track.next_probe(now);
        self.send(Kind::Echo, 0, sequence);
    }

    /// Asks again where an answer is late.
    pub(super) fn send_quick_echo(&mut self, now: Instant) {
        if self.track.quick_at().is_some_and(|at| at <= now) {
            let sequence = self.track.quick_probe(now);
            self.send(Kind::Echo, 0, sequence);
        }
    }

    /// Somebody sends over the link: that it died has to show sooner.
    pub(super) fn is_in_use(&self) -> bool {
        self.is_up() && self.traffic.rate().is_some_and(|rate| IN_USE <= rate)
    }

    pub(super) fn send_train(&mut self, number: u32, now: Instant) {
        self.trains_sent = self.trains_sent.saturating_add(1);
        self.last_train = now;
        let pause = if self.trains_sent < FIRST_TRAINS {
            TRAIN_END_AFTER + FIRST_TRAINS_EVERY
        } else {
            jittered(TRAIN_EVERY, 20)
        };
        self.next_train = now + pause;
        (0..LENGTH).for_each(|index| self.send(Kind::Train, number, index));
    }

    /// Sends a probe. One that cannot leave counts like one that got lost on the way.
    pub(super) fn send(&mut self, kind: Kind, train: u32, sequence: u32) {
        let mut buffer = [0; TRAIN_PAYLOAD];
        let to = SocketAddrV4::new(self.settings.neighbour_address, PORT);
        let sent = now_ns().and_then(|time_ns| {
            let probe = Probe { kind, train, sequence, time_ns, value: 0 };
            let payload = probe.write(&mut buffer);
            self.traffic.probe_sent(payload.len() as u64 + HEADERS);
            self.socket.send(payload, to)
        });
        if let Err(error) = sent {
            tracing::trace!(neighbour = %self.settings.neighbour, %error, "link probe not sent");
        }
    }

    /// What was measured. Against a declared rate one train proves nothing: other traffic may have begun
    /// beside it.
    fn capacity_told(&self) -> Option<BitRate> {
        let enough = self.settings.capacity.is_none() || self.track.trains_read() >= TRAINS_AGAINST_DECLARED;
        self.track.capacity().filter(|_| enough)
    }

    pub(super) fn report(&self) -> LinkReport {
        LinkReport {
            neighbour: self.settings.neighbour.clone(),
            interface: self.settings.interface.clone(),
            address: self.settings.address,
            capacity_declared: self.settings.capacity,
            capacity_measured: self.capacity_told(),
            rtt_min_us: self.track.rtt_min_us(),
            rtt_median_us: self.track.rtt_median_us(),
            loss_permille: self.track.loss_permille(),
            up: self.is_up(),
            pulls: false,
        }
    }
}

/// `mean`, give or take up to `percent` of it.
pub(super) fn jittered(mean: Duration, percent: u32) -> Duration {
    mean * fastrand::u32(100 - percent..=100 + percent) / 100
}

/// Whether a listener wants to know at once: presence, 5% of capacity, 2% of loss, or twice the time.
pub(super) fn differs(new: &LinkReport, old: &LinkReport) -> bool {
    let capacity = match (new.capacity_measured, old.capacity_measured) {
        (Some(new), Some(old)) => new.0.abs_diff(old.0) > old.0 / 20,
        (new, old) => new.is_some() != old.is_some(),
    };
    let time = match (new.rtt_median_us, old.rtt_median_us) {
        (Some(new), Some(old)) => new.abs_diff(old) > new.min(old).max(1000),
        (new, old) => new.is_some() != old.is_some(),
    };
    new.up != old.up || capacity || time || new.loss_permille.abs_diff(old.loss_permille) >= 20
}
