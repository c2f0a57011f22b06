//! Who takes part: names as users write them, and what decides under each.

use edgeloom_sched::batch::{Blocked, Method, Objective, Packing};

use super::Settings;
use crate::SimError;

/// All names but those with an ageing of their own.
const NAMES: [&str; 10] = [
    "edgeloom",
    "edgeloom-count",
    "edgeloom-utilisation",
    "ecsched-dp",
    "ecsched-dp-once",
    "ecsched-ml",
    "kube",
    "kube-blocking",
    "swarm",
    "swarm-blocking",
];

/// One profile of the experiment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Contender {
    pub(super) name: String,
    pub(super) method: Method,
}

/// The contenders of those names, each once.
pub(super) fn contenders(settings: &Settings) -> Result<Vec<Contender>, SimError> {
    let names = &settings.profiles;
    let known = || format!("{}, edgeloom@SECONDS of ageing", NAMES.join(", "));
    if names.is_empty() {
        return Err(SimError::NoProfile { known: known() });
    }
    if let Some(at) = (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
        return Err(SimError::Twice { profile: names[at].clone() });
    }
    let one = |name: &String| {
        let method = method(name, settings);
        let method = method.ok_or_else(|| SimError::Profile { profile: name.clone(), known: known() })?;
        Ok(Contender { name: name.clone(), method })
    };
    names.iter().map(one).collect()
}

fn method(name: &str, settings: &Settings) -> Option<Method> {
    let Settings { ageing_s, patience_s, .. } = *settings;
    let packing = |objective| Method::Packing(Packing { objective, ageing_s, patience_s });
    Some(match name {
        "edgeloom" => packing(Objective::Completion),
        "edgeloom-count" => packing(Objective::Count),
        "edgeloom-utilisation" => packing(Objective::Utilisation),
        "ecsched-dp" => Method::EcschedDp,
        "ecsched-dp-once" => Method::EcschedDpOnce,
        "ecsched-ml" => Method::EcschedMl,
        "kube" => Method::Spread(Blocked::One),
        "kube-blocking" => Method::Spread(Blocked::Queue),
        "swarm" => Method::MostLoaded(Blocked::One),
        "swarm-blocking" => Method::MostLoaded(Blocked::Queue),
        _ => {
            let ageing_s = name.strip_prefix("edgeloom@")?.parse().ok()?;
            let sound = (0.0..f64::INFINITY).contains(&ageing_s);
            sound.then_some(Method::Packing(Packing {
                objective: Objective::Completion,
                ageing_s,
                patience_s,
            }))?
        }
    })
}
