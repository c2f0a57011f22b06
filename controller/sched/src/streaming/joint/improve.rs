//! Better seats for members: other paths, other nodes, or a place that another member gives up.
//!
//! The slowest members come first. Each change is judged by what all throughputs are worth after it, less
//! what it costs: while tasks move a job makes no items, so a move has to pay within the horizon, several
//! times over, since the next arrival may ask for another.

use super::super::params::{CLAIMS, EQUAL, EVICTIONS, IMPROVEMENTS, MOVE_MARGIN, REROUTE_S, WORTH_EXPONENT};
use super::super::paths::paths;
use super::super::search::onward;
use super::super::{Case, Placed};
use super::member::{Member, Seat, seat};
use super::room::{Room, starves_nobody};
use crate::ledger::Ledger;
use crate::snapshot::Change;

/// Other seats for some members, and what they gain.
#[derive(Debug)]
struct Trial {
    seats: Vec<(usize, Seat)>,
    gain: f64,
}

/// The room, what its members reach, and the best trial of the member at hand.
pub(super) struct Improve<'r, 'a> {
    pub(super) room: &'r mut Room<'a>,
    pub(super) items: Vec<f64>,
    worth: f64,
    best: Option<Trial>,
}

/// Changes seats as far as that gains.
pub(super) fn improve(room: &mut Room<'_>) {
    let items = room.items_per_s(&[]);
    let worth = room.worth(&items, &[]);
    let mut search = Improve { room, items, worth, best: None };
    for _ in 0..IMPROVEMENTS {
        if !search.round() {
            break;
        }
    }
}

impl Improve<'_, '_> {
    /// One look at each member, the slowest first; false where nothing gained.
    fn round(&mut self) -> bool {
        let mut order: Vec<usize> = (0..self.room.members.len()).collect();
        order.sort_by(|x, y| self.items[*x].total_cmp(&self.items[*y]).then(x.cmp(y)));
        let (mut any, mut evictions) = (false, 0);
        for (claims, job) in order.into_iter().enumerate() {
            self.reroute(job);
            let newcomer = self.room.members[job].held.is_none();
            let free = (claims < CLAIMS || newcomer) && self.claim(job);
            if !free {
                self.reseat(job);
            }
            if evictions < EVICTIONS {
                evictions += usize::from(self.evict(job));
            }
            if let Some(trial) = self.best.take() {
                self.take(trial);
                any = true;
            }
        }
        any
    }

    fn take(&mut self, trial: Trial) {
        let before = std::mem::take(&mut self.items);
        let changed: Vec<usize> = trial.seats.iter().map(|(job, _)| *job).collect();
        for (job, seat) in trial.seats {
            self.room.members[job].seat = seat;
        }
        self.items = self.room.items_per_s(&[]);
        self.worth = self.room.worth(&self.items, &[]);
        for job in changed {
            let (old, new): (f64, f64) = (before.iter().sum(), self.items.iter().sum());
            let own = format!("{:.3} -> {:.3} items/s here", before[job], self.items[job]);
            self.room.members[job].why = Some(format!("{own}, {old:.3} -> {new:.3} in all jobs together"));
        }
    }

    /// Notes the seats if they gain more than the best so far.
    pub(super) fn judge(&mut self, seats: Vec<(usize, Seat)>) {
        let items = self.room.items_per_s(&seats);
        if seats.iter().any(|(job, seat)| !self.room.works(seat, items[*job])) {
            return;
        }
        if !starves_nobody(&self.items, &items) || !self.room.rules_hold(&seats) {
            return;
        }
        let more = |(job, seat): &(usize, Seat)| {
            self.cost(*job, seat) - self.cost(*job, &self.room.members[*job].seat)
        };
        let gain = self.room.worth(&items, &seats) - self.worth - seats.iter().map(more).sum::<f64>();
        // As among a newcomer's candidates, less than this is no difference.
        let own: f64 = seats.iter().map(|(job, _)| self.items[*job].powf(WORTH_EXPONENT)).sum();
        let least = own * WORTH_EXPONENT * EQUAL;
        if gain > self.best.as_ref().map_or(least, |best| best.gain.max(least)) {
            self.best = Some(Trial { seats, gain });
        }
    }

    /// What a seat costs a running job: the worth of the items that it does not make during the change,
    /// spread over the horizon.
    fn cost(&self, job: usize, seat: &Seat) -> f64 {
        let member = &self.room.members[job];
        let Some(held) = member.held else { return 0.0 };
        let policy = self.room.world.policy;
        let rerouted = || {
            let old = held.plan.flows.iter().map(|flow| flow.path.clone());
            !old.eq(seat.flows.iter().map(|flow| self.room.world.names_of(&flow.path)))
        };
        let pause_s = match member.moves_to(self.room.world, &seat.nodes) {
            true => policy.migration_s * MOVE_MARGIN,
            false if rerouted() => REROUTE_S,
            false => return 0.0,
        };
        let items = self.items[job].max(held.plan.prediction.items_per_s);
        WORTH_EXPONENT * items.powf(WORTH_EXPONENT) * pause_s / policy.horizon_s.max(pause_s)
    }

    /// Other paths between the same nodes.
    fn reroute(&mut self, job: usize) {
        let member = &self.room.members[job];
        if member.change < Change::Routes || member.seat.flows.is_empty() {
            return;
        }
        let Some(seat) = self.routed(job, member.seat.nodes.clone()) else { return };
        let paths = |seat: &Seat| seat.flows.iter().map(|flow| flow.path.clone()).collect::<Vec<_>>();
        if paths(&seat) != paths(&self.room.members[job].seat) {
            self.judge(vec![(job, seat)]);
        }
    }

    /// A placement with paths over what the others leave.
    pub(super) fn routed(&self, job: usize, nodes: Vec<usize>) -> Option<Seat> {
        let member = &self.room.members[job];
        let ledger = self.room.ledger(Some(job), &self.items);
        let case = Case { world: self.room.world, graph: &member.graph, ledger: &ledger };
        let flows = paths(&case, &nodes, &self.room.links_for(Some(job), &self.items))?;
        Some(seat(self.room.world, &member.graph, nodes, flows))
    }

    /// Other nodes, from where the job is.
    fn reseat(&mut self, job: usize) {
        if self.room.members[job].change < Change::Placement {
            return;
        }
        let ledger = self.room.ledger(Some(job), &self.items);
        let start = self.room.members[job].seat.nodes.clone();
        if let Some(seat) = self.walk(&ledger, job, start.clone()).filter(|seat| seat.nodes != start) {
            self.judge(vec![(job, seat)]);
        }
    }

    /// Where the placement search comes to from a start.
    pub(super) fn walk(&mut self, ledger: &Ledger, job: usize, start: Vec<usize>) -> Option<Seat> {
        let links = self.room.links_for(Some(job), &self.items);
        let Member { graph, pulls, .. } = &self.room.members[job];
        let case = Case { world: self.room.world, graph, ledger };
        let start = Placed { nodes: start, reasons: Vec::new() };
        let found = onward(&case, &links, (start, pulls), &mut self.room.tables)?;
        let seat = seat(self.room.world, graph, found.placed.nodes, found.flows);
        Some(Seat { reasons: found.placed.reasons, ..seat })
    }
}
