//! Image garbage collection: when the disk gets full, images that nobody needs go, the one not used for longest first.
//!
//! In: the document in force, changes of images, `[images]` of agent.toml. Out: removed images, each with its reason,
//! told to the worker. A pass tries each image once; what was removed is not fetched again for being held ready, so
//! removing and fetching never follow each other in a circle. Without a document nothing is known to be needless,
//! and nothing goes.

mod choose;
mod pass;
mod pressure;
#[cfg(test)]
mod tests;
pub(crate) mod used;

use crate::config::ImageSettings;
use crate::engine::Docker;
use crate::worker::Command;
use choose::AGE_MIN_S;
use edgeloom_common::desired::{DesiredState, ImageRef};
use edgeloom_common::report::CollectedImage;
use pressure::Pressure;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, sleep};
use used::LastUse;

/// Others fill the disk without a sign.
const LOOK_PERIOD: Duration = Duration::from_secs(60);
/// A burst of changes is one.
const SETTLED_AFTER: Duration = Duration::from_millis(500);

/// The document in force, as the worker tells it.
pub(crate) type InForce = watch::Receiver<Option<Arc<DesiredState>>>;

/// What a pass found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Collection {
    pub(crate) removed: Vec<CollectedImage>,
    /// Images to hold ready, without a pin, that had to go.
    pub(crate) let_go: Vec<ImageRef>,
    /// Why there is too little room all the same; empty: there is enough.
    pub(crate) problem: String,
    /// Nothing is fetched that nobody needs yet.
    pub(crate) is_tight: bool,
}

/// What the collector is made with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) engine: Arc<Docker>,
    pub(crate) state_dir: PathBuf,
    pub(crate) images: ImageSettings,
    pub(crate) age_min_s: u64,
}

/// The collector; [`Collector::run`] is its life.
#[derive(Debug)]
pub(crate) struct Collector {
    settings: Settings,
    uses: LastUse,
    pressure: Pressure,
    told: Collection,
}

impl Settings {
    /// As the node is configured.
    pub(crate) fn new(engine: Arc<Docker>, state_dir: PathBuf, images: ImageSettings) -> Self {
        Self { engine, state_dir, images, age_min_s: AGE_MIN_S }
    }
}

impl Collector {
    pub(crate) fn new(settings: Settings) -> Self {
        let uses = LastUse::open(&settings.state_dir, now_s());
        let pressure = Pressure::new(settings.images, settings.state_dir.clone());
        Self { settings, uses, pressure, told: Collection::default() }
    }

    /// Looks whenever images or the document change, and now and then at the disk, until nobody is told any more.
    pub(crate) async fn run(
        mut self,
        mut document: InForce,
        mut images: watch::Receiver<u64>,
        commands: mpsc::Sender<Command>,
    ) {
        let mut look = interval(LOOK_PERIOD);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = look.tick() => if !self.pressure.may_be_high().await { continue },
                Ok(()) = document.changed() => {}
                Ok(()) = images.changed() => {
                    sleep(SETTLED_AFTER).await;
                    images.mark_unchanged();
                    if commands.send(Command::ImagesChanged).await.is_err() {
                        return;
                    }
                }
            }
            document.mark_unchanged();
            match self.pass(&document).await {
                Ok(collection) => self.tell(collection, &commands).await,
                Err(error) => tracing::debug!(%error, "images are not looked at"),
            }
        }
    }

    /// Says what is new.
    async fn tell(&mut self, collection: Collection, commands: &mpsc::Sender<Command>) {
        if !collection.problem.is_empty() && collection.problem != self.told.problem {
            tracing::warn!(problem = %collection.problem, "images");
        }
        if collection.removed.is_empty() && collection == self.told {
            return;
        }
        // Without a worker the daemon is about to end.
        let _ = commands.send(Command::Collected(Box::new(collection.clone()))).await;
        self.told = Collection { removed: Vec::new(), let_go: Vec::new(), ..collection };
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
