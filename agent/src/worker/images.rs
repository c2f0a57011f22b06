//! The images of the document: which are there, which is on its way, when to try again.
//!
//! Pulls go one at a time in the order of [`DesiredState::images`]: the controller foretells with it which
//! pull fetches a layer that several images share. Images to hold ready come after all that tasks wait for, and
//! give way to them also in the middle.

use super::act::Todo;
use crate::engine::{EngineError, PullProgress};
use crate::task::backoff::{Backoff, jitter};
use crate::task::step::Image;
use edgeloom_common::confidential::{Confidential, Login};
use edgeloom_common::desired::{DesiredState, ImageRef, Prefetch};
use edgeloom_common::registry::RegistryHost;
use edgeloom_common::report::{PrefetchPhase, PrefetchState, PullState};
use edgeloom_common::units::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::watch;
use tokio::time::{Duration, Instant};

/// All images of the document in force.
#[derive(Debug, Default)]
pub(super) struct Images {
    records: BTreeMap<ImageRef, Record>,
    /// Layers share a link: one pull at a time is as fast, and its progress can be foreseen.
    pulling: Option<ImageRef>,
    /// Were to be held ready, and removed to make room: fetching them again would go round in a circle.
    let_go: BTreeSet<ImageRef>,
    /// There is no room for what nobody needs yet.
    is_tight: bool,
}

#[derive(Debug)]
struct Record {
    image: Image,
    looking: bool,
    /// It was here, and may have been removed since.
    doubted: bool,
    pull: Option<Pull>,
    backoff: Backoff,
    pause: Option<Instant>,
    /// What the last attempt failed with, while the next ones are under way too.
    error: String,
}

#[derive(Debug)]
struct Pull {
    progress: watch::Receiver<PullProgress>,
    began: Instant,
    took: Option<Duration>,
    done: bool,
    error: String,
}

/// What is next for one image.
enum Next {
    Look,
    /// It is being looked for.
    Wait,
    Pull,
    Nothing,
}

impl Default for Record {
    fn default() -> Self {
        let (image, backoff) = (Image::Unknown, Backoff::default());
        Self { image, looking: false, doubted: false, pull: None, backoff, pause: None, error: String::new() }
    }
}

impl Images {
    /// Keeps what is known of the images that the document needs. A pull on its way is kept too, since
    /// what it fetched would be thrown away.
    pub(super) fn retain(&mut self, document: &DesiredState) {
        let mut kept = BTreeMap::new();
        for image in needed(document).chain(ready(document).map(|(image, _)| image)) {
            let record = self.records.remove(image).unwrap_or_default();
            kept.entry(image.clone()).or_insert(record);
        }
        self.let_go.retain(|image| ready(document).any(|(ready, pinned)| ready == image && !pinned));
        self.records
            .retain(|_, record| record.pull.as_ref().is_some_and(|pull| !pull.done && pull.error.is_empty()));
        self.records.append(&mut kept);
    }

    /// Images came or went: those that were here are looked for once more, and count as here until then.
    pub(super) fn recheck(&mut self) {
        let here = self.records.values_mut().filter(|record| record.image == Image::Present);
        here.for_each(|record| record.doubted = true);
    }

    /// These were removed to make room, of which there is little.
    pub(super) fn collected(&mut self, let_go: Vec<ImageRef>, is_tight: bool) {
        self.let_go.extend(let_go);
        self.is_tight = is_tight;
        self.recheck();
    }

    /// Everything known may be wrong: the engine was restarted.
    pub(super) fn forget(&mut self) {
        for record in self.records.values_mut() {
            record.image = Image::Unknown;
            record.pause = None;
        }
    }

    /// Logins are others: what failed may be tried at once.
    pub(super) fn retry_now(&mut self) {
        self.records.values_mut().for_each(|record| record.pause = None);
    }

    /// Somebody may have removed this one.
    pub(super) fn doubt(&mut self, image: &ImageRef) {
        if let Some(record) = self.records.get_mut(image) {
            record.image = Image::Unknown;
        }
    }

    pub(super) fn state(&self, image: &ImageRef) -> Image {
        self.records.get(image).map_or(Image::Unknown, |record| record.image)
    }

    pub(super) fn is_pulling(&self) -> bool {
        self.pulling.is_some()
    }

    /// True once everything the document needs is here.
    pub(super) fn all_present(&self, document: &DesiredState) -> bool {
        document.images.iter().all(|image| self.state(image) == Image::Present)
    }

