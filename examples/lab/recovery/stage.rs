//! A job on the lab, for one scenario: started, steady, watched, and stopped at the end.

use super::containers::{self, Container};
use super::holding::Holding;
use crate::api::wait_for;
use crate::document::Document;
use crate::ground::Ground;
use anyhow::{Context, Result};
use edgeloom_common::view::JobView;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long anything may take that has no bound of its own.
pub(super) const PATIENCE: Duration = Duration::from_secs(90);
/// Between looks for what has to come back.
const LOOK_PAUSE: Duration = Duration::from_millis(300);
/// Between two looks that have to be alike.
const STEADY_FOR: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Stage<'a> {
    pub(super) ground: &'a Ground,
    pub(super) document: Document,
}

impl<'a> Stage<'a> {
    /// Starts the job and waits until items come through and nothing changes any more.
    pub(super) fn set(ground: &'a Ground, text: &str) -> Result<Self> {
        let document = Document::read(text)?;
        ground.start(&document, |_| ())?;
        let stage = Self { ground, document };
        stage.expect_items()?;
        stage.converged("before the fault")?;
        Ok(stage)
    }

    /// Stops the job.
    pub(super) fn clear(self) -> Result<()> {
        self.ground.api.stop(&self.document.name)
    }

    pub(super) fn view(&self) -> Result<JobView> {
        let name = &self.document.name;
        self.ground.api.job(name)?.with_context(|| format!("{name} is gone"))
    }

    pub(super) fn converged(&self, when: &str) -> Result<()> {
        self.ground.await_converged(when, PATIENCE)
    }

    /// The job goes on: its last tasks count further.
    pub(super) fn expect_items(&self) -> Result<()> {
        self.ground.expect_items(&self.document)
    }

    /// What the nodes hold now.
    pub(super) fn holding(&self) -> Result<Holding> {
        Holding::of(&self.ground.lab.nodes())
    }

    /// What the nodes hold once that stays the same for a while.
    pub(super) fn steady(&self) -> Result<Holding> {
        let begun = Instant::now();
        let mut last = self.holding()?;
        loop {
            std::thread::sleep(STEADY_FOR);
            let now = self.holding()?;
            let difference = last.until(&now);
            if difference.all() == 0 {
                return Ok(now);
            }
            if begun.elapsed() > PATIENCE {
                difference.print();
                anyhow::bail!("what the nodes hold still changes after {} s", PATIENCE.as_secs());
            }
            last = now;
        }
    }

    /// Waits until the nodes hold things of the same content again. A node that does not answer does not hold
    /// them yet.
    pub(super) fn await_content(&self, wanted: &Holding) -> Result<()> {
        let mut last = None;
        let waited = wait_for("the nodes to hold what they held", PATIENCE, || {
            // A look starts some forty programs, which must not hold up what it waits for.
            std::thread::sleep(LOOK_PAUSE);
            last = self.holding().ok().map(|now| wanted.until(&now));
            Ok(last.as_ref().is_some_and(|difference| difference.contents() == 0))
        });
        if let (Err(_), Some(difference)) = (&waited, &last) {
            difference.print();
        }
        waited
    }

    /// The job's containers on these nodes.
    pub(super) fn containers(&self, nodes: &[String]) -> Result<Vec<Container>> {
        let nodes = self.ground.lab.nodes().into_iter().filter(|node| nodes.contains(&node.spec.name));
        let found = nodes.map(|node| containers::list(&node)).collect::<Result<Vec<_>>>()?;
        Ok(found.into_iter().flatten().filter(|one| one.job == self.document.name).collect())
    }

    /// Each node's documents, sent and confirmed.
    pub(super) fn versions(&self) -> Result<BTreeMap<String, [(u64, u64); 2]>> {
        let nodes = self.ground.api.nodes()?.nodes.into_iter();
        Ok(nodes.map(|node| (node.name.to_string(), [node.version_sent, node.version_observed])).collect())
    }

    /// Waits until the controller counts a node as online, or as offline.
    pub(super) fn await_presence(&self, node: &str, online: bool) -> Result<()> {
        let word = if online { "online" } else { "offline" };
        wait_for(&format!("{node} to be {word}"), PATIENCE, || {
            let nodes = self.ground.api.nodes()?.nodes;
            Ok(nodes.iter().any(|one| one.name.as_str() == node && one.online == online))
        })
    }
}
