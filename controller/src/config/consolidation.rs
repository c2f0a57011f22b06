//! The section [consolidation]: whether the number of nodes that take tasks follows the load.

use super::section::Section;
use edgeloom_cluster::FollowLoad;
use std::time::Duration;

const ALL: &str = "all";
const FOLLOW: &str = "follow-load";
/// Seconds: a day at most.
const STEADY_MAX_S: u64 = 86_400;
const NODES_MAX: usize = 10_000;

/// What is written in place of the defaults; none: all nodes take tasks. Problems are noted.
pub(super) fn read(section: &mut Section) -> Option<FollowLoad> {
    let wanted = section.text_or("active_nodes", ALL);
    if ![ALL, FOLLOW].contains(&wanted.as_str()) {
        section.refuse("active_nodes", format!("{wanted:?} is neither \"{ALL}\" nor \"{FOLLOW}\""));
    }
    let default = FollowLoad::default();
    let follow = FollowLoad {
        empty_below: part(section, "empty_below").unwrap_or(default.empty_below),
        take_back_above: part(section, "take_back_above").unwrap_or(default.take_back_above),
        steady: steady(section).unwrap_or(default.steady),
        least_nodes: least_nodes(section).unwrap_or(default.least_nodes),
    };
    if follow.empty_below >= follow.take_back_above {
        let problem = "is not below take_back_above: nodes would be emptied and taken back in turn";
        section.refuse("empty_below", problem.to_owned());
    }
    (wanted == FOLLOW).then_some(follow)
}

/// `50%`, as a part of 1.
fn part(section: &mut Section, key: &str) -> Option<f64> {
    section.number(key, ("%", 1..=100, "50%")).map(|percent| f64::from(percent) / 100.0)
}

fn steady(section: &mut Section) -> Option<Duration> {
    let max = u32::try_from(STEADY_MAX_S).unwrap_or(u32::MAX);
    section.number("steady", ("s", 1..=max, "300s")).map(|seconds| Duration::from_secs(seconds.into()))
}

fn least_nodes(section: &mut Section) -> Option<usize> {
    let max = u32::try_from(NODES_MAX).unwrap_or(u32::MAX);
    section.number("least_nodes", ("", 1..=max, "1")).and_then(|nodes| usize::try_from(nodes).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> (Option<FollowLoad>, Vec<String>) {
        let mut section = Section::root(text.parse().unwrap());
        let read = read(&mut section);
        (read, Section::finish([section]).iter().map(ToString::to_string).collect())
    }

    #[test]
    fn all_nodes_take_tasks_unless_it_is_said() {
        assert_eq!(read_text(""), (None, vec![]));
        assert_eq!(read_text("active_nodes = \"all\"\nsteady = \"9s\""), (None, vec![]));
        assert_eq!(read_text("active_nodes = \"follow-load\""), (Some(FollowLoad::default()), vec![]));
        let text = "active_nodes = \"follow-load\"\nempty_below = \"30%\"\ntake_back_above = \"70%\"\n\
                    steady = \"60s\"\nleast_nodes = \"2\"";
        let wanted = FollowLoad {
            empty_below: 0.3,
            take_back_above: 0.7,
            steady: Duration::from_secs(60),
            least_nodes: 2,
        };
        assert_eq!(read_text(text), (Some(wanted), vec![]));
    }

    #[test]
    fn what_does_not_read_or_would_chase_itself_is_refused() {
        for text in [
            "active_nodes = \"some\"",
            "empty_below = \"80%\"",
            "take_back_above = \"101%\"",
            "empty_below = 0.5",
            "steady = \"0s\"",
            "least_nodes = \"0\"",
            "nodes = \"all\"",
        ] {
            assert_eq!(read_text(text).1.len(), 1, "{text}: {:?}", read_text(text).1);
        }
    }
}
