//! The watcher: a loop for each registry, and one that says which registries there are.
//!
//! In: the registries and images of interest, notifications. Out: the catalogue, kept current. Registries do not
//! wait for each other, and one that goes wrong is begun anew with what is known of it.

mod ask;
mod host;

use crate::registry::Registry;
use edgeloom_common::confidential::Login;
use edgeloom_common::registry::RegistryHost;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

/// Between two questions about one tag.
pub const PERIOD_DEFAULT: Duration = Duration::from_secs(10);
/// Between looks at what is of interest, and between writes of the cache.
const LOOK: Duration = Duration::from_secs(2);
/// Registries that are watched at once.
pub(crate) const HOSTS_MAX: usize = 64;

/// What is of interest at one registry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interest {
    /// All that it lists, rather than the images alone.
    pub catalogue: bool,
    /// Names of images that jobs use.
    pub images: Vec<String>,
    pub login: Option<Login>,
}

/// Those who know what is of interest.
pub trait Interests {
    /// Every registry of interest; none while that is not known.
    fn interests(&self) -> impl Future<Output = Option<BTreeMap<RegistryHost, Interest>>> + Send;
}

/// A registry's loop, which ends with this.
#[derive(Debug)]
struct Watched {
    interest: watch::Sender<Interest>,
    running: JoinHandle<()>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Watches until it is dropped.
pub async fn watch(registry: Arc<Registry>, interests: impl Interests, period: Duration) {
    let mut hosts: BTreeMap<RegistryHost, Watched> = BTreeMap::new();
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        if let Some(wanted) = interests.interests().await {
            steer(&registry, &mut hosts, wanted, period);
        }
        let saving = registry.clone();
        if tokio::task::spawn_blocking(move || saving.save()).await.is_err() {
            tracing::error!("the cache of images could not be written");
        }
    }
}

/// Begins and ends loops, and tells the others what is of interest now.
fn steer(
    registry: &Arc<Registry>,
    hosts: &mut BTreeMap<RegistryHost, Watched>,
    wanted: BTreeMap<RegistryHost, Interest>,
    period: Duration,
) {
    hosts.retain(|host, watched| {
        let ended = watched.running.is_finished();
        if ended {
            tracing::error!(registry = %host, "the watch over a registry ended, and begins anew");
        }
        !ended && wanted.contains_key(host)
    });
    let known: Vec<_> = registry.lock().hosts.keys().cloned().collect();
    for host in known.iter().filter(|host| !wanted.contains_key(host)) {
        registry.lock().remove_host(host);
    }
    for (host, interest) in wanted.into_iter().take(HOSTS_MAX) {
        match hosts.get(&host) {
            // Also when nothing changed: the loop looks at what others have put into the catalogue.
            Some(watched) => drop(watched.interest.send_replace(interest)),
            None => {
                let (sender, receiver) = watch::channel(interest);
                let watch = host::HostWatch::new(registry.clone(), host.clone(), receiver);
                let running = tokio::spawn(watch.run(period));
                hosts.insert(host, Watched { interest: sender, running });
            }
        }
    }
}
