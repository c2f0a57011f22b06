//! The asking side: one task with one timer sends the echoes of all links together each second, twice as
//! often while a link is in use, asks again where an answer is late, runs at most one train at a time, and
//! tells what came of it.

use super::answer::{Answer, Answerer, Measured, Peer};
use super::link::{Link, TRAIN_END_AFTER, differs, jittered};
use super::packet::Kind;
use super::socket::ProbeSocket;
use super::track::{Presence, Track};
use super::traffic::{self, Traffic};
use super::train::Arrivals;
use super::{LinkEvent, LinkSettings, LinksError, PORT};
use edgeloom_common::report::LinkReport;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

const PROBE_EVERY: Duration = Duration::from_secs(1);
/// A sender doubles its pause each time that it tries again: what is found before 1.4 s saves it the next.
const PROBE_IN_USE_EVERY: Duration = Duration::from_millis(500);
/// When the result of a train is waited for no longer.
const TRAIN_OVER_AFTER: Duration = Duration::from_secs(2);
const REPORT_EVERY: Duration = Duration::from_secs(60);
const ANSWERS_QUEUED: usize = 64;

/// The train under way.
#[derive(Debug, Clone, Copy)]
struct Train {
    link: usize,
    number: u32,
    sent: Instant,
    end_sent: bool,
}

/// Probes all links of this node.
#[derive(Debug)]
pub struct Prober {
    links: Vec<Link>,
    answerers: Vec<Answerer>,
    train: Option<Train>,
    trains_sent: u32,
    next_probe: Instant,
    reported: Vec<LinkReport>,
    next_report: Instant,
}

impl Prober {
    /// Opens one socket for each of our link addresses, in the network namespace of the calling
    /// thread. To be called within a tokio runtime.
    ///
    /// # Errors
    /// When two links cannot be told apart, or a socket cannot be bound.
    pub fn open(settings: Vec<LinkSettings>) -> Result<Self, LinksError> {
        check(&settings)?;
        let now = Instant::now();
        let mut answerers: BTreeMap<Ipv4Addr, Answerer> = BTreeMap::new();
        let mut links = Vec::with_capacity(settings.len());
        for (index, link) in settings.into_iter().enumerate() {
            let address = SocketAddrV4::new(link.neighbour_address, PORT);
            let answerer = match answerers.entry(link.address) {
                std::collections::btree_map::Entry::Occupied(found) => found.into_mut(),
                std::collections::btree_map::Entry::Vacant(place) => place.insert(answerer(link.address)?),
            };
            answerer.peers.push(Peer { link: index, address, arrivals: Arrivals::default() });
            let socket = Arc::clone(&answerer.socket);
            let track = Track::default();
            let announced = Presence::Unknown;
            let traffic = Traffic::default();
            links.push(Link {
                settings: link,
                socket,
                track,
                announced,
                trains_sent: 0,
                next_train: now,
                last_train: now,
                traffic,
            });
        }
        let answerers = answerers.into_values().collect();
        let (train, reported) = (None, Vec::new());
        Ok(Self { links, answerers, train, trains_sent: 0, next_probe: now, reported, next_report: now })
    }

    /// Probes until the listener has gone. `lost` names interfaces that have lost their carrier.
    pub async fn run(mut self, events: mpsc::Sender<LinkEvent>, mut lost: broadcast::Receiver<String>) {
        let (sender, mut answers) = mpsc::channel(ANSWERS_QUEUED);
        let mut tasks = JoinSet::new();
        for answerer in std::mem::take(&mut self.answerers) {
            tasks.spawn(answerer.run(sender.clone()));
        }
        loop {
            tokio::select! {
                () = events.closed() => return,
                Some(answer) = answers.recv() => self.take(answer),
                Ok(interface) = lost.recv() => self.carrier_lost(&interface),
                () = sleep_until(self.next_deadline()) => {}
            }
            let now = Instant::now();
            let due = now >= self.next_probe;
            if due {
                self.look_at_traffic(now);
                let in_use = self.links.iter().any(Link::is_in_use);
                let period = if in_use { PROBE_IN_USE_EVERY } else { PROBE_EVERY };
                self.next_probe = now + jittered(period, 10);
                self.links.iter_mut().for_each(|link| link.send_echo(now));
            }
            self.links.iter_mut().for_each(|link| link.send_quick_echo(now));
            if self.announce(&events) || due {
                self.report(&events, now);
            }
            self.go_on_with_trains(now);
        }
    }

