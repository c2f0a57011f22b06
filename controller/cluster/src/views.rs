//! What users are told of jobs and nodes: what was given beside what is measured.

use crate::batch::{self, Ended};
use crate::data;
use crate::documents::{flow_key, image_of, limits};
use crate::holding::in_force;
use crate::model::{JobRecord, Model, Phase, nodes_of};
use crate::nodes::{NodeRecord, Nodes};
use crate::strategy::strategy;
use edgeloom_common::desired::Version;
use edgeloom_common::ids::{NodeId, TaskName};
use edgeloom_common::report::{
    ContainerPhase, ContainerState, FlowRate, Inventory, LinkReport, Observed, Outcome, Report,
};
use edgeloom_common::view::{
    BatchView, ConsolidationView, EmptiedView, FlowView, JobState, JobView, KeptView, LinkView, MoveView,
    NodeView, PredictionView, TaskView,
};
use edgeloom_sched::consolidate::{Consolidation, Emptied, Moved};
use edgeloom_sched::plan::{FlowPlan, JobPlan};

/// One job as users see it.
pub(crate) fn job(model: &Model, nodes: &Nodes, record: &JobRecord) -> JobView {
    let plan = in_force(model, record);
    let mut tasks = plan.map(|plan| tasks(nodes, record, plan)).unwrap_or_default();
    tasks.extend(record.ended.iter().filter_map(|(task, end)| ended(record, task, end)));
    let flows = plan.iter().flat_map(|plan| {
        plan.flows.iter().map(|flow| flow_view(model, nodes, (record, plan), flow)).collect::<Vec<_>>()
    });
    let troubles = match (plan, record.phase) {
        (Some(plan), Phase::Committed) => troubles(nodes, plan, &tasks),
        _ => Vec::new(),
    };
    let running =
        troubles.is_empty() && !tasks.is_empty() && tasks.iter().all(|task| task.phase == "running");
    let batch = record.job.kind.ends().then(|| batch::view(record, nodes));
    let state = match (record.phase, batch) {
        (Phase::Committed, Some(it)) => under_way(it),
        (Phase::Ended, _) if batch::has_succeeded(record) => JobState::Succeeded,
        (Phase::Ended, _) => JobState::Failed,
        (Phase::Waiting, _) => JobState::Waiting,
        (Phase::Stopping, _) => JobState::Stopping,
        (Phase::Committed, None) if running => JobState::Running,
        (Phase::Committed, None) => JobState::Starting,
    };
    JobView {
        name: record.job.name.clone(),
        state,
        profile: record.profile.clone(),
        reason: Some(record.reason.clone())
            .filter(|it| !it.is_empty())
            .into_iter()
            .chain(batch.and_then(|_| batch::failures(record)))
            .chain(troubles)
            .collect::<Vec<_>>()
            .join("; "),
        prediction: plan.filter(|_| batch.is_none()).map(|plan| PredictionView {
            items_per_s_predicted: plan.prediction.items_per_s,
            bound: plan.prediction.bound,
            bound_by: plan.prediction.bound_by.clone(),
        }),
        measured: None,
        replans: 0,
        notes: notes(record, nodes),
        flows: flows.collect(),
        tasks,
        batch,
        strategy: plan.filter(|_| batch.is_none()).map(|plan| strategy(&record.job, plan, &record.addresses)),
        explanation: None,
    }
}

/// Which tasks are not where they were placed first, and why; which are held to their data.
fn notes(record: &JobRecord, nodes: &Nodes) -> Vec<String> {
    let moved = record.moved.iter();
    let moved = moved.map(|(task, node)| format!("task {task} was moved because node {node} is lost"));
    moved.chain(data::notes(record, nodes)).collect()
}

/// What keeps a committed job from running: nodes that it needs and that are not there, whatever they said
/// last, and tasks that ended or cannot start.
fn troubles(nodes: &Nodes, plan: &JobPlan, tasks: &[TaskView]) -> Vec<String> {
    let lost =
        nodes_of(plan).into_iter().filter_map(|node| Some(format!("node {node} {}", nodes.absence(node)?)));
    let ended =
        |task: &&TaskView| task.phase != "running" && !task.detail.is_empty() && task.outcome.is_none();
    let ended = tasks.iter().filter(ended);
    lost.chain(ended.map(|task| format!("task {}: {}", task.name, task.detail))).collect()
}

/// Of a batch that is not over.
fn under_way(batch: BatchView) -> JobState {
    match batch {
        BatchView { running: 1.., .. } => JobState::Running,
        BatchView { placed: 1.., .. } => JobState::Starting,
        _ => JobState::Waiting,
    }
}

