//! One registry's loop: what is due is asked, a few questions at a time; what comes back decides what is due.
//!
//! A question that the registry does not answer counts against the registry only if it does not answer a simple one
//! either. Then it is away: nothing is asked but that, after growing pauses, and what is known stays.

use super::Interest;
use super::ask::{List, News, ask};
use crate::catalogue::{Place, TAGS_MAX};
use crate::client::Asked;
use crate::error::RegistryError;
use crate::notified::Hint;
use crate::reference::{Reference, Version};
use crate::registry::{Registry, now_ms};
use crate::rota::{Ask, Outcome, Rota};
use edgeloom_common::registry::RegistryHost;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Questions to one registry at a time.
const AT_ONCE: usize = 4;
/// Questions that a registry's lists may lead to: its repositories and tags.
const QUESTIONS_MAX: usize = 2 * TAGS_MAX;
/// The longest pause while a registry is away.
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// Without anything due the loop looks again after this.
const IDLE: Duration = Duration::from_secs(60);

/// A question, when it was asked, and what came back.
type Answered = (Ask, Instant, Result<News, RegistryError>);

/// The loop's state.
pub(super) struct HostWatch {
    registry: Arc<Registry>,
    host: RegistryHost,
    interest: watch::Receiver<Interest>,
    hints: broadcast::Receiver<Hint>,
    /// Of images that jobs use.
    used: BTreeSet<Ask>,
    rota: Rota,
    begun: Instant,
    /// When the registry came back last: what was asked before went wrong for that reason.
    back: Instant,
}

impl HostWatch {
    pub(super) fn new(
        registry: Arc<Registry>,
        host: RegistryHost,
        interest: watch::Receiver<Interest>,
    ) -> Self {
        let hints = registry.hints.subscribe();
        let (used, rota, begun) = (BTreeSet::new(), Rota::new(0), Instant::now());
        Self { registry, host, interest, hints, used, rota, begun, back: begun }
    }

