//! Rules that look at other tasks: affinity, anti-affinity, spread, ports of the node, volumes.
//!
//! In: a task, and the tasks that are placed. Out: places that it has to be in or may not be in, found once,
//! so that a node costs a look into small sets. Both sides' rules count, as in Kubernetes. A rule about a
//! task of the same job that is not placed yet is looked at when that one's turn comes.
//!
//! Spread, and the affinity of a task that its own rule looks at, are asked once, when the task is placed: what
//! comes later need not keep them. So where nobody knows who of the ledger's `fresh` jobs came first, they are
//! broken only if no order could have kept them.

use edgeloom_common::ids::{JobName, TaskName};
use edgeloom_common::job::{
    Attribute, Constraint, HostPort, Origin, Placement, Selector, Spread, Term, is_within,
};
use edgeloom_common::units::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::job_graph::JobGraph;
use crate::ledger::Ledger;
use crate::snapshot::Node;
use crate::world::World;

/// A placed task that has rules or labels, or whose job has rules.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resident {
    pub(crate) job: JobName,
    pub(crate) task: TaskName,
    pub(crate) placement: Placement,
    pub(crate) constraints: Vec<Constraint>,
}

impl Resident {
    /// A vertex as others see it once it is placed.
    pub(crate) fn of(graph: &JobGraph<'_>, vertex: usize) -> Self {
        let vertex = &graph.vertices[vertex];
        Self {
            job: graph.job.name.clone(),
            task: vertex.name.clone(),
            placement: vertex.placement.clone(),
            constraints: vertex.constraints.to_vec(),
        }
    }
}

/// Whether labels hold all that a selector asks for.
pub(crate) fn selects(wanted: &BTreeMap<String, String>, labels: &BTreeMap<String, String>) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// Whether a rule of a task of `job` looks at another task.
pub(crate) fn looks_at(selector: &Selector, job: &JobName, other: &Resident) -> bool {
    match selector {
        Selector::Task(name) => other.job == *job && other.task == *name,
        Selector::Labels(labels) => selects(labels, &other.placement.labels),
    }
}

/// Nodes that agree in the attribute are one place.
pub(crate) fn place<'n>(by: &Attribute, node: &'n Node) -> Option<&'n str> {
    by.of(&node.id, &node.labels)
}

/// Places by an attribute, and what they are to the task.
#[derive(Debug)]
struct Places<'w> {
    by: &'w Attribute,
    places: BTreeSet<&'w str>,
    text: String,
}

/// Rules about one task, made of both sides' words.
#[derive(Debug)]
pub(crate) struct Rules<'w> {
    together: Vec<Places<'w>>,
    apart: Vec<Places<'w>>,
    own: &'w Placement,
    job: &'w JobName,
    task: &'w TaskName,
}

impl<'w> Rules<'w> {
    /// For a vertex, given what the ledger holds; the task itself does not count where it is held already.
    pub(crate) fn of(
        world: &'w World<'_>,
        graph: &'w JobGraph<'_>,
        ledger: &'w Ledger,
        vertex: usize,
    ) -> Self {
        let (own, job, task) =
            (graph.vertices[vertex].placement, &graph.job.name, &graph.vertices[vertex].name);
        let mut rules = Self { together: Vec::new(), apart: Vec::new(), own, job, task };
        if own.is_anywhere() && !ledger.ruled {
            return rules;
        }
        let newcomer = Resident::of(graph, vertex);
        let scene = Scene { world, ledger, job, task };
        rules.own_terms(&scene, &newcomer);
        rules.others_terms(&scene, &newcomer);
        let spread = own.spread.iter().filter(|spread| spread.required);
        rules.apart.extend(spread.map(|spread| too_many(&scene, &newcomer, spread)));
        rules
    }

    fn own_terms(&mut self, scene: &Scene<'w, '_>, newcomer: &Resident) {
        for term in &self.own.affinity.required {
            let alone = match &term.with {
                Selector::Task(_) => scene.seen(term, &newcomer.job).next().is_none(),
                Selector::Labels(labels) => {
                    let mut before = scene.seen(term, &newcomer.job).filter(|(_, it)| !scene.fresh(it));
                    selects(labels, &newcomer.placement.labels) && before.next().is_none()
                }
            };
            if !alone {
                let text = format!("{} is not there", written(&term.with));
                self.together.push(Places { by: &term.by, places: scene.places(term, &newcomer.job), text });
            }
        }
        for term in &self.own.anti_affinity.required {
            let places = scene.places(term, &newcomer.job);
            let text = format!("{} is there, from which it has to be apart", written(&term.with));
            self.apart.push(Places { by: &term.by, places, text });
        }
    }

    fn others_terms(&mut self, scene: &Scene<'w, '_>, newcomer: &Resident) {
        for (node, resident) in scene.residents() {
            let named = |term: &&Term| looks_at(&term.with, &resident.job, newcomer);
            let here = |term: &'w Term| place(&term.by, node).into_iter().collect();
            // Another job's required affinity was met when it was placed, and asks nothing of newcomers.
            let peers = resident.placement.affinity.required.iter().filter(named);
            for term in peers.filter(|term| matches!(term.with, Selector::Task(_))) {
                let text = format!("{} has to be together with it", resident.task);
                self.together.push(Places { by: &term.by, places: here(term), text });
            }
            for term in resident.placement.anti_affinity.required.iter().filter(named) {
                let text = format!("{} of job {} has to be apart from it", resident.task, resident.job);
                self.apart.push(Places { by: &term.by, places: here(term), text });
            }
        }
    }