/// A task that has run to its end.
fn ended(record: &JobRecord, task: &TaskName, end: &Ended) -> Option<TaskView> {
    let program = &record.job.tasks.get(task)?.program;
    let Outcome { exit_code, attempts } = end.outcome;
    let code = || exit_code.map_or_else(|| "no code".to_owned(), |code| format!("code {code}"));
    let succeeded = end.outcome.succeeded();
    Some(TaskView {
        name: task.clone(),
        node: end.node.clone(),
        image: image_of(record, task)?.name.clone(),
        address: None,
        container: end.container_id.clone(),
        phase: if succeeded { "succeeded" } else { "failed" }.to_owned(),
        detail: if succeeded { String::new() } else { format!("ended with {}", code()) },
        restarts: attempts.saturating_sub(1),
        cpu_millicores: program.resources.cpu.0,
        memory_bytes: program.resources.memory.0,
        bytes_predicted: 0,
        bytes_fetched: 0,
        pull_s: None,
        pull_s_predicted: None,
        started_ms: end.started_ms,
        finished_ms: end.finished_ms,
        outcome: Some(end.outcome),
    })
}

pub(crate) fn tasks(nodes: &Nodes, record: &JobRecord, plan: &JobPlan) -> Vec<TaskView> {
    let mut views = Vec::new();
    for task in record.images.keys() {
        let (Some(node), Some(image)) = (plan.placement.get(task), image_of(record, task)) else { continue };
        let known = nodes.table.get(node);
        let predicted = record.bytes_predicted.get(task);
        // Without an entry the node pulls the image for another task, which shows the bytes.
        let fetched = known.filter(|_| predicted.is_some()).and_then(|it| it.observed.as_ref());
        let fetched = fetched.map_or(0, |observed| bytes_fetched(observed, &image.name));
        let pulled = known.filter(|_| predicted.is_some()).and_then(|it| it.line.last(&image.name));
        let container = known.and_then(|known| container(known, record, task));
        let limits = limits(record, plan, task);
        views.push(TaskView {
            name: task.clone(),
            node: node.clone(),
            image: image.name.clone(),
            address: record.addresses.get(task).copied(),
            container: container.map(|it| it.container_id.clone()).unwrap_or_default(),
            phase: container.map_or("planned", |it| phase(it.phase)).to_owned(),
            detail: container.map(|it| it.detail.clone()).unwrap_or_default(),
            restarts: container.map_or(0, |it| it.restarts),
            cpu_millicores: limits.map_or(0, |share| share.cpu.0),
            memory_bytes: limits.map_or(0, |share| share.memory.0),
            bytes_predicted: predicted.copied().unwrap_or(0),
            bytes_fetched: fetched,
            pull_s: pulled.map(|pull| pull.seconds),
            pull_s_predicted: pulled.and_then(|pull| pull.seconds_predicted),
            started_ms: container.and_then(|it| it.started_ms),
            finished_ms: container.and_then(|it| it.finished_ms),
            outcome: container.and_then(|it| it.outcome),
        });
    }
    views
}

/// Bytes that a node fetched of an image, as it says.
pub(crate) fn bytes_fetched(observed: &Observed, image: &str) -> u64 {
    observed
        .pulls
        .iter()
        .filter(|pull| pull.image == image)
        .map(|pull| pull.bytes_fetched.0)
        .max()
        .unwrap_or(0)
}

fn container<'a>(known: &'a NodeRecord, record: &JobRecord, task: &TaskName) -> Option<&'a ContainerState> {
    let containers = &known.observed.as_ref()?.containers;
    containers.iter().find(|state| state.job == record.job.name && state.task == *task)
}

fn phase(phase: ContainerPhase) -> &'static str {
    match phase {
        ContainerPhase::Waiting => "waiting",
        ContainerPhase::Pulling => "pulling",
        ContainerPhase::Creating => "creating",
        ContainerPhase::Running => "running",
        ContainerPhase::Exited => "exited",
        ContainerPhase::Failed => "failed",
        ContainerPhase::Succeeded => "succeeded",
        ContainerPhase::Unknown => "unknown",
    }
}

fn flow_view(model: &Model, nodes: &Nodes, job: (&JobRecord, &JobPlan), flow: &FlowPlan) -> FlowView {
    let measured = flow.path.first().and_then(|first| measured(nodes, first, flow));
    FlowView {
        from: flow.id.from.clone(),
        to: flow.id.to.clone(),
        path: flow.path.clone(),
        bytes_per_item: flow.volume.0,
        key: flow_key(model, job.0, job.1, flow),
        rate_given_bps: flow.rate.0,
        rate_measured_bps: measured.map(|rate| rate.rate.0),
        backlog_bytes: measured.map_or(0, |rate| rate.backlog.0),
    }
}

fn measured<'a>(nodes: &'a Nodes, first: &NodeId, flow: &FlowPlan) -> Option<&'a FlowRate> {
    let report = nodes.table.get(first)?.report.as_ref()?;
    report.flows.iter().find(|rate| rate.id == flow.id)
}

