//! Rules between a job's own tasks as a batch knows them: tasks that share a machine, and tasks of which no two do.
//!
//! In: a job. Out: its groups, or nothing where its rules say more than that: they look at other jobs, at places
//! larger than a node or at ports, or keep apart some pairs of tasks that others do not join. Such jobs are decided on alone.

use edgeloom_common::ids::TaskName;
use edgeloom_common::job::{Attribute, Job, Placement, Selector, Term};
use std::collections::{BTreeMap, BTreeSet};

/// Numbers of groups; tasks in no group are left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Groups<'a> {
    pub(super) together: BTreeMap<&'a TaskName, usize>,
    pub(super) apart: BTreeMap<&'a TaskName, usize>,
}

impl<'a> Groups<'a> {
    /// None: a batch cannot keep the job's rules.
    pub(crate) fn of(job: &'a Job) -> Option<Self> {
        if job.tasks.values().all(|task| task.placement.is_anywhere()) {
            return Some(Self::default());
        }
        if !job.tasks.values().all(|task| task.copy_of.is_none() && is_known(&task.placement)) {
            return None;
        }
        let tasks: Vec<&TaskName> = job.tasks.keys().collect();
        let together = pairs(job, |placement| &placement.affinity.required);
        let apart = pairs(job, |placement| &placement.anti_affinity.required);
        let (near, far) = (groups(tasks.len(), &together), groups(tasks.len(), &apart));
        let all = |one: usize| far.iter().enumerate().filter(move |(at, _)| *at != one);
        let whole = (0..tasks.len())
            .all(|one| all(one).all(|(other, group)| *group != far[one] || apart.contains(&(one, other))));
        whole.then(|| Self { together: named(&tasks, &near), apart: named(&tasks, &far) })
    }
}

/// It asks for nothing but tasks of its own job on its node, or elsewhere. Tolerations are the nodes' affair.
fn is_known(placement: &Placement) -> bool {
    let mut rest = placement.clone();
    rest.tolerations.clear();
    let near = std::mem::take(&mut rest.affinity.required);
    let far = std::mem::take(&mut rest.anti_affinity.required);
    let own = |term: &Term| matches!(term.with, Selector::Task(_)) && term.by == Attribute::Name;
    rest.is_anywhere() && near.iter().chain(&far).all(own)
}

/// Of tasks by index, in both directions: either side's word counts.
fn pairs(job: &Job, terms: impl Fn(&Placement) -> &Vec<Term>) -> BTreeSet<(usize, usize)> {
    let mut all = BTreeSet::new();
    for (one, task) in job.tasks.values().enumerate() {
        for term in terms(&task.placement) {
            let Selector::Task(name) = &term.with else { continue };
            let other = job.tasks.keys().position(|task| task == name);
            all.extend(
                other
                    .filter(|other| *other != one)
                    .into_iter()
                    .flat_map(|other| [(one, other), (other, one)]),
            );
        }
    }
    all
}

/// Of each the first that it is joined with, through others if need be.
fn groups(count: usize, pairs: &BTreeSet<(usize, usize)>) -> Vec<usize> {
    let mut first: Vec<usize> = (0..count).collect();
    // The least number passes on by at least one step a time.
    for _ in 0..count {
        for (one, other) in pairs {
            first[*one] = first[*one].min(first[*other]);
        }
    }
    first
}

/// Groups of more than one.
fn named<'a>(tasks: &[&'a TaskName], groups: &[usize]) -> BTreeMap<&'a TaskName, usize> {
    let several = |group: &usize| groups.iter().filter(|other| *other == group).count() > 1;
    let pairs = tasks.iter().zip(groups).filter(|(_, group)| several(group));
    pairs.map(|(task, group)| (*task, *group)).collect()
}
