//! Images between the registries and the cluster: what a registry resolved as jobs keep it, what is of interest at
//! which registry, and which nodes have what.

use crate::cluster::Cluster;
use crate::documents::programs;
use crate::error::SubmitError;
use crate::missing::{Blob, Layers};
use crate::model::{Image, Model};
use crate::owner::Order;
use edgeloom_common::ids::{NodeId, TaskName};
use edgeloom_common::images::{ImageList, ImageView, WatchView};
use edgeloom_common::job::{Job, Task};
use edgeloom_common::registry::RegistryHost;
use edgeloom_common::units::Bytes;
use edgeloom_common::view::ProblemItem;
use edgeloom_registry::{Envelope, Interest, Interests, Platform, RegistryError};
use std::collections::{BTreeMap, BTreeSet};

/// Docker Hub gives its catalogue to nobody.
const WITHOUT_CATALOGUE: &str = "docker.io";

impl From<edgeloom_registry::Image> for Image {
    fn from(resolved: edgeloom_registry::Image) -> Self {
        let platforms = resolved.platforms.into_iter();
        let layers = |it: Platform| (it.architecture.clone(), Layers::from(it));
        Self { reference: resolved.reference, platforms: platforms.map(layers).collect() }
    }
}

impl From<Platform> for Layers {
    fn from(platform: Platform) -> Self {
        let blob =
            |it: edgeloom_registry::Blob| Blob { digest: it.digest.to_string(), size: Bytes(it.size_bytes) };
        Self {
            config: blob(platform.config),
            layers: platform.layers.iter().map(|layer| blob(layer.blob)).collect(),
            diff_ids: platform.layers.iter().map(|layer| layer.diff_id.to_string()).collect(),
        }
    }
}

/// Names of images that jobs use, or that nodes hold ready.
fn used(model: &Model) -> BTreeSet<String> {
    let of_jobs = model.jobs.values().flat_map(|record| record.images.values().map(|image| &image.reference));
    let references = of_jobs.chain(model.prefetch.all().map(|entry| &entry.image));
    references.map(|reference| reference.name.clone()).collect()
}

/// Docker's ids of images, each with the nodes that have it.
type Holders = BTreeMap<String, Vec<NodeId>>;

impl Cluster {
    /// Images whose name has this in it, with the nodes that have each, and how the registries are.
    pub async fn images(&self, part: &str) -> ImageList {
        let mut list = self.registry.images(part);
        let wanted: BTreeSet<String> =
            list.images.iter().flat_map(|it| &it.platforms).map(|it| it.image_id.clone()).collect();
        let holders = self.holders(wanted).await;
        list.images.iter_mut().for_each(|image| image.nodes = holding(image, &holders));
        list
    }

    /// Asks the registries for every image.
    pub(crate) async fn resolve(&self, job: Job) -> Result<(Order, Vec<String>), SubmitError> {
        let mut resolved: BTreeMap<String, Result<Image, RegistryError>> = BTreeMap::new();
        let mut notes = Vec::new();
        for (_, program) in programs(&job) {
            if !resolved.contains_key(&program.image) {
                let login = self.login_for(&program.image).await;
                let image = self.registry.resolve(&program.image, login.as_ref()).await;
                // A registry that is away would make each further image wait for its time limit.
                if let Err(error @ RegistryError::Unreachable { .. }) = image {
                    return Err(SubmitError::RegistryUnreachable(error));
                }
                let stale = image.as_ref().ok().and_then(|image| image.stale.as_ref());
                notes.extend(
                    stale.map(|error| format!("{} is as it was known before: {error}", program.image)),
                );
                resolved.insert(program.image.clone(), image.map(Image::from));
            }
        }
        let images = each(&job, &resolved)?;
        Ok((Order { job, images }, notes))
    }

    /// How the registries are.
    #[must_use]
    pub fn registries(&self) -> Vec<WatchView> {
        self.registry.standings()
    }

    async fn holders(&self, wanted: BTreeSet<String>) -> Holders {
        let holders = self.ask(move |owner| {
            let mut holders = Holders::new();
            for (node, known) in &owner.nodes.table {
                let layers = known.inventory.iter().map(|inventory| &inventory.layers);
                // Where a blob is kept as it came, configurations are among those.
                let held = layers.flat_map(|layers| layers.image_ids.iter().chain(&layers.known_digests));
                for id in held.filter(|id| wanted.contains(*id)) {
                    holders.entry(id.clone()).or_default().push(node.clone());
                }
            }
            holders
        });
        holders.await.unwrap_or_default()
    }

    /// Takes in what a registry tells of itself; how many of its events are of interest.
    #[must_use]
    pub fn registry_notified(&self, envelope: &Envelope, registry: Option<&RegistryHost>) -> usize {
        self.registry.notified(envelope, registry)
    }

    /// Watches the registries until it is dropped.
    pub async fn watch_registries(&self) {
        let (registry, period) = (self.registry.clone(), self.registries.period);
        edgeloom_registry::watch(registry, Watching { cluster: self.clone() }, period).await;
    }
}

/// Every task's image, or what is wrong with each that has none.
fn each(
    job: &Job,
    resolved: &BTreeMap<String, Result<Image, RegistryError>>,
) -> Result<BTreeMap<TaskName, Image>, SubmitError> {
    let mut images = BTreeMap::new();
    let mut problems = Vec::new();
    for (task, program) in programs(job) {
        match &resolved[&program.image] {
            Ok(image) => drop(images.insert(task, image.clone())),
            Err(error) => problems.push(ProblemItem {
                line: 0,
                field: match job.tasks.get(&task) {
                    _ if task.is_source() => "source.image".to_owned(),
                    Some(Task { run: Some(run), .. }) => format!("tasks.{}.image", run.of),
                    _ => format!("tasks.{task}.image"),
                },
                problem: error.to_string(),
                remedy: error.remedy(),
            }),
        }
    }
    // Containers of one task have one image.
    problems.dedup();
    if problems.is_empty() { Ok(images) } else { Err(SubmitError::ImageUnknown(problems)) }
}

fn holding(image: &ImageView, holders: &Holders) -> Vec<NodeId> {
    let nodes = image.platforms.iter().filter_map(|platform| holders.get(&platform.image_id));
    nodes.flatten().cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

/// What is of interest: registries of the configuration and those with a login as a whole, of others the images
/// that jobs use or nodes hold ready.
struct Watching {
    cluster: Cluster,
}

impl Interests for Watching {
    async fn interests(&self) -> Option<BTreeMap<RegistryHost, Interest>> {
        let known = self.cluster.ask(|owner| {
            let logins = owner.logins().into_iter().map(|view| view.registry);
            let logins: Vec<_> = logins.filter_map(|host| Some((owner.login(&host)?, host))).collect();
            (used(owner.model()), logins)
        });
        let (used, logins) = known.await?;
        let mut interests: BTreeMap<RegistryHost, Interest> = BTreeMap::new();
        for host in self.cluster.registries.watched.iter() {
            interests.entry(host.clone()).or_default().catalogue = true;
        }
        for (login, host) in logins {
            let interest = interests.entry(host).or_default();
            (interest.catalogue, interest.login) = (true, Some(login));
        }
        for name in used {
            if let Some(host) = RegistryHost::of_image(&name) {
                interests.entry(host).or_default().images.push(name);
            }
        }
        let hub = WITHOUT_CATALOGUE;
        interests
            .iter_mut()
            .filter(|(host, _)| host.as_str() == hub)
            .for_each(|(_, it)| it.catalogue = false);
        Some(interests)
    }
}
