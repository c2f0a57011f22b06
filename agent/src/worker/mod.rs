//! The owner of the node's desired state: compares wanted with found and closes the difference.
//!
//! In: documents, connections and signals that something changed. Out: [`Observed`], whenever it
//! differs from the last one sent. Everything slow runs beside the loop in a set of actions, at most
//! one for each task, one pull and one kernel update at a time; each end of an action is taken into
//! [`NodeState`], which then says what to do next. Nothing is remembered about *how* a state was
//! reached, so lost, repeated or reordered messages do no harm.
//!
//! Invariant: network before container when something starts; a lowered rate does not wait for a
//! container that is still stopping.

mod act;
mod contact;
mod containers;
mod images;
mod kernel;
mod observed;
mod state;
mod task;
#[cfg(test)]
mod tests;

pub(crate) use state::NodeState;

use crate::accept::{Refusal, Verdict, judge};
use crate::collect::{Collection, InForce};
use crate::contact::ContactFile;
use crate::counts::Counts;
use crate::engine::{ContainerEngine, Owner};
use crate::layers::Exchange;
use crate::network::NetworkThread;
use crate::notify::Pulse;
use crate::secrets::SecretFiles;
use crate::store::{DesiredFile, Event, History, Loaded};
use crate::wire::{Received, Up};
use act::{Actions, Done, Files};
use contact::Contact;
use containers::by_key;
use edgeloom_common::desired::DesiredState;
use edgeloom_common::report::Observed;
use edgeloom_notify::Service;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often everything is compared anew without a sign of change: bounds what a lost signal costs.
const LOOK_PERIOD: Duration = Duration::from_secs(15);
/// How often a pull's progress is told.
const PROGRESS_PERIOD: Duration = Duration::from_secs(1);

/// What the worker is told.
#[derive(Debug)]
pub(crate) enum Command {
    Desired(Box<Received>),
    /// A document came that is none.
    Refused(Refusal),
    /// The controller has lost what it wanted of this node.
    DocumentAsked,
    /// The controller may have lost what was said: say it again.
    Connected,
    /// The session ended; it was heard of last at this time.
    Disconnected(Instant),
    /// Containers changed.
    EngineChanged,
    /// The engine went away and came back: images and network may differ too.
    EngineRestarted,
    /// Somebody changed links, routes or classes.
    KernelChanged,
    /// Images came or went.
    ImagesChanged,
    /// Images were removed to make room, or there is too little of it.
    Collected(Box<Collection>),
}

/// What the worker works with.
#[derive(Debug)]
pub(crate) struct Settings<E> {
    pub owner: Owner,
    /// Name of network and bridge.
    pub bridge: String,
    pub engine: Arc<E>,
    pub network: NetworkThread,
    pub file: DesiredFile,
    pub contact: ContactFile,
    pub history: History,
    /// Neighbours that layers come from and go to.
    pub exchange: Option<Exchange>,
    /// What containers use.
    pub counts: Counts,
    pub secrets: SecretFiles,
}

/// The worker; [`Worker::run`] is its life.
#[derive(Debug)]
pub(crate) struct Worker<E> {
    state: NodeState,
    actions: Actions<E>,
    owner: Owner,
    exchange: Option<Exchange>,
    up: mpsc::Sender<Up>,
    sent: Option<Observed>,
    /// The controller waits for the document in force.
    asked: bool,
    pulse: Pulse,
    in_force: watch::Sender<Option<Arc<DesiredState>>>,
}

impl<E: ContainerEngine> Worker<E> {
    /// A worker that goes on with the document on disk.
    pub(crate) fn new(settings: Settings<E>, up: mpsc::Sender<Up>) -> Self {
        let Settings { owner, bridge, engine, network, file, contact, history, exchange, counts, secrets } =
            settings;
        let mut state = NodeState::new(history, Contact::at_start(contact.load(), Instant::now()));
        state.ends.counts = counts.clone();
        match file.load() {
            Ok(Some(Loaded { document, confidential, remark, closed })) => {
                match judge(&document, None, &owner) {
                    Ok(_) => {
                        exchange.iter().for_each(|exchange| exchange.follow(&document));
                        state.take(Received { document, confidential });
                    }
                    Err(refusal) => state.refused(refusal.to_string()),
                }
                if let Some(closed) = closed {
                    tracing::error!(%closed, "desired state");
                    state.refused(closed.to_string());
                }
                if let Some(remark) = remark {
                    tracing::error!(%remark, "desired state");
                    state.refused(remark.to_string());
                }
            }
            Ok(None) => {}
            Err(error) => state.refused(error.to_string()),
        }
        state.saved(state.version());
        // What was written for a container that was never made, when the agent died in between.
        secrets.retain(&state.desired().map(by_key).unwrap_or_default().into_keys().collect());
        let files = Files { desired: file, contact, secrets };
        let actions = Actions::new((engine, counts), network, bridge, files);
        let (pulse, in_force) = (Pulse::default(), watch::Sender::new(state.desired.clone()));
        Self { state, actions, owner, exchange, up, sent: None, asked: false, pulse, in_force }
    }

