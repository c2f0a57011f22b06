//! What every node should be: committed plans, addresses and topology become one document a node.
//!
//! Pure. Generations are given when a document is published; here every document has version (0, 0). Equal
//! inputs give equal documents, so a restart of the controller changes nothing on any node.

use crate::batch::KEPT_MAX;
use crate::copies::{CopyKeys, add_copies};
use crate::missing::sha256;
use crate::model::{JobRecord, Model, Phase};
use crate::pulls;
use crate::reserved;
use crate::topology::{DownLinks, alternates, next_hops, pair};
use crate::vault::Vault;
use edgeloom_common::desired::{
    ContainerSpec, DesiredState, FlowKey, FlowSpec, ImageRef, Kept, Pool, Protocol, TaskRoute, ToEnd,
};
use edgeloom_common::ids::{ClusterId, NodeId, TaskName};
use edgeloom_common::job::{ANYWHERE, Program, RETRIES_DEFAULT, TASK_PORT};
use edgeloom_common::registry::RegistryHost;
use edgeloom_common::units::{Bytes, MilliCores};
use edgeloom_sched::plan::{FlowPlan, JobPlan, Share};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Documents by node.
pub(crate) type Documents = BTreeMap<NodeId, DesiredState>;

/// What documents are made from, besides the model.
#[derive(Debug)]
pub(crate) struct Ground<'a> {
    pub(crate) cluster: &'a ClusterId,
    pub(crate) pool: &'a Pool,
    pub(crate) down: &'a DownLinks,
    pub(crate) keys: &'a CopyKeys,
}

/// The documents of every node that is known or was ever published to.
pub(crate) fn documents(model: &Model, ground: &Ground<'_>) -> Documents {
    let mut documents: Documents = model
        .topology
        .keys()
        .chain(model.published.keys())
        .map(|node| {
            let empty = DesiredState::empty(ground.cluster.clone(), node.clone(), ground.pool.clone());
            (node.clone(), empty)
        })
        .collect();
    for (record, plan) in model.committed() {
        add_containers(&mut documents, &model.vault, (record, plan));
        // Containers of a batch send each other nothing.
        if !record.job.kind.ends() {
            add_routes(&mut documents, model, ground, (record, plan));
        }
        add_stops(&mut documents, record, plan);
        for flow in &plan.flows {
            add_flow(&mut documents, flow, flow_key(model, record, plan, flow));
            reserved::add(&mut documents, flow);
        }
    }
    add_kept(&mut documents, model);
    add_images(&mut documents, model);
    model.prefetch.add_to(&mut documents);
    add_copies(&mut documents, model, ground.keys);
    add_grants(&mut documents, model);
    for (node, document) in &mut documents {
        document.routes.sort();
        document.alternates.sort();
        add_logins(document, &model.vault);
        if !document.routes.is_empty() || !document.flows.is_empty() {
            document.neighbours = neighbours(model, node);
        }
    }
    documents
}

/// Where each neighbour is on its link with the node, as the neighbour reports it.
fn neighbours(model: &Model, node: &NodeId) -> BTreeMap<NodeId, Ipv4Addr> {
    let known = |peer: &NodeId| Some((peer.clone(), *model.topology.get(peer)?.get(node)?));
    model.topology.get(node).into_iter().flat_map(BTreeMap::keys).filter_map(known).collect()
}

/// Every task that runs a container, the source's included.
pub(crate) fn programs(job: &edgeloom_common::job::Job) -> Vec<(TaskName, &Program)> {
    let source = job.source.as_ref().and_then(|source| source.container.as_ref());
    let source = source.map(|program| (TaskName::source(), program));
    let tasks = job.tasks.iter().map(|(name, task)| (name.clone(), &task.program));
    source.into_iter().chain(tasks).collect()
}

/// The login of each registry that an image comes from.
fn add_logins(document: &mut DesiredState, vault: &Vault) {
    let ahead = document.prefetch.iter().map(|prefetch| &prefetch.image);
    for image in document.images.iter().chain(ahead) {
        if let Some(registry) = RegistryHost::of_image(&image.repository)
            && let Some(revision) = vault.login_revision(&registry)
        {
            document.logins.insert(registry, revision);
        }
    }
}

/// The containers that ended last on each node.
fn add_kept(documents: &mut Documents, model: &Model) {
    let mut ended: BTreeMap<&NodeId, Vec<(u64, Kept)>> = BTreeMap::new();
    let listed = model.jobs.values().filter(|record| matches!(record.phase, Phase::Committed | Phase::Ended));
    for (record, (task, end)) in listed.flat_map(|record| record.ended.iter().map(move |end| (record, end))) {
        let kept = Kept { job: record.job.name.clone(), task: task.clone() };
        ended.entry(&end.node).or_default().push((end.at_ms, kept));
    }
    for (node, mut kept) in ended {
        kept.sort();
        let last = kept.into_iter().rev().take(KEPT_MAX).map(|(_, kept)| kept);
        if let Some(document) = documents.get_mut(node) {
            document.kept = last.collect();
            document.kept.sort();
        }
    }
}