    /// Why a node with these residents is refused.
    pub(crate) fn refusal(&self, node: &Node, residents: &[Arc<Resident>]) -> Option<String> {
        let within =
            |places: &&Places<'_>| place(places.by, node).is_some_and(|place| places.places.contains(place));
        if let Some(missed) = self.together.iter().find(|places| !within(places)) {
            return Some(missed.text.clone());
        }
        if let Some(hit) = self.apart.iter().find(within) {
            return Some(hit.text.clone());
        }
        let keyless =
            self.own.spread.iter().find(|spread| spread.required && place(&spread.by, node).is_none());
        if let Some(spread) = keyless {
            return Some(format!("has no {} to spread by", attribute(&spread.by)));
        }
        let taken = self.taken_port(residents).or_else(|| self.closed_folder(node));
        taken.or_else(|| self.short_volume(node, residents))
    }

    fn closed_folder(&self, node: &Node) -> Option<String> {
        self.own.mounts.iter().find_map(|mount| {
            let Origin::Host(folder) = &mount.from else { return None };
            let open = is_within(folder, &node.hosting.folders);
            (!open).then(|| format!("does not let containers have {folder}"))
        })
    }

    fn others<'r>(&self, residents: &'r [Arc<Resident>]) -> impl Iterator<Item = &'r Placement> {
        let (job, task) = (self.job, self.task);
        let others = residents.iter().filter(move |it| it.job != *job || it.task != *task);
        others.map(|resident| &resident.placement)
    }

    fn taken_port(&self, residents: &[Arc<Resident>]) -> Option<String> {
        let taken = self.others(residents).flat_map(|placement| &placement.ports);
        let wanted = |port: &&HostPort| self.own.ports.iter().any(|own| own.clashes(port));
        let both = taken.filter(wanted).min()?;
        Some(format!("port {} is taken", both.port))
    }

    fn short_volume(&self, node: &Node, residents: &[Arc<Resident>]) -> Option<String> {
        self.own.volumes.iter().find_map(|volume| {
            let of_class = |placement: &Placement| -> u64 {
                let same = placement.volumes.iter().filter(|other| other.class == volume.class);
                same.map(|other| other.size.0).sum()
            };
            let used: u64 = self.others(residents).map(of_class).sum();
            let has = node.hosting.volumes.get(&volume.class).map_or(0, |has| has.0);
            let (free, wanted) = (has.saturating_sub(used), of_class(self.own));
            let text =
                || format!("volume {} of {} requested, {} unused", volume.class, Bytes(wanted), Bytes(free));
            (wanted > free).then(text)
        })
    }
}

/// Where all tasks but one are.
struct Scene<'w, 'c> {
    world: &'w World<'c>,
    ledger: &'w Ledger,
    job: &'w JobName,
    task: &'w TaskName,
}

impl<'w> Scene<'w, '_> {
    fn residents(&self) -> impl Iterator<Item = (&'w Node, &'w Resident)> {
        let (nodes, ledger, job, task) = (&self.world.nodes, self.ledger, self.job, self.task);
        let all = nodes.iter().enumerate().flat_map(move |(at, node)| {
            ledger.residents[at].iter().map(move |resident| (*node, resident.as_ref()))
        });
        all.filter(move |(_, resident)| resident.job != *job || resident.task != *task)
    }

    /// Whether another task may have been placed after the one at hand.
    fn fresh(&self, other: &Resident) -> bool {
        self.ledger.fresh.contains(&other.job)
    }

    /// The tasks that a term of a task of `job` looks at, with their nodes.
    fn seen(&self, term: &Term, job: &JobName) -> impl Iterator<Item = (&'w Node, &'w Resident)> {
        self.residents().filter(move |(_, resident)| looks_at(&term.with, job, resident))
    }

    /// Where they are.
    fn places(&self, term: &'w Term, job: &JobName) -> BTreeSet<&'w str> {
        self.seen(term, job).filter_map(|(node, _)| place(&term.by, node)).collect()
    }
}

/// Places where one more task would be too many.
fn too_many<'w>(scene: &Scene<'w, '_>, newcomer: &Resident, spread: &'w Spread) -> Places<'w> {
    // Per place: all tasks that count, and those that were there before or keep the same rule.
    let mut counts: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    // A place that the task may not be in has no say in how empty the emptiest is.
    let possible =
        scene.world.nodes.iter().filter(|node| {
            node.ready && newcomer.constraints.iter().all(|it| it.holds(&node.id, &node.labels))
        });
    counts.extend(possible.filter_map(|node| Some((place(&spread.by, node)?, (0, 0)))));
    let counted =
        scene.residents().filter(|(_, resident)| selects(&spread.labels, &resident.placement.labels));
    for (node, other) in counted {
        let alike = other.placement.spread.contains(spread) && other.constraints == newcomer.constraints;
        if let Some((all, before)) = place(&spread.by, node).and_then(|place| counts.get_mut(place)) {
            *all += 1;
            *before += u32::from(alike || !scene.fresh(other));
        }
    }
    let own = u32::from(selects(&spread.labels, &newcomer.placement.labels));
    let least = counts.values().map(|(all, _)| *all).min().unwrap_or(0);
    let over = counts.into_iter().filter(|(_, (_, before))| before + own > least + spread.max_skew);
    let text = format!("one more than {} above the emptiest {}", spread.max_skew, attribute(&spread.by));
    Places { by: &spread.by, places: over.map(|(place, _)| place).collect(), text }
}

fn written(selector: &Selector) -> String {
    match selector {
        Selector::Task(name) => name.to_string(),
        Selector::Labels(labels) => {
            let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("a task with {}", pairs.join(" "))
        }
    }
}

fn attribute(by: &Attribute) -> String {
    match by {
        Attribute::Name => "node".to_owned(),
        Attribute::Label(key) => format!("node.labels.{key}"),
    }
}