    /// Tells the service manager how this worker stands, and that it is not stuck.
    pub(crate) fn watched_by(self, service: Service) -> Self {
        Self { pulse: Pulse::new(service), ..self }
    }

    /// The document in force, from now on.
    pub(crate) fn in_force(&self) -> InForce {
        self.in_force.subscribe()
    }

    /// Whether a document would be taken, or is the one in force.
    pub(crate) fn check(&self, document: &DesiredState) -> Result<(), Refusal> {
        judge(document, self.state.desired(), &self.owner).map(drop)
    }

    /// Reconciles until told to stop or until nobody can tell it anything any more.
    pub(crate) async fn run(mut self, mut commands: mpsc::Receiver<Command>, stop: CancellationToken) {
        let mut look = tokio::time::interval(LOOK_PERIOD);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let up = self.up.clone();
        loop {
            self.actions.advance(&mut self.state);
            let now = self.state.observed();
            self.pulse.tell(self.state.has_begun(), &now);
            let next = (self.sent.as_ref() != Some(&now)).then_some(now);
            let asked = self.asked;
            let wake = self.wake();
            tokio::select! {
                () = stop.cancelled() => return,
                command = commands.recv() => match command {
                    Some(command) => self.follow(command),
                    None => return,
                },
                done = self.actions.next() => self.absorb(done),
                _ = look.tick() => self.state.look_again(),
                () = tokio::time::sleep_until(wake) => {}
                () = self.pulse.due() => self.pulse.beat(self.state.is_stuck(Instant::now())),
                permit = up.reserve(), if next.is_some() || asked => {
                    let Ok(permit) = permit else { return };
                    self.say(permit, next);
                }
            }
        }
    }

    /// What is observed, if that is news; else the document, which was asked for.
    fn say(&mut self, permit: mpsc::Permit<'_, Up>, news: Option<Observed>) {
        if let Some(news) = news {
            self.note(&news);
            permit.send(Up::Observed(news.clone()));
            self.sent = Some(news);
            return;
        }
        self.asked = false;
        if let Some(document) = &self.state.desired {
            tracing::info!(
                generation = document.generation,
                "the controller asks what it wanted of this node"
            );
            permit.send(Up::Held(Arc::clone(document)));
        }
    }

    /// Whoever reads the log sees when a change, or a start, was done.
    fn note(&self, next: &Observed) {
        let before = self.sent.as_ref().is_some_and(|sent| sent.converged && sent.version == next.version);
        if next.converged && !before {
            tracing::info!(generation = next.version.generation, "the node is as desired");
        }
    }

    fn follow(&mut self, command: Command) {
        match command {
            Command::Desired(received) => self.judge(*received),
            Command::Refused(refusal) => self.refuse(&refusal),
            Command::Connected => {
                (self.sent, self.asked) = (None, false);
                self.state.ends.connected = Some(Instant::now());
            }
            Command::DocumentAsked => self.asked = true,
            Command::Disconnected(heard) => {
                self.state.ends.connected = None;
                self.state.contact.lost(heard);
            }
            Command::EngineChanged => self.state.containers_changed(),
            Command::EngineRestarted => self.state.engine_restarted(),
            Command::KernelChanged => self.state.network_changed(),
            Command::ImagesChanged => self.state.images.recheck(),
            Command::Collected(collection) => self.state.collected(*collection),
        }
    }

    fn judge(&mut self, received: Received) {
        match judge(&received.document, self.state.desired(), &self.owner) {
            Ok(Verdict::Take) => {
                let version = received.document.version();
                tracing::info!(epoch = version.epoch, generation = version.generation, "desired state taken");
                self.state.history().append(&Event::Taken(version));
                self.exchange.iter().for_each(|exchange| exchange.follow(&received.document));
                self.state.take(received);
                self.in_force.send_replace(self.state.desired.clone());
                self.state.contact.confirmed();
            }
            // Whoever repeats a document has not heard what became of it.
            Ok(Verdict::Repeat) => {
                self.state.take_again(&received);
                self.state.contact.confirmed();
                self.sent = None;
            }
            Err(refusal) => self.refuse(&refusal),
        }
    }

    fn refuse(&mut self, refusal: &Refusal) {
        tracing::warn!(%refusal, "desired state refused");
        self.state.refused(refusal.to_string());
        self.sent = None;
    }

    fn absorb(&mut self, done: Done) {
        self.state.absorb(done, Instant::now());
    }

    /// When to look without being told: the end of the next pause, or a pull's next progress.
    fn wake(&self) -> Instant {
        let now = Instant::now();
        let progress = self.state.is_pulling().then(|| now + PROGRESS_PERIOD);
        let pause = self.state.next_pause(now);
        progress.into_iter().chain(pause).min().unwrap_or(now + LOOK_PERIOD)
    }
}
