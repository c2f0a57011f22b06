//! The experiment of "SLA classes": 90 containers of three users on 15 nodes, in four patterns of arrival.
//!
//! Paper: section 6. Nodes have 32 cores, five of each reputation; a user has the same service in all classes. A
//! container takes 300 s on one core and 300 s over its cores on more; its copies run side by side. Out: the
//! order of execution and the mean cores of each class, of the profile `sla` and of queues that serve by
//! arrival, that let the first one block the others, or both.

mod arrivals;
mod report;
mod run;
mod settings;

pub use arrivals::arrivals;
pub use report::{Experiment, Row, Started, Timing};
pub use settings::{Pattern, Policy, Settings};

use crate::SimError;
use crate::parallel::try_map;
use crate::random::Draw;

/// One policy over one pattern with one seed.
struct Run {
    pattern: Pattern,
    policy: Policy,
    seed: u64,
}

/// Runs every policy over every pattern and seed, so many at a time.
///
/// # Errors
/// A setting out of bounds, or a decision that breaks a rule.
pub fn run_sla(settings: &Settings, threads: usize) -> Result<Experiment, SimError> {
    settings.check()?;
    let seeds = settings.seed_base..settings.seed_base.saturating_add(settings.seeds);
    let pairs = settings.patterns.iter().flat_map(|pattern| Policy::ALL.map(|policy| (*pattern, policy)));
    let runs: Vec<Run> = pairs
        .flat_map(|(pattern, policy)| seeds.clone().map(move |seed| Run { pattern, policy, seed }))
        .collect();
    let outcomes = try_map(&runs, threads, |one| {
        let containers = arrivals::containers(settings, one.pattern, &mut Draw::new(one.seed));
        run::run(&containers, one.policy, one.seed)
    })?;
    Ok(report::report(settings, &outcomes))
}