    /// Steady time, which the rota counts in.
    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(super) async fn run(mut self, period: Duration) {
        self.rota = Rota::new(u64::try_from(period.as_millis()).unwrap_or(u64::MAX));
        self.look();
        let mut asked: JoinSet<Answered> = JoinSet::new();
        loop {
            while asked.len() < AT_ONCE
                && let Some(next) = self.rota.next(self.elapsed_ms())
            {
                asked.spawn(self.question(next));
            }
            let room = asked.len() < AT_ONCE;
            let next = self.rota.next_ms().filter(|_| room).map(Duration::from_millis);
            let until = self.begun + next.unwrap_or_else(|| self.begun.elapsed() + IDLE);
            tokio::select! {
                Some(answered) = asked.join_next() => {
                    // Nobody knows which question broke off: the loop is begun anew.
                    let Ok((of, at, result)) = answered else { return };
                    if let Err(error) = &result {
                        self.leave_alone(error, at).await;
                    }
                    match &result {
                        Err(RegistryError::Unreachable { .. }) if self.was_away(at, period).await => {
                            self.rota.done(&of, Outcome::Same, self.elapsed_ms());
                        }
                        _ => self.take_in(&of, result),
                    }
                }
                changed = self.interest.changed() => match changed {
                    Ok(()) => self.look(),
                    Err(_) => return,
                },
                hint = self.hints.recv() => self.hinted(hint),
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    fn question(&self, next: Ask) -> impl Future<Output = Answered> + Send + 'static {
        let (registry, host) = (self.registry.clone(), self.host.clone());
        let login = self.interest.borrow().login.clone();
        async move {
            let at = Instant::now();
            let result = ask(&registry, (&host, login.as_ref()), &next).await;
            (next, at, result)
        }
    }

    /// Compares what is asked with what is of interest now.
    fn look(&mut self) {
        let interest = self.interest.borrow_and_update().clone();
        let now_ms = self.elapsed_ms();
        self.used = interest.images.iter().filter_map(|name| tag_of(name)).collect();
        for ask in self.used.iter().cloned() {
            self.rota.add(ask, now_ms);
        }
        let unwatched = |place: &Place| !interest.catalogue && !self.used.contains(&question(place));
        let mut catalogue = self.registry.lock();
        // Those of the cache, and those that somebody asked for once.
        for place in catalogue.places(&self.host) {
            if unwatched(&place) {
                self.rota.remove(&question(&place));
                catalogue.remove(&place);
            } else {
                self.rota.add(question(&place), now_ms);
            }
        }
        drop(catalogue);
        if interest.catalogue {
            self.rota.add(Ask::Catalogue, now_ms);
        } else {
            self.rota.remove(&Ask::Catalogue);
            self.registry.lock().standing(&self.host).limit = None;
        }
    }

    fn hinted(&mut self, hint: Result<Hint, RecvError>) {
        let now_ms = self.elapsed_ms();
        match hint {
            Ok(hint) if hint.host == self.host => {
                let repository: Arc<str> = hint.repository.into();
                let all = self.interest.borrow().catalogue;
                let tag = hint.tag.map(|tag| Ask::Tag(repository.clone(), tag.into()));
                let asks = tag.into_iter().chain([Ask::Tags(repository)]);
                // What nobody asks for otherwise is not asked for because somebody says so.
                let room = all && self.rota.len() < QUESTIONS_MAX;
                let wanted: Vec<_> = asks.filter(|ask| room || self.used.contains(ask)).collect();
                wanted.into_iter().for_each(|ask| self.rota.hint(ask, now_ms));
            }
            // Some were missed, of this registry maybe.
            Err(RecvError::Lagged(_)) => self.rota.wake(now_ms),
            Ok(_) | Err(RecvError::Closed) => {}
        }
        self.registry.lock().standing(&self.host).notifies = self.rota.rests();
    }

    fn take_in(&mut self, of: &Ask, result: Result<News, RegistryError>) {
        let outcome = match (of, result) {
            (Ask::Catalogue, Ok(News::Names(list))) => self.listed(list),
            (Ask::Tags(repository), Ok(News::Names(list))) => self.tagged(repository, list),
            (_, Ok(News::Tag(outcome))) => outcome,
            (Ask::Catalogue, Err(error)) => {
                let watched = match self.rota.repositories().is_empty() {
                    true => "only images of jobs are watched",
                    false => "new repositories are not seen",
                };
                let limit = format!("{watched}: {error}");
                self.registry.lock().standing(&self.host).limit = Some(limit);
                Outcome::Failed
            }
            (Ask::Tag(repository, tag), Err(error)) => {
                let (repository, tag) = (repository.clone(), tag.clone());
                let place = Place { host: self.host.clone(), repository, tag };
                self.registry.lock().fail(&place, &error.to_string());
                Outcome::Failed
            }
            (_, Err(error)) => {
                self.registry.lock().standing(&self.host).limit = Some(error.to_string());
                Outcome::Failed
            }
            (_, Ok(News::Names(_))) => Outcome::Failed,
        };
        self.rota.done(of, outcome, self.elapsed_ms());
        self.registry.lock().standing(&self.host).notifies = self.rota.rests();
    }

    /// Watches the tags of the repositories listed, and of no others.
    fn listed(&mut self, list: List) -> Outcome {
        let (now_ms, whole) = (self.elapsed_ms(), list.cut.is_none());
        self.registry.lock().standing(&self.host).limit = list.cut;
        let mut outcome = Outcome::Same;
        let known: BTreeSet<Arc<str>> = self.rota.repositories();
        for gone in known.iter().filter(|name| whole && !list.names.contains(&***name)) {
            self.tagged(gone, List::default());
            self.rota.remove(&Ask::Tags(gone.clone()));
            outcome = Outcome::Changed;
        }
        for name in list.names.iter().filter(|name| !known.contains(name.as_str())) {
            self.add(Ask::Tags(name.as_str().into()), now_ms);
            outcome = Outcome::Changed;
        }
        outcome
    }

    /// Watches the tags listed, and of the repository's others those that jobs use.
    fn tagged(&mut self, repository: &Arc<str>, list: List) -> Outcome {
        let (now_ms, whole) = (self.elapsed_ms(), list.cut.is_none());
        if list.cut.is_some() {
            self.registry.lock().standing(&self.host).limit = list.cut;
        }
        let mut outcome = Outcome::Same;
        let known = self.rota.tags(repository);
        for gone in known.iter().filter(|name| whole && !list.names.contains(&***name)) {
            let ask = Ask::Tag(repository.clone(), gone.clone());
            if !self.used.contains(&ask) {
                let place =
                    Place { host: self.host.clone(), repository: repository.clone(), tag: gone.clone() };
                self.registry.lock().remove(&place);
                self.rota.remove(&ask);
                outcome = Outcome::Changed;
            }
        }
        for name in list.names.iter().filter(|name| !known.contains(name.as_str())) {
            self.add(Ask::Tag(repository.clone(), name.as_str().into()), now_ms);
            outcome = Outcome::Changed;
        }
        outcome
    }

    /// A question that the registry's lists lead to, if there are not too many.
    fn add(&mut self, ask: Ask, now_ms: u64) {
        if self.rota.len() < QUESTIONS_MAX {
            return self.rota.add(ask, now_ms);
        }
        let limit =
            format!("it has over {QUESTIONS_MAX} repositories and tags, the first of them are watched");
        self.registry.lock().standing(&self.host).limit = Some(limit);
    }

    /// A registry that wants a pause gets it, once for all that was asked before.
    async fn leave_alone(&mut self, error: &RegistryError, at: Instant) {
        if let RegistryError::Unreachable { again: Some(pause), .. } = error
            && self.back <= at
        {
            self.away(error);
            tokio::time::sleep(*pause).await;
        }
    }

    /// Returns once the registry answers; says whether it did not when it was asked `at` some time.
    async fn was_away(&mut self, at: Instant, period: Duration) -> bool {
        let mut pause = period;
        loop {
            let login = self.interest.borrow().login.clone();
            let (client, host, subject) = (&self.registry.client, &self.host, "its version");
            let asked = Asked { client, subject, host, login: login.as_ref(), part: "" };
            let checked = asked.version_check().await;
            // Whatever else it says, it is there.
            let Err(error @ RegistryError::Unreachable { again, .. }) = &checked else { break };
            self.away(error);
            tokio::time::sleep(again.unwrap_or(pause)).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        if self.registry.lock().standing(&self.host).away.take().is_some() {
            tracing::info!(registry = %self.host, "a registry is back");
            self.back = Instant::now();
        }
        at < self.back
    }

    fn away(&self, error: &RegistryError) {
        let mut catalogue = self.registry.lock();
        let away = &mut catalogue.standing(&self.host).away;
        if away.is_none() {
            tracing::warn!(registry = %self.host, %error, "a registry is away; its images are as they were");
        }
        let since_ms = away.as_ref().map_or_else(now_ms, |(since_ms, _)| *since_ms);
        *away = Some((since_ms, error.to_string()));
    }
}

fn question(place: &Place) -> Ask {
    Ask::Tag(place.repository.clone(), place.tag.clone())
}

/// The question after an image's tag; none of a name with a digest, which never changes.
fn tag_of(name: &str) -> Option<Ask> {
    let reference = Reference::parse(name)?;
    match reference.version {
        Version::Tag(tag) => Some(Ask::Tag(reference.repository.into(), tag.into())),
        Version::Digest(_) => None,
    }
}