    /// Looks for unknown images, all at once; pulls the first missing one as soon as all before it are
    /// known. One that failed lets others pass until its pause is over.
    pub(super) fn next_actions(
        &mut self,
        document: &DesiredState,
        confidential: &Confidential,
        now: Instant,
    ) -> Vec<Todo> {
        let mut todo = Vec::new();
        let mut missing = None;
        let mut is_known = true;
        for image in needed(document) {
            match self.next(image, now) {
                Next::Look => todo.push(self.look(image)),
                Next::Pull if is_known && missing.is_none() => missing = Some(image),
                Next::Pull | Next::Nothing => continue,
                Next::Wait => {}
            }
            is_known &= missing.is_some();
        }
        let is_idle = is_known && missing.is_none();
        for (image, pinned) in ready(document) {
            let may_come = pinned || !(self.is_tight || self.let_go.contains(image));
            match self.next(image, now) {
                Next::Look => todo.push(self.look(image)),
                Next::Pull if is_idle && may_come && missing.is_none() => missing = Some(image),
                Next::Pull | Next::Wait | Next::Nothing => {}
            }
        }
        match (missing, &self.pulling) {
            (Some(image), None) => todo.push(self.pull(image, login(confidential, image), now)),
            (Some(_), Some(other)) if !is_idle && is_only_ready(document, other) => {
                let other = other.clone();
                self.give_way(&other);
            }
            _ => {}
        }
        todo
    }

    fn next(&mut self, image: &ImageRef, now: Instant) -> Next {
        let record = self.records.entry(image.clone()).or_default();
        let pausing = record.pause.is_some_and(|until| now < until);
        match record.image {
            Image::Unknown if record.looking => Next::Wait,
            Image::Unknown if !pausing => Next::Look,
            Image::Present if record.doubted && !record.looking => Next::Look,
            Image::Missing if !pausing => Next::Pull,
            _ => Next::Nothing,
        }
    }

    fn look(&mut self, image: &ImageRef) -> Todo {
        let record = self.records.entry(image.clone()).or_default();
        (record.looking, record.doubted) = (true, false);
        Todo::LookForImage(image.clone())
    }

    fn pull(&mut self, image: &ImageRef, login: Option<Login>, now: Instant) -> Todo {
        let (sender, progress) = watch::channel(PullProgress::default());
        let record = self.records.entry(image.clone()).or_default();
        record.pull = Some(Pull { progress, began: now, took: None, done: false, error: String::new() });
        self.pulling = Some(image.clone());
        Todo::Pull(image.clone(), login, sender)
    }

    /// A pull ends when nobody looks at its progress any more.
    fn give_way(&mut self, image: &ImageRef) {
        if let Some(record) = self.records.get_mut(image) {
            record.pull = None;
        }
    }

    pub(super) fn looked(&mut self, image: &ImageRef, found: Result<bool, EngineError>, now: Instant) {
        let Some(record) = self.records.get_mut(image) else {
            return;
        };
        record.looking = false;
        match found {
            Ok(true) => (record.image, record.error) = (Image::Present, String::new()),
            Ok(false) => record.image = Image::Missing,
            Err(_) => record.pause = Some(now + record.backoff.failed(jitter())),
        }
    }

    pub(super) fn pulled(&mut self, image: &ImageRef, result: Result<(), EngineError>, now: Instant) {
        self.pulling = None;
        let Some(record) = self.records.get_mut(image) else {
            return;
        };
        if let Err(EngineError::GaveWay { .. }) = result {
            (record.image, record.pull) = (Image::Unknown, None);
            return;
        }
        let error = match result {
            Ok(()) => {
                record.image = Image::Present;
                record.backoff.succeeded();
                String::new()
            }
            Err(error) => {
                tracing::warn!(image = %image.name, %error, "pull failed");
                record.image = Image::Unknown;
                record.pause = Some(now + record.backoff.failed(jitter()));
                error.to_string()
            }
        };
        if let Some(pull) = &mut record.pull {
            pull.done = error.is_empty();
            pull.took = Some(now.saturating_duration_since(pull.began));
            pull.error.clone_from(&error);
        }
        record.error = error;
    }

    /// The ends of all pauses.
    pub(super) fn pauses(&self) -> impl Iterator<Item = Instant> {
        self.records.values().filter_map(|record| record.pause)
    }

    /// True while the image is on its way.
    pub(super) fn is_pulling_image(&self, image: &ImageRef) -> bool {
        let pull = self.records.get(image).and_then(|record| record.pull.as_ref());
        pull.is_some_and(|pull| !pull.done && pull.error.is_empty())
    }

    /// What the last pull of an image failed with, until it is here.
    pub(super) fn error(&self, image: &ImageRef) -> &str {
        self.records.get(image).map_or("", |record| record.error.as_str())
    }

