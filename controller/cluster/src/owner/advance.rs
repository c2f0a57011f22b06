//! From commits to nodes: one step of documents at a time, the next once every node has confirmed.
//!
//! In: the model and what nodes confirmed. Out: journaled publications. A node that does not confirm within
//! [`STEP_DEADLINE_MS`] is silent: steps no longer wait for it. A job whose first commit it never confirmed
//! goes back to waiting; one that was confirmed everywhere stays, however long a node is away.

use super::Owner;
use super::decide::TAKEN_BACK;
use crate::barrier;
use crate::events::Kind;
use crate::journal::JournalError;
use crate::lost::lost_after_ms;
use crate::model::{Event, JobRecord, Phase, nodes_of};
use edgeloom_common::desired::DesiredState;
use edgeloom_common::ids::{JobName, NodeId};
use edgeloom_sched::plan::JobPlan;
use std::collections::{BTreeMap, BTreeSet};

/// How long nodes have to confirm a step.
pub(crate) const STEP_DEADLINE_MS: u64 = 10_000;

impl Owner {
    pub(super) fn try_advance(&mut self) -> Result<(), JournalError> {
        self.learn_topology()?;
        self.note_presence();
        self.regain()?;
        if self.gathering() {
            return Ok(());
        }
        self.give_up()?;
        self.take_back_overdue()?;
        self.take_ends()?;
        self.mend()?;
        self.decide_waiting()?;
        self.drain()?;
        self.step()?;
        self.finish_stopping()
    }

