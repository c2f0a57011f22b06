//! The section [batch]: what batches are packed for, how long anyone waits for it, and how long ECSched gathers.

use super::section::Section;
use edgeloom_cluster::Batching;
use edgeloom_sched::batch::Objective;
use std::time::Duration;

/// Seconds: ten years for knobs that may be as good as off, an hour for a heartbeat.
const KNOB_MAX_S: u32 = 315_360_000;
const HEARTBEAT_MAX_S: u32 = 3600;

/// What is written in place of the defaults; problems are noted.
pub(super) fn read(section: &mut Section) -> Batching {
    let mut batching = Batching::default();
    let packing = &mut batching.packing;
    packing.objective = objective(section).unwrap_or(packing.objective);
    packing.ageing_s = seconds(section, "ageing").unwrap_or(packing.ageing_s);
    packing.patience_s = seconds(section, "patience").unwrap_or(packing.patience_s);
    let heartbeat = section.number("heartbeat", ("s", 0..=HEARTBEAT_MAX_S, "5s"));
    batching.heartbeat = heartbeat.map_or(batching.heartbeat, |seconds| Duration::from_secs(seconds.into()));
    batching
}

fn objective(section: &mut Section) -> Option<Objective> {
    let wanted = section.text_or("objective", Objective::Completion.name());
    let found = Objective::ALL.into_iter().find(|objective| objective.name() == wanted);
    if found.is_none() {
        let known = Objective::ALL.map(Objective::name).join(", ");
        section.refuse("objective", format!("{wanted:?} is no objective; known are: {known}"));
    }
    found
}

fn seconds(section: &mut Section, key: &str) -> Option<f64> {
    section.number(key, ("s", 1..=KNOB_MAX_S, "3600s")).map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> (Batching, Vec<String>) {
        let mut section = Section::root(text.parse().unwrap());
        let read = read(&mut section);
        (read, Section::finish([section]).iter().map(ToString::to_string).collect())
    }

    #[test]
    fn short_completion_is_packed_for_unless_something_else_is_said() {
        assert_eq!(read_text(""), (Batching::default(), vec![]));
        assert_eq!(Batching::default().packing.objective, Objective::Completion);
        for objective in Objective::ALL {
            let (read, problems) = read_text(&format!("objective = \"{}\"", objective.name()));
            assert_eq!((read.packing.objective, problems), (objective, vec![]));
        }
        let (read, problems) = read_text("ageing = \"60s\"\npatience = \"7200s\"\nheartbeat = \"0s\"");
        assert_eq!((read.packing.ageing_s, read.packing.patience_s), (60.0, 7200.0));
        assert_eq!((read.heartbeat, problems), (Duration::ZERO, vec![]));
    }

    #[test]
    fn what_does_not_read_is_refused() {
        for text in [
            "objective = \"profit\"",
            "ageing = \"0s\"",
            "patience = \"6h\"",
            "heartbeat = \"-1s\"",
            "heartbeat = 5",
            "size = \"3\"",
        ] {
            assert_eq!(read_text(text).1.len(), 1, "{text}");
        }
    }
}