/// Each image once, in the order of pulls.
fn add_images(documents: &mut Documents, model: &Model) {
    for (record, plan) in pulls::in_order(model) {
        for (_, node, image) in pulls::of_job(record, plan) {
            let listed = documents.get_mut(node).map(|document| &mut document.images);
            if let Some(images) = listed.filter(|images| !images.contains(&image.reference)) {
                images.push(image.reference.clone());
            }
        }
    }
}

/// What a node may have from its neighbours' layer stores: the images that it is to have anyway.
fn add_grants(documents: &mut Documents, model: &Model) {
    let wanted: BTreeMap<NodeId, Vec<String>> = documents
        .iter()
        .map(|(node, document)| {
            let images = document.images.iter().map(|image| image.digest.clone());
            let mut wanted: Vec<String> = images.collect();
            for ahead in &document.prefetch {
                if !wanted.contains(&ahead.image.digest) {
                    wanted.push(ahead.image.digest.clone());
                }
            }
            (node.clone(), wanted)
        })
        .filter(|(_, images): &(_, Vec<String>)| !images.is_empty())
        .collect();
    for (node, document) in documents {
        let peers = model.topology.get(node).into_iter().flat_map(BTreeMap::keys);
        let of = |peer: &NodeId| Some((peer.clone(), wanted.get(peer)?.clone()));
        document.layer_grants = peers.filter_map(of).collect();
    }
}

fn add_containers(documents: &mut Documents, vault: &Vault, (record, plan): (&JobRecord, &JobPlan)) {
    for (task, program) in programs(&record.job) {
        let place = plan.placement.get(&task).and_then(|node| documents.get_mut(node));
        let (Some(document), Some(image), Some(address)) =
            (place, record.images.get(&task), record.addresses.get(&task))
        else {
            continue;
        };
        let limits = share(plan, &task, program);
        let hosting = record.job.tasks.get(&task).map_or(&ANYWHERE, |task| &task.placement);
        let mut container = ContainerSpec {
            job: record.job.name.clone(),
            environment: environment(record, &task, program),
            hosts: hosts(record, &task),
            to_end: to_end(record, &task),
            task,
            spec_hash: String::new(),
            image: image.reference.clone(),
            command: program.command.clone(),
            cpu: limits.cpu,
            memory: limits.memory,
            address: *address,
            secrets: program.secrets.iter().map(|name| (name.clone(), vault.revision_of(name))).collect(),
            ports: hosting.ports.clone(),
            mounts: hosting.mounts.clone(),
        };
        container.spec_hash = spec_hash(&container);
        document.containers.push(container);
    }
}

/// What the plan gives, or what the task requests.
pub(crate) fn share(plan: &JobPlan, task: &TaskName, program: &Program) -> Share {
    let requested = Share { cpu: program.resources.cpu, memory: program.resources.memory };
    plan.shares.get(task).copied().unwrap_or(requested)
}

/// The limits of a task's container, for views.
pub(crate) fn limits(record: &JobRecord, plan: &JobPlan, task: &TaskName) -> Option<Share> {
    let mut programs = programs(&record.job).into_iter();
    programs.find(|(name, _)| name == task).map(|(_, program)| share(plan, task, program))
}

/// Hash of the specification without its hash, limits and revisions of secrets, which change while the container
/// runs: struct fields come in their order, maps sorted.
fn spec_hash(container: &ContainerSpec) -> String {
    let secrets = container.secrets.keys().map(|name| (name.clone(), 0)).collect();
    let unlimited = ContainerSpec { cpu: MilliCores(0), memory: Bytes(0), secrets, ..container.clone() };
    sha256(&serde_json::to_vec(&unlimited).expect("a specification is plain data with text keys"))
}

/// Of a batch the task alone: others come and go, and are not reached.
fn hosts(record: &JobRecord, own: &TaskName) -> BTreeMap<String, Ipv4Addr> {
    let named = record.addresses.iter().filter(|(task, _)| !record.job.kind.ends() || *task == own);
    named.map(|(task, address)| (task.to_string(), *address)).collect()
}

fn to_end(record: &JobRecord, task: &TaskName) -> Option<ToEnd> {
    let run = record.job.tasks.get(task).and_then(|task| task.run.as_ref());
    let retries = run.map_or(RETRIES_DEFAULT, |run| run.retries);
    record.job.kind.ends().then_some(ToEnd { retries, run: record.since_ms })
}

fn environment(record: &JobRecord, task: &TaskName, program: &Program) -> BTreeMap<String, String> {
    let mut variables = program.environment.clone();
    let mut set = |name: String, value: String| variables.insert(name, value);
    set("EDGELOOM_JOB".to_owned(), record.job.name.to_string());
    set("EDGELOOM_TASK".to_owned(), task.to_string());
    for (_, to, bytes) in record.job.edges().filter(|(from, ..)| from == task) {
        if let Some(address) = record.addresses.get(&to) {
            let upper = to.as_str().to_uppercase().replace('-', "_");
            set(format!("EDGELOOM_OUT_{upper}"), format!("{address}:{TASK_PORT}"));
            set(format!("EDGELOOM_BYTES_{upper}"), bytes.0.to_string());
        }
    }
    if let Some(task) = record.job.tasks.get(task) {
        if let Some(work) = task.work {
            set("EDGELOOM_WORK_NS".to_owned(), work.0.to_string());
        }
        if !task.inputs.is_empty() {
            let names: Vec<&str> = task.inputs.iter().map(TaskName::as_str).collect();
            set("EDGELOOM_LISTEN".to_owned(), format!("0.0.0.0:{TASK_PORT}"));
            set("EDGELOOM_INPUTS".to_owned(), names.join(","));
        }
    } else if let Some(rate) = record.job.source.as_ref().and_then(|source| source.rate_per_s) {
        set("EDGELOOM_RATE".to_owned(), rate.to_string());
    }
    variables
}