/// One node as users see it.
pub(crate) fn node(model: &Model, name: &NodeId, known: &NodeRecord) -> NodeView {
    let inventory = known.inventory.as_ref();
    let count = |of: fn(&Inventory) -> u64| inventory.map_or(0, of);
    let report = known.report.as_ref();
    let sent = model.version(name);
    let observed = known.observed.as_ref();
    let version = observed.map(|observed| observed.version).unwrap_or_default();
    let (cpu_requested_millicores, memory_requested_bytes) = requested(model, name);
    let capabilities = inventory.iter().flat_map(|inventory| &inventory.capabilities.problems);
    NodeView {
        name: name.clone(),
        online: known.online,
        offline_since_ms: Some(known.since_ms).filter(|since_ms| !known.online && *since_ms > 0),
        lost: false,
        ready: known.ready(),
        cordon: None,
        architecture: inventory.map(|it| it.architecture.clone()).unwrap_or_default(),
        class: inventory.map(|it| it.class.clone()).unwrap_or_default(),
        cpu_capacity_millicores: inventory.map_or(0, |it| it.cpu.0),
        cpu_requested_millicores,
        cpu_used_millicores: report.map_or(0, |it| it.cpu_used.0),
        core_speed: inventory.map_or(0.0, |it| it.core_speed),
        temperature_millicelsius: report.and_then(|it| it.temperature_millicelsius),
        memory_capacity_bytes: count(|it| it.memory.0),
        memory_requested_bytes,
        memory_used_bytes: report.map_or(0, |it| it.memory_used.0),
        disk_capacity_bytes: count(|it| it.disk.0),
        disk_used_bytes: report.map_or(0, |it| it.disk_used.0),
        agent_written_bytes: report.and_then(|it| it.disk_written).map(|bytes| bytes.0),
        agent_written_bytes_per_day: report.and_then(Report::disk_written_a_day).map(|bytes| bytes.0),
        labels: inventory.map(|it| it.labels.clone()).unwrap_or_default(),
        docker_version: inventory.map(|it| it.capabilities.docker_version.clone()).unwrap_or_default(),
        layers_held: inventory.map_or(0, |it| it.layers.chain_ids.len().max(it.layers.known_digests.len())),
        pulls: known.line.view(),
        version_sent: (sent.epoch, sent.generation),
        version_observed: (version.epoch, version.generation),
        clock_ahead_ms: known.clock_ahead_ms,
        converged: observed.is_some_and(|observed| observed.converged && observed.version == sent),
        links: known.links.iter().flat_map(|it| &it.links).map(|it| link(model, name, it)).collect(),
        problems: capabilities
            .cloned()
            .chain(known.ahead.map(|theirs| ahead(model, theirs)))
            .chain(observed.iter().flat_map(|it| &it.problems).cloned())
            .collect(),
    }
}

fn ahead(model: &Model, theirs: Version) -> String {
    let Version { epoch, generation } = theirs;
    let held = format!("it holds desired state {epoch}.{generation}, newer than any that was sent");
    if model.regain.is_some() {
        return format!("{held}: it is asked what it runs");
    }
    format!(
        "{held}: the controller's state was lost or is an old copy; the node is left as it is until \
         `edgeloom-controller import` brings the state back, `edgeloom-controller repair --regain` takes back what \
         nodes run, or `edgeloom-controller repair --overrule` gives it up"
    )
}

/// CPU in millicores and memory in bytes that the node's containers were promised.
pub(crate) fn requested(model: &Model, node: &NodeId) -> (u32, u64) {
    let containers = || model.published.get(node).into_iter().flat_map(|document| &document.containers);
    (containers().map(|spec| spec.cpu.0).sum(), containers().map(|spec| spec.memory.0).sum())
}

fn link(model: &Model, node: &NodeId, link: &LinkReport) -> LinkView {
    let crosses =
        |flow: &&FlowPlan| flow.path.windows(2).any(|hop| hop[0] == *node && hop[1] == link.neighbour);
    LinkView {
        neighbour: link.neighbour.clone(),
        up: link.up,
        capacity_declared_bps: link.capacity_declared.map(|rate| rate.0),
        capacity_measured_bps: link.capacity_measured.map(|rate| rate.0),
        rate_reserved_bps: model
            .committed()
            .flat_map(|(_, plan)| &plan.flows)
            .filter(crosses)
            .map(|flow| flow.rate.0)
            .sum(),
        rtt_min_us: link.rtt_min_us,
        rtt_median_us: link.rtt_median_us,
        loss_permille: link.loss_permille,
    }
}

/// What could be emptied, and what that would cost.
pub(crate) fn consolidation(found: Consolidation) -> ConsolidationView {
    let moved = |it: Moved| MoveView {
        job: it.job,
        task: it.task,
        to: it.to,
        bytes_predicted: it.bytes.0,
        pull_s_predicted: it.pull_s,
        pause_s_predicted: it.pause_s,
    };
    let emptied =
        |it: Emptied| EmptiedView { node: it.node, moves: it.moves.into_iter().map(moved).collect() };
    ConsolidationView {
        nodes: found.emptied.into_iter().map(emptied).collect(),
        kept: found.kept.into_iter().map(|it| KeptView { node: it.node, reason: it.reason }).collect(),
        applied: false,
    }
}
