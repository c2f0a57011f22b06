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
    let known = || format!("{}, edgeloom@AGEING or edgeloom@AGEING/PATIENCE in seconds", NAMES.join(", "));
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
            let (ageing_s, own) = knobs_of(name)?;
            let patience_s = own.unwrap_or(patience_s);
            Method::Packing(Packing { objective: Objective::Completion, ageing_s, patience_s })
        }
    })
}

/// The seconds in `edgeloom@AGEING` and `edgeloom@AGEING/PATIENCE`; none: another name.
pub(crate) fn knobs_of(name: &str) -> Option<(f64, Option<f64>)> {
    let seconds = |text: &str| text.parse().ok().filter(|seconds| (0.0..f64::INFINITY).contains(seconds));
    let knobs = name.strip_prefix("edgeloom@")?;
    match knobs.split_once('/') {
        Some((ageing, patience)) => Some((seconds(ageing)?, Some(seconds(patience)?))),
        None => Some((seconds(knobs)?, None)),
    }
}

/// The default with every pair of these, beside the queues that go round what does not fit.
const AGEINGS_S: [u32; 5] = [1, 10, 100, 1000, 1_000_000];
const PATIENCES_S: [u32; 8] = [3600, 7200, 10_800, 14_400, 21_600, 43_200, 86_400, 1_000_000_000];

/// Names of the profiles that show all that the two knobs of the default span: from nearly the order of arrival to the
/// order of sizes alone.
#[must_use]
pub fn frontier() -> Vec<String> {
    let pairs = PATIENCES_S.iter().flat_map(|patience_s| {
        AGEINGS_S.iter().map(move |ageing_s| format!("{}@{ageing_s}/{patience_s}", NAMES[0]))
    });
    ["kube", "swarm", NAMES[0]].map(str::to_owned).into_iter().chain(pairs).collect()
}