    /// An interface that the kernel does not list sends nothing.
    fn look_at_traffic(&mut self, now: Instant) {
        let sent = traffic::bytes_sent().unwrap_or_default();
        for link in &mut self.links {
            link.traffic.look(now, sent.get(&link.settings.interface).copied().unwrap_or(0));
        }
    }

    fn carrier_lost(&mut self, interface: &str) {
        let links = self.links.iter_mut().filter(|link| link.settings.interface == interface);
        links.for_each(|link| link.track.carrier_lost());
    }

    fn take(&mut self, answer: Answer) {
        let Some(link) = self.links.get_mut(answer.link) else {
            return;
        };
        match answer.measured {
            Measured::RoundTrip { sequence, rtt_us } => link.track.answered(sequence, rtt_us),
            Measured::Closed => link.track.closed(),
            Measured::Capacity { train, rate } => {
                let expected =
                    self.train.take_if(|current| (current.link, current.number) == (answer.link, train));
                if expected.is_some() {
                    link.train_read(rate);
                }
            }
        }
    }

    fn next_deadline(&self) -> Instant {
        let train = match self.train {
            Some(train) if train.end_sent => Some(train.sent + TRAIN_OVER_AFTER),
            Some(train) => Some(train.sent + TRAIN_END_AFTER),
            None => self.links.iter().filter(|link| link.is_up()).map(|link| link.next_train).min(),
        };
        let quick = self.links.iter().filter_map(|link| link.track.quick_at()).min();
        [train, quick].into_iter().flatten().fold(self.next_probe, Instant::min)
    }

    fn go_on_with_trains(&mut self, now: Instant) {
        if let Some(train) = &mut self.train {
            if now >= train.sent + TRAIN_OVER_AFTER {
                self.train = None;
            } else if !train.end_sent && now >= train.sent + TRAIN_END_AFTER {
                train.end_sent = true;
                let (link, number) = (train.link, train.number);
                self.links[link].send(Kind::TrainEnd, number, 0);
            }
            return;
        }
        let Some(index) = self.links.iter_mut().position(|link| link.is_train_due(now)) else {
            return;
        };
        self.trains_sent = self.trains_sent.wrapping_add(1);
        self.train = Some(Train { link: index, number: self.trains_sent, sent: now, end_sent: false });
        self.links[index].send_train(self.trains_sent, now);
    }

    /// Tells of neighbours that came or went, and whether any did. What a full channel refuses is told at the
    /// next turn.
    fn announce(&mut self, events: &mpsc::Sender<LinkEvent>) -> bool {
        let mut told = false;
        for link in &mut self.links {
            let presence = link.track.presence();
            let neighbour = || link.settings.neighbour.clone();
            let event = match presence {
                _ if presence == link.announced => continue,
                Presence::Unknown => continue,
                Presence::Up => LinkEvent::Up(neighbour()),
                Presence::Down => LinkEvent::Down(neighbour()),
            };
            if events.try_send(event).is_ok() {
                link.announced = presence;
                told = true;
            }
        }
        told
    }

    /// Reports all links once each is known, when something changed, and each minute.
    fn report(&mut self, events: &mpsc::Sender<LinkEvent>, now: Instant) {
        if self.links.is_empty() || self.links.iter().any(|link| link.track.presence() == Presence::Unknown) {
            return;
        }
        let report: Vec<LinkReport> = self.links.iter().map(Link::report).collect();
        let changed = report.len() != self.reported.len()
            || report.iter().zip(&self.reported).any(|(new, old)| differs(new, old));
        if !changed && now < self.next_report {
            return;
        }
        match events.try_send(LinkEvent::Report(report.clone())) {
            Ok(()) => (self.reported, self.next_report) = (report, now + REPORT_EVERY),
            Err(TrySendError::Full(_) | TrySendError::Closed(_)) => {}
        }
    }
}

fn check(settings: &[LinkSettings]) -> Result<(), LinksError> {
    for (index, link) in settings.iter().enumerate() {
        for other in &settings[..index] {
            if other.neighbour == link.neighbour {
                return Err(LinksError::Neighbour { neighbour: link.neighbour.clone() });
            }
            if (other.address, other.neighbour_address) == (link.address, link.neighbour_address) {
                let (first, second) = (other.neighbour.clone(), link.neighbour.clone());
                return Err(LinksError::Addresses { first, second });
            }
        }
    }
    Ok(())
}

fn answerer(address: Ipv4Addr) -> Result<Answerer, LinksError> {
    let address = SocketAddrV4::new(address, PORT);
    let socket = ProbeSocket::bind(address).map_err(|cause| LinksError::Socket { address, cause })?;
    Ok(Answerer { socket: Arc::new(socket), peers: Vec::new(), ignored: 0 })
}
