//! The images that the document needs: which are there, which is on its way, when to try again.
//!
//! Pulls go one at a time in the order of [`DesiredState::images`]: the controller foretells with it which
//! pull fetches a layer that several images share.

use super::act::Todo;
use crate::engine::{EngineError, PullProgress};
use crate::task::backoff::{Backoff, jitter};
use crate::task::step::Image;
use edgeloom_common::confidential::{Confidential, Login};
use edgeloom_common::desired::{DesiredState, ImageRef};
use edgeloom_common::registry::RegistryHost;
use edgeloom_common::report::PullState;
use edgeloom_common::units::Bytes;
use std::collections::BTreeMap;
use tokio::sync::watch;
use tokio::time::Instant;

/// All images of the document in force.
#[derive(Debug, Default)]
pub(super) struct Images {
    records: BTreeMap<ImageRef, Record>,
    /// Layers share a link: one pull at a time is as fast, and its progress can be foreseen.
    pulling: bool,
}

#[derive(Debug)]
struct Record {
    image: Image,
    looking: bool,
    pull: Option<Pull>,
    backoff: Backoff,
    pause: Option<Instant>,
}

#[derive(Debug)]
struct Pull {
    progress: watch::Receiver<PullProgress>,
    done: bool,
    error: String,
}

impl Default for Record {
    fn default() -> Self {
        Self { image: Image::Unknown, looking: false, pull: None, backoff: Backoff::default(), pause: None }
    }
}

impl Images {
    /// Keeps what is known of the images that the document needs. A pull on its way is kept too, since
    /// what it fetched would be thrown away.
    pub(super) fn retain(&mut self, document: &DesiredState) {
        let mut kept = BTreeMap::new();
        for image in needed(document) {
            let record = self.records.remove(image).unwrap_or_default();
            kept.entry(image.clone()).or_insert(record);
        }
        self.records
            .retain(|_, record| record.pull.as_ref().is_some_and(|pull| !pull.done && pull.error.is_empty()));
        self.records.append(&mut kept);
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
        self.pulling
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
        let mut may_pull = !self.pulling;
        for image in needed(document) {
            let record = self.records.entry(image.clone()).or_default();
            let pausing = record.pause.is_some_and(|until| now < until);
            match record.image {
                Image::Unknown if !record.looking && !pausing => {
                    record.looking = true;
                    may_pull = false;
                    todo.push(Todo::LookForImage(image.clone()));
                }
                Image::Unknown if record.looking => may_pull = false,
                Image::Missing if may_pull && !pausing => {
                    self.pulling = true;
                    may_pull = false;
                    let (sender, progress) = watch::channel(PullProgress::default());
                    record.pull = Some(Pull { progress, done: false, error: String::new() });
                    todo.push(Todo::Pull(image.clone(), login(confidential, image), sender));
                }
                _ => {}
            }
        }
        todo
    }

    pub(super) fn looked(&mut self, image: &ImageRef, found: Result<bool, EngineError>, now: Instant) {
        let Some(record) = self.records.get_mut(image) else {
            return;
        };
        record.looking = false;
        match found {
            Ok(true) => record.image = Image::Present,
            Ok(false) => record.image = Image::Missing,
            Err(_) => record.pause = Some(now + record.backoff.failed(jitter())),
        }
    }

    pub(super) fn pulled(&mut self, image: &ImageRef, result: Result<(), EngineError>, now: Instant) {
        self.pulling = false;
        let Some(record) = self.records.get_mut(image) else {
            return;
        };
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
            pull.error = error;
        }
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

    /// What the last pull of an image failed with.
    pub(super) fn error(&self, image: &ImageRef) -> &str {
        let pull = self.records.get(image).and_then(|record| record.pull.as_ref());
        pull.map_or("", |pull| pull.error.as_str())
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

fn pull_state(image: &ImageRef, pull: &Pull) -> Option<PullState> {
    let progress = pull.progress.borrow();
    Some(PullState {
        image: image.name.clone(),
        bytes_fetched: Bytes(progress.bytes_fetched()),
        bytes_total: (progress.bytes_total() > 0).then(|| Bytes(progress.bytes_total())),
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