    fn learn_topology(&mut self) -> Result<(), JournalError> {
        let known: Vec<NodeId> = self.nodes.table.keys().cloned().collect();
        for node in known {
            let neighbours = self.nodes.neighbours(&node);
            let online = self.nodes.online(&node);
            match neighbours.or_else(|| online.then(BTreeMap::new)) {
                Some(neighbours)
                    if self.model().topology.get(&node) != Some(&neighbours)
                        && !(neighbours.is_empty() && self.model().topology.contains_key(&node)) =>
                {
                    self.state.commit(Event::Topology { node, neighbours })?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Nodes whose confirmation the next step waits for: not those that did not confirm before, and not one
    /// that is offline where no change under way needs it.
    pub(super) fn awaited(&self) -> BTreeSet<NodeId> {
        let published = &self.model().published;
        let open = self.model().committed().filter(|(record, _)| !record.settled());
        let needed: BTreeSet<NodeId> = open.flat_map(|(record, plan)| needed(record, plan)).collect();
        let waits = |node: &&NodeId| {
            let known = self.nodes.table.get(*node);
            let left_out = known.is_some_and(|known| known.silent || known.ahead.is_some());
            // One not heard of since the start has no time since which it is offline.
            let offline = known.is_some_and(|known| !known.online && known.since_ms > 0);
            !left_out && (!offline || needed.contains(*node)) && !self.nodes.confirmed(node, published)
        };
        published.keys().filter(waits).cloned().collect()
    }

    /// After the deadline: nodes that did not confirm are left out, and jobs that need them go back.
    fn give_up(&mut self) -> Result<(), JournalError> {
        let mut silent = self.awaited();
        silent.retain(|node| self.overdue_at(node));
        if silent.is_empty() {
            return Ok(());
        }
        for node in &silent {
            self.nodes.table.entry(node.clone()).or_default().silent = true;
        }
        if self.take_back_from(&silent)? {
            return Ok(());
        }
        let needs = |plan: &JobPlan| {
            let found: Vec<&str> = nodes_of(plan)
                .into_iter()
                .filter(|node| silent.contains(*node))
                .map(NodeId::as_str)
                .collect();
            found.join(", ")
        };
        let back: Vec<(JobName, String)> = self
            .model()
            .committed()
            .filter(|(record, _)| !record.confirmed)
            .map(|(record, plan)| (record.job.name.clone(), needs(plan)))
            .filter(|(_, nodes)| !nodes.is_empty())
            .collect();
        self.fail(back.iter().map(|(job, _)| job.clone()));
        for (job, nodes) in back {
            let reason = format!("{TAKEN_BACK} {nodes} within {} s", STEP_DEADLINE_MS / 1000);
            self.events.note(self.now_ms, Some(&job), Kind::Waiting, reason.clone());
            self.state.commit(Event::Returned { job, reason })?;
        }
        Ok(())
    }

    /// The node had its time for this step, or was away for as long already.
    fn overdue_at(&self, node: &NodeId) -> bool {
        let known = self.nodes.table.get(node).filter(|known| !known.online && known.since_ms > 0);
        let since_ms = known.map_or(self.step_ms, |known| known.since_ms.min(self.step_ms));
        self.now_ms.saturating_sub(since_ms) >= STEP_DEADLINE_MS
    }

    /// Publishes the next step once every awaited node has confirmed the one before.
    fn step(&mut self) -> Result<(), JournalError> {
        if !self.awaited().is_empty() || !self.informed() {
            return Ok(());
        }
        let mut goal = self.goal();
        let published = &self.model().published;
        goal.documents.retain(|node, _| self.nodes.may_follow(node, published));
        let documents = barrier::next(&self.model().published, &goal);
        if documents.is_empty() {
            return if self.arrived(&goal) { self.confirm() } else { Ok(()) };
        }
        self.publish(documents.into_values().collect())
    }

    /// Since the start every node that is there has told of its links: until then it is not known which are
    /// down, and routes would change for nothing.
    fn informed(&self) -> bool {
        self.untold
            .iter()
            .filter_map(|node| self.nodes.table.get(node))
            .all(|known| !known.online || self.now_ms.saturating_sub(known.since_ms) >= STEP_DEADLINE_MS)
    }

    /// Everything committed has arrived at every node that answers.
    fn confirm(&mut self) -> Result<(), JournalError> {
        let fresh = self.model().committed().filter(|(record, _)| !record.settled());
        let jobs: Vec<JobName> = fresh.map(|(record, _)| record.job.name.clone()).collect();
        if jobs.is_empty() {
            return Ok(());
        }
        for job in &jobs {
            let record = &self.model().jobs[job];
            // One that went back to its old plan was not carried out.
            if !record.confirmed || record.previous.is_some() {
                self.losses.retries.carried_out(job);
            }
            self.strand(job, self.model().jobs[job].left.clone())?;
        }
        self.state.commit(Event::Confirmed { jobs })
    }

    pub(super) fn publish(&mut self, mut documents: Vec<DesiredState>) -> Result<(), JournalError> {
        let (epoch, mut generation) = (self.model().epoch, self.model().generation);
        for document in &mut documents {
            generation += 1;
            (document.epoch, document.generation) = (epoch, generation);
            self.outbox.mark(document.node.clone());
        }
        self.step_ms = self.now_ms;
        self.state.commit(Event::Published { documents })
    }

    /// Stopped jobs of which no living node has anything are gone.
    fn finish_stopping(&mut self) -> Result<(), JournalError> {
        let stopping = self.model().jobs.values().filter(|record| record.phase == Phase::Stopping);
        let gone: Vec<JobName> = stopping
            .filter(|record| self.left_nothing(record))
            .map(|record| record.job.name.clone())
            .collect();
        if gone.is_empty() {
            return Ok(());
        }
        for job in gone {
            self.strand(&job, self.model().jobs[&job].whereabouts())?;
            self.state.commit(Event::Gone { job: job.clone() })?;
            self.events.note(self.now_ms, Some(&job), Kind::Gone, "nothing of it is left".to_owned());
        }
        self.share_out()
    }

    fn left_nothing(&self, record: &JobRecord) -> bool {
        let name = &record.job.name;
        let published = &self.model().published;
        let addresses: BTreeSet<_> = record.addresses.values().collect();
        let places: BTreeSet<NodeId> = record.whereabouts().into_iter().map(|(_, node)| node).collect();
        // A node with a container of it that is away for a moment, as an agent that starts again, comes back with
        // the container: the name must not be free before. Once it is lost, what it runs is cut off instead.
        let gone_with_it = |node: &NodeId| {
            let away_ms = self.nodes.away_ms(node, self.now_ms);
            !places.contains(node) || away_ms.is_some_and(|away_ms| away_ms >= lost_after_ms(record))
        };
        published.iter().all(|(node, document)| {
            let mentioned = document.containers.iter().any(|spec| spec.job == *name)
                || document.flows.iter().any(|flow| flow.id.job == *name)
                || document.routes.iter().any(|route| addresses.contains(&route.address))
                || document.kept.iter().any(|kept| kept.job == *name);
            let known = self.nodes.table.get(node);
            // A node not heard of since the controller started is waited for until it counts as silent.
            let dead = known.is_some_and(|known| known.silent || (!known.online && gone_with_it(node)));
            let observed = known.and_then(|known| known.observed.as_ref());
            let runs = observed.is_some_and(|seen| seen.containers.iter().any(|state| state.job == *name));
            let listed = observed.is_some_and(|seen| seen.listed);
            !mentioned && (dead || (!runs && listed && self.nodes.confirmed(node, published)))
        })
    }
}

/// Nodes that a change of the job leads to or away from.
fn needed(record: &JobRecord, plan: &JobPlan) -> BTreeSet<NodeId> {
    let plans = std::iter::once(plan).chain(&record.previous);
    let nodes = plans.flat_map(nodes_of).cloned();
    nodes.chain(record.left.iter().map(|(_, node)| node.clone())).collect()
}
