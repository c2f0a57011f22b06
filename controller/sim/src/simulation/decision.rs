//! What the scheduler says, and what becomes of it.

use edgeloom_sched::plan::JobPlan;
use edgeloom_sched::snapshot::{Change, Running, Waiting};
use edgeloom_sched::{check, decide};
use std::collections::BTreeMap;
use std::time::Instant;

use super::{Placed, Simulation};
use crate::SimError;

impl Simulation<'_> {
    /// Asks the scheduler and takes what it says, once the checker has found nothing.
    pub(super) fn place(&mut self) -> Result<(), SimError> {
        let started = Instant::now();
        let decision = decide(self.profile, &self.snapshot);
        self.outcome.decision_ms.push(started.elapsed().as_secs_f64() * 1000.0);
        let violations = check(&decision, &self.snapshot);
        if let Some(first) = violations.first() {
            let (profile, at_s) = (self.profile.name(), self.now_s);
            let seed = self.snapshot.seed;
            return Err(SimError::Broken { profile, seed, at_s, first: first.to_string() });
        }
        for plan in decision.plans {
            match self.snapshot.running.iter().position(|running| running.job.name == plan.job) {
                Some(at) => self.change(at, plan),
                None => self.start(plan),
            }
        }
        self.unplaced = decision.unplaced;
        Ok(())
    }

    fn start(&mut self, plan: JobPlan) {
        let number = self.numbers[&plan.job];
        let waiting = &mut self.snapshot.waiting;
        let at = waiting.iter().position(|waiting| waiting.job.name == plan.job);
        let Waiting { job, profiles, .. } = waiting.remove(at.expect("checked: a plan's job waits or runs"));
        let arrival = &self.arrivals[number];
        self.outcome.wait_s[number] = self.now_s - arrival.at_s;
        let load = self.ground.load(&job, &plan);
        let ends_s = self.now_s + arrival.duration_s;
        self.placed.push(Placed { number, ends_s, paused_until_s: self.now_s, load });
        let (change, enough) = (Change::Placement, BTreeMap::new());
        self.snapshot.running.push(Running { job, plan, profiles, change, enough });
    }

    /// A new plan of a running job.
    pub(super) fn change(&mut self, at: usize, plan: JobPlan) {
        let (running, placed) = (&mut self.snapshot.running[at], &mut self.placed[at]);
        if plan.placement != running.plan.placement {
            placed.paused_until_s = self.now_s + self.snapshot.policy.migration_s;
            self.outcome.migrations += 1;
        } else if !same_paths(&plan, &running.plan) {
            self.outcome.reroutes += 1;
        }
        placed.load = self.ground.load(&running.job, &plan);
        running.plan = plan;
    }
}

/// Of plans with the same placement, and so with flows between the same tasks.
fn same_paths(one: &JobPlan, other: &JobPlan) -> bool {
    one.flows.iter().all(|flow| other.flows.iter().any(|old| old.id == flow.id && old.path == flow.path))
}