/// What each node with a container of the job does by itself when the controller is out of its reach.
fn add_stops(documents: &mut Documents, record: &JobRecord, plan: &JobPlan) {
    let Some(seconds) = record.job.disconnect.stop_on_client_after_s else { return };
    for (task, _) in programs(&record.job) {
        if let Some(document) = plan.placement.get(&task).and_then(|node| documents.get_mut(node)) {
            document.stop_after_s.insert(record.job.name.clone(), seconds);
        }
    }
}

/// Every other node's host route to each task of the job.
fn add_routes(documents: &mut Documents, model: &Model, ground: &Ground<'_>, job: (&JobRecord, &JobPlan)) {
    let (record, plan) = job;
    for (task, address) in &record.addresses {
        let Some(host) = plan.placement.get(task) else { continue };
        for (node, via) in ways(model, ground.down, (*address, host)) {
            if let Some(document) = documents.get_mut(&node) {
                document.routes.push(TaskRoute { address: *address, via });
            }
        }
        let barred = barred(model, (*address, host)).union(&cuts(model, ground.down)).cloned().collect();
        for (node, via) in alternates(&model.topology, &barred, host) {
            if let Some(document) = documents.get_mut(&node) {
                document.alternates.push(TaskRoute { address: *address, via });
            }
        }
    }
}

/// Each node's next hop to a task: around links that are down where there is a way, and as if they were up
/// where there is none, so that nothing changes for a node that is only away for a while. From where there is
/// a way every hop comes nearer by such links alone, from elsewhere by any, so packets never go in a circle.
fn ways(model: &Model, down: &DownLinks, task: (Ipv4Addr, &NodeId)) -> BTreeMap<NodeId, NodeId> {
    let (mut barred, (_, host)) = (barred(model, task), task);
    let mut ways = next_hops(&model.topology, &barred, host);
    if !down.is_empty() {
        barred.extend(down.iter().cloned());
        ways.extend(next_hops(&model.topology, &barred, host));
    }
    ways
}

/// Links that are down between nodes that are there. One all of whose links are down is away, and its neighbours
/// see that themselves: their documents stay as they are.
fn cuts(model: &Model, down: &DownLinks) -> DownLinks {
    let away = |node: &NodeId| {
        let peers = model.topology.get(node).into_iter().flat_map(BTreeMap::keys);
        peers.into_iter().all(|peer| down.contains(&pair(node, peer)))
    };
    down.iter().filter(|(a, b)| !away(a) && !away(b)).cloned().collect()
}

/// Links of nodes that are cut off and may have the task's address themselves: no way leads through those.
fn barred(model: &Model, (address, host): (Ipv4Addr, &NodeId)) -> DownLinks {
    let mut barred = DownLinks::new();
    for (node, strays) in &model.cut_off {
        if node != host && strays.iter().any(|stray| stray.address == address) {
            let peers = model.topology.get(node).into_iter().flat_map(BTreeMap::keys);
            barred.extend(peers.map(|peer| pair(node, peer)));
        }
    }
    barred
}

/// A flow's packets go from the task's address, or from the node's own where a process is the source.
pub(crate) fn flow_key(
    model: &Model,
    record: &JobRecord,
    plan: &JobPlan,
    flow: &FlowPlan,
) -> Option<FlowKey> {
    let source = match record.addresses.get(&flow.id.from) {
        Some(address) => *address,
        None => *model.topology.get(plan.placement.get(&flow.id.from)?)?.values().next()?,
    };
    Some(FlowKey {
        source,
        destination: *record.addresses.get(&flow.id.to)?,
        protocol: Protocol::Tcp,
        destination_port: TASK_PORT,
    })
}

fn add_flow(documents: &mut Documents, flow: &FlowPlan, key: Option<FlowKey>) {
    let Some(key) = key else { return };
    for (index, hop) in flow.path.windows(2).enumerate() {
        if let Some(document) = documents.get_mut(&hop[0]) {
            document.flows.push(FlowSpec {
                id: flow.id.clone(),
                key,
                next_hop: hop[1].clone(),
                rate: (index == 0).then_some(flow.rate),
                path: flow.path.clone(),
            });
        }
    }
}

/// Every image by the manifest's digest, for tests and views.
pub(crate) fn image_of<'a>(record: &'a JobRecord, task: &TaskName) -> Option<&'a ImageRef> {
    record.images.get(task).map(|image| &image.reference)
}
