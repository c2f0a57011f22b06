//! Which images each node pulls, in which order, and what each pull fetches.
//!
//! A node pulls one image at a time in the order of its document's list, so the same walk foretells every
//! pull: what the node reported, then the images of earlier commits, then one image after the other. A pull
//! is put down to the task for which it comes first; other tasks of that image have no entry.

use crate::documents::programs;
use crate::known;
use crate::missing::Layers;
use crate::model::{Image, JobRecord, Model};
use crate::nodes::Nodes;
use edgeloom_common::desired::ImageRef;
use edgeloom_common::ids::{NodeId, TaskName};
use edgeloom_common::units::Bytes;
use edgeloom_sched::plan::JobPlan;
use edgeloom_sched::pull::{Fetch, Held};
use edgeloom_sched::snapshot::Platforms;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Committed jobs, the first commit first: the order in which nodes pull.
pub(crate) fn in_order(model: &Model) -> Vec<(&JobRecord, &JobPlan)> {
    let mut committed: Vec<_> = model.committed().collect();
    committed.sort_by_key(|(record, _)| record.commit_number);
    committed
}

/// The images of one job in the order of pulls, with task and node.
pub(crate) fn of_job<'a>(
    record: &'a JobRecord,
    plan: &'a JobPlan,
) -> impl Iterator<Item = (TaskName, &'a NodeId, &'a Image)> {
    programs(&record.job).into_iter().filter_map(|(task, _)| {
        let (node, image) = (plan.placement.get(&task)?, record.images.get(&task)?);
        Some((task, node, image))
    })
}

/// What nodes hold once everything planned so far is pulled.
#[derive(Debug)]
pub(crate) struct Pulls<'a> {
    nodes: &'a Nodes,
    held: BTreeMap<NodeId, Arc<Held>>,
    listed: BTreeSet<(NodeId, ImageRef)>,
}

impl<'a> Pulls<'a> {
    /// After all that the model has committed.
    pub(crate) fn after(model: &Model, nodes: &'a Nodes) -> Self {
        let known = nodes.table.iter().filter_map(|(node, known)| Some((node, known.inventory.as_ref()?)));
        let held = known
            .map(|(node, it)| (node.clone(), Arc::new(Held::new(it.store, &known::layers(model, it)))))
            .collect();
        let mut pulls = Self { nodes, held, listed: BTreeSet::new() };
        for (record, plan) in in_order(model) {
            pulls.add(record, plan);
        }
        pulls
    }

    /// What a node holds once everything planned so far is pulled.
    pub(crate) fn held(&self, node: &NodeId) -> Arc<Held> {
        self.held.get(node).cloned().unwrap_or_default()
    }

    /// Bytes that the image would fetch on this node now, where known.
    pub(crate) fn missing_of(&self, node: &NodeId, image: &Image) -> Option<Bytes> {
        Some(self.held.get(node)?.fetch(&self.layers(node, image)?.image()).bytes())
    }

    /// Adds a job's pulls; the bytes of each, by the task that it is put down to.
    pub(crate) fn add(&mut self, record: &JobRecord, plan: &JobPlan) -> BTreeMap<TaskName, u64> {
        let mut fetched = BTreeMap::new();
        for (task, node, image) in of_job(record, plan) {
            let Some(layers) = self.layers(node, image) else { continue };
            if !self.listed.insert((node.clone(), image.reference.clone())) {
                continue;
            }
            if let Some(held) = self.held.get_mut(node) {
                let layers = layers.image();
                fetched.insert(task, held.fetch(&layers).bytes().0);
                Arc::make_mut(held).add(&layers);
            }
        }
        fetched
    }

    fn layers<'i>(&self, node: &NodeId, image: &'i Image) -> Option<&'i Layers> {
        image.layers(&self.nodes.table.get(node)?.inventory.as_ref()?.architecture)
    }
}

/// What the pull of an image on a node was committed with, without the configuration; none for one that no task waits
/// for.
pub(crate) fn predicted(model: &Model, node: &NodeId, image: &str) -> Option<Fetch> {
    model.committed().find_map(|(record, plan)| {
        let mut own = of_job(record, plan).filter(|(_, at, its)| *at == node && its.reference.name == image);
        own.find_map(|(task, _, its)| Some(of_layers(its, *record.bytes_predicted.get(&task)?)))
    })
}

/// Of so many bytes. Nodes do not count configurations, which are the same size on every platform but for a few bytes.
fn of_layers(image: &Image, bytes: u64) -> Fetch {
    let mut without = None;
    for platform in image.platforms.values().map(Layers::image) {
        let Some(above) = bytes.checked_sub(platform.config_size.0) else { continue };
        if let Some(fetch) = platform.topmost(Bytes(above)) {
            return fetch;
        }
        without.get_or_insert(above);
    }
    Fetch::even(1, Bytes(without.unwrap_or(bytes)))
}

/// Images as the scheduler takes them.
pub(crate) fn platforms(images: &BTreeMap<TaskName, Image>) -> BTreeMap<TaskName, Platforms> {
    let one = |image: &Image| -> Platforms {
        let layers = image.platforms.iter();
        layers.map(|(platform, layers)| (platform.clone(), Arc::new(layers.image()))).collect()
    };
    images.iter().map(|(task, image)| (task.clone(), one(image))).collect()
}