    /// How far the images to hold ready are.
    pub(super) fn prefetched(&self, document: &DesiredState) -> Vec<PrefetchState> {
        let state = |prefetch: &Prefetch| {
            let Prefetch { image, .. } = prefetch;
            let error = self.error(image).to_owned();
            let phase = match self.state(image) {
                Image::Present => PrefetchPhase::Present,
                _ if self.is_pulling_image(image) => PrefetchPhase::Pulling,
                _ if self.let_go.contains(image) => PrefetchPhase::Removed,
                _ if !error.is_empty() => PrefetchPhase::Failed,
                _ => PrefetchPhase::Waiting,
            };
            PrefetchState { image: image.name.clone(), digest: image.digest.clone(), phase, error }
        };
        document.prefetch.iter().map(state).collect()
    }

    pub(super) fn pulls(&self) -> Vec<PullState> {
        self.records.iter().filter_map(|(image, record)| pull_state(image, record.pull.as_ref()?)).collect()
    }
}

fn login(confidential: &Confidential, image: &ImageRef) -> Option<Login> {
    confidential.logins.get(&RegistryHost::of_image(&image.repository)?).cloned()
}

/// In the order of pulls; a document written by hand may leave the list out.
fn needed(document: &DesiredState) -> impl Iterator<Item = &ImageRef> {
    document.images.iter().chain(document.containers.iter().map(|container| &container.image))
}

/// What to hold ready beyond that, and whether it is pinned.
fn ready(document: &DesiredState) -> impl Iterator<Item = (&ImageRef, bool)> {
    document.prefetch.iter().map(|prefetch| (&prefetch.image, prefetch.pinned))
}

fn is_only_ready(document: &DesiredState, image: &ImageRef) -> bool {
    ready(document).any(|(ready, _)| ready == image) && needed(document).all(|needed| needed != image)
}

fn pull_state(image: &ImageRef, pull: &Pull) -> Option<PullState> {
    let progress = pull.progress.borrow();
    Some(PullState {
        image: image.name.clone(),
        bytes_fetched: Bytes(progress.bytes_fetched()),
        bytes_total: (progress.bytes_total() > 0).then(|| Bytes(progress.bytes_total())),
        layers: progress.layers_fetched(),
        bytes_elsewhere: Bytes(progress.elsewhere),
        took_ms: pull
            .took
            .filter(|_| pull.done)
            .map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
        done: pull.done,
        error: pull.error.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fake::{document, spec};

    fn image(name: &str) -> ImageRef {
        ImageRef { repository: name.to_owned(), digest: format!("sha256:{name}"), name: name.to_owned() }
    }

    /// Images listed as `z a m`; the only container needs `a`.
    fn listed() -> DesiredState {
        let mut container = spec("t", "h");
        container.image = image("a");
        DesiredState { images: ["z", "a", "m"].map(image).to_vec(), ..document(1, vec![container]) }
    }

    fn actions(images: &mut Images, document: &DesiredState, now: Instant) -> Vec<Todo> {
        images.next_actions(document, &Confidential::default(), now)
    }

    fn pulls(todo: &[Todo]) -> Vec<String> {
        let name = |todo: &Todo| match todo {
            Todo::Pull(image, ..) => Some(image.name.clone()),
            _ => None,
        };
        todo.iter().filter_map(name).collect()
    }

    #[test]
    fn images_are_pulled_in_the_order_of_the_list_whatever_is_looked_up_first() {
        let (mut images, listed, now) = (Images::default(), listed(), Instant::now());
        assert_eq!(actions(&mut images, &listed, now).len(), 3, "all are looked for at once");
        for name in ["m", "a"] {
            images.looked(&image(name), Ok(false), now);
            assert!(actions(&mut images, &listed, now).is_empty(), "z is not known yet");
        }
        images.looked(&image("z"), Ok(false), now);
        for name in ["z", "a", "m"] {
            assert_eq!(pulls(&actions(&mut images, &listed, now)), [name]);
            assert!(actions(&mut images, &listed, now).is_empty(), "one pull at a time");
            images.pulled(&image(name), Ok(()), now);
        }
        assert!(images.all_present(&listed));
    }

    fn holding_ready(ready: &[(&str, bool)], tasks: &[&str]) -> DesiredState {
        let prefetch = |(name, pinned): &(&str, bool)| Prefetch { image: image(name), pinned: *pinned };
        let images = tasks.iter().map(|name| image(name)).collect();
        DesiredState { images, prefetch: ready.iter().map(prefetch).collect(), ..document(1, vec![]) }
    }

    /// Looks for what is to be looked for: it is not here.
    fn look(images: &mut Images, document: &DesiredState, now: Instant) {
        for todo in actions(images, document, now) {
            let Todo::LookForImage(image) = todo else { panic!("{todo:?}") };
            images.looked(&image, Ok(false), now);
        }
    }

    fn phases(images: &Images, document: &DesiredState) -> Vec<PrefetchPhase> {
        images.prefetched(document).into_iter().map(|state| state.phase).collect()
    }

    #[test]
    fn what_is_held_ready_comes_after_what_tasks_wait_for_one_by_one() {
        let (mut images, now) = (Images::default(), Instant::now());
        let wanted = holding_ready(&[("p", true), ("q", false)], &["t"]);
        look(&mut images, &wanted, now);
        for name in ["t", "p", "q"] {
            assert_eq!(pulls(&actions(&mut images, &wanted, now)), [name]);
            assert!(actions(&mut images, &wanted, now).is_empty());
            images.pulled(&image(name), Ok(()), now);
        }
        assert_eq!(phases(&images, &wanted), [PrefetchPhase::Present; 2]);
    }

    #[test]
    fn a_pull_ahead_gives_way_to_a_task_and_comes_later() {
        let (mut images, now) = (Images::default(), Instant::now());
        let alone = holding_ready(&[("p", true)], &[]);
        look(&mut images, &alone, now);
        let Some(Todo::Pull(_, _, progress)) = actions(&mut images, &alone, now).pop() else { panic!() };
        assert_eq!(phases(&images, &alone), [PrefetchPhase::Pulling]);
        // A task that needs this very image lets it go on.
        let same = holding_ready(&[("p", true)], &["p"]);
        images.retain(&same);
        assert!(actions(&mut images, &same, now).is_empty() && !progress.is_closed());
        let wanted = holding_ready(&[("p", true)], &["t"]);
        images.retain(&wanted);
        look(&mut images, &wanted, now);
        assert!(actions(&mut images, &wanted, now).is_empty() && progress.is_closed());
        images.pulled(&image("p"), Err(EngineError::GaveWay { image: "p".to_owned() }), now);
        let next = actions(&mut images, &wanted, now);
        assert_eq!(pulls(&next), ["t"]);
        images.looked(&image("p"), Ok(false), now);
        assert_eq!(phases(&images, &wanted), [PrefetchPhase::Waiting]);
        images.pulled(&image("t"), Ok(()), now);
        assert_eq!(pulls(&actions(&mut images, &wanted, now)), ["p"]);
    }

    #[test]
    fn what_was_removed_to_make_room_is_fetched_again_only_for_a_pin_or_a_task() {
        let (mut images, now) = (Images::default(), Instant::now());
        let wanted = holding_ready(&[("p", false), ("q", false)], &[]);
        look(&mut images, &wanted, now);
        assert_eq!(pulls(&actions(&mut images, &wanted, now)), ["p"]);
        images.pulled(&image("p"), Ok(()), now);
        images.collected(vec![image("p")], true);
        look(&mut images, &wanted, now);
        assert!(actions(&mut images, &wanted, now).is_empty(), "there is no room for q either");
        assert_eq!(phases(&images, &wanted), [PrefetchPhase::Removed, PrefetchPhase::Waiting]);
        images.collected(vec![], false);
        assert_eq!(pulls(&actions(&mut images, &wanted, now)), ["q"]);
        images.pulled(&image("q"), Ok(()), now);
        assert!(actions(&mut images, &wanted, now).is_empty());
        let pinned = holding_ready(&[("p", true), ("q", false)], &[]);
        images.retain(&pinned);
        assert_eq!(pulls(&actions(&mut images, &pinned, now)), ["p"]);
    }

    #[test]
    fn an_image_that_somebody_removed_is_found_out_and_counts_as_here_until_then() {
        let (mut images, now) = (Images::default(), Instant::now());
        let wanted = holding_ready(&[], &["t"]);
        actions(&mut images, &wanted, now);
        images.looked(&image("t"), Ok(true), now);
        images.recheck();
        let todo = actions(&mut images, &wanted, now);
        assert!(matches!(todo.as_slice(), [Todo::LookForImage(_)]) && images.all_present(&wanted));
        assert!(actions(&mut images, &wanted, now).is_empty());
        images.looked(&image("t"), Ok(false), now);
        assert!(!images.all_present(&wanted));
        assert_eq!(pulls(&actions(&mut images, &wanted, now)), ["t"]);
    }

    #[test]
    fn an_image_that_fails_lets_the_next_one_pass() {
        let (mut images, listed, now) = (Images::default(), listed(), Instant::now());
        actions(&mut images, &listed, now);
        ["z", "a", "m"].iter().for_each(|name| images.looked(&image(name), Ok(false), now));
        assert_eq!(pulls(&actions(&mut images, &listed, now)), ["z"]);
        let error = EngineError::Unreachable { socket: "s".to_owned(), reason: "r".to_owned() };
        images.pulled(&image("z"), Err(error), now);
        assert_eq!(pulls(&actions(&mut images, &listed, now)), ["a"]);
    }
}
