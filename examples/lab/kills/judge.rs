//! Why a container ended: because its job did, because the controller says so, because Docker died while it
//! started, or for no reason at all, which is a violation.

use super::killer::Kill;
use super::lives::Ended;
use super::timeline::Timeline;
use super::victim::Victim;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A container that began so shortly before its Docker died was still being started.
const STARTING_S: f64 = 5.0;
/// Between what the controller tells and what it leads to on the node.
const TOLD_S: f64 = 60.0;

/// Something that the controller told of a job, from its log: the log outlives its daemon.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) at_s: f64,
    pub(crate) job: String,
    pub(crate) kind: String,
    pub(crate) text: String,
}

/// Reads the controller's log, one JSON object a line; a line torn by a kill tells nothing.
pub(crate) fn read_log(log: &str, timeline: &Timeline) -> Vec<Told> {
    log.lines().filter_map(|line| read_line(line, timeline)).collect()
}

fn read_line(line: &str, timeline: &Timeline) -> Option<Told> {
    let line: Value = serde_json::from_str(line).ok()?;
    let at = OffsetDateTime::parse(line["timestamp"].as_str()?, &Rfc3339).ok()?;
    let word = |key: &str| Some(line["fields"][key].as_str()?.to_owned());
    Some(Told { at_s: timeline.at_s(at), job: word("job")?, kind: word("kind")?, text: word("message")? })
}

/// Why a life ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cause {
    /// The end of its job was asked for before.
    JobStopped,
    /// The controller moved the task.
    Moved,
    /// Its job's start was not confirmed in time and taken back.
    StartTakenBack,
    /// Its Docker was killed while it started.
    StartInterrupted,
    /// None: a healthy container was ended.
    None,
}

/// What ends are judged by.
#[derive(Debug)]
pub(crate) struct Grounds<'a> {
    /// When the end of its job was asked for.
    pub(crate) stop_s: Option<f64>,
    pub(crate) told: &'a [Told],
    pub(crate) kills: &'a [Kill],
}

/// Why a life ended, by the first ground that holds.
pub(crate) fn cause(ended: &Ended, grounds: &Grounds<'_>) -> Cause {
    let life = &ended.life;
    if grounds.stop_s.is_some_and(|stop_s| stop_s <= ended.ended_s) {
        return Cause::JobStopped;
    }
    let recent = |told: &&Told| {
        told.job == life.job && told.at_s <= ended.ended_s && ended.ended_s - told.at_s <= TOLD_S
    };
    let told = || grounds.told.iter().filter(recent);
    let leaves = format!("{} moves from {} to", life.task, life.node);
    if told().any(|told| told.text.contains(&leaves)) {
        return Cause::Moved;
    }
    // A change that is taken back brings a task back to where it was.
    if told().any(|told| told.kind == "changed" && told.text.starts_with("the change is taken back"))
        && told().any(|told| told.text.contains(&format!("{} moves from ", life.task)))
    {
        return Cause::Moved;
    }
    if told().any(|told| told.kind == "waiting" && ended.begun_s <= told.at_s) {
        return Cause::StartTakenBack;
    }
    let docker = Victim::Docker(life.node.clone());
    let interrupted = |kill: &&Kill| {
        kill.victim == docker
            && ended.begun_s - STARTING_S <= kill.back_s.unwrap_or(f64::INFINITY)
            && kill.at_s - STARTING_S <= ended.begun_s
    };
    if grounds.kills.iter().any(|kill| interrupted(&kill)) { Cause::StartInterrupted } else { Cause::None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kills::lives::Life;

    fn ended(begun_s: f64, ended_s: f64) -> Ended {
        let [job, task, node, container] = ["j", "left", "n1", "c"].map(str::to_owned);
        Ended { life: Life { job, task, node, container, pid: 1 }, begun_s, last_s: ended_s, ended_s }
    }

    fn told(at_s: f64, kind: &str, text: &str) -> Told {
        Told { at_s, job: "j".to_owned(), kind: kind.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn an_end_has_to_have_a_ground_that_came_before_it() {
        let none = Grounds { stop_s: None, told: &[], kills: &[] };
        assert_eq!(cause(&ended(10.0, 50.0), &none), Cause::None);
        let stopped = |stop_s| Grounds { stop_s: Some(stop_s), ..none };
        assert_eq!(cause(&ended(10.0, 50.0), &stopped(49.0)), Cause::JobStopped);
        assert_eq!(cause(&ended(10.0, 50.0), &stopped(51.0)), Cause::None);
    }

    #[test]
    fn a_move_is_a_ground_for_the_task_and_the_node_that_it_names() {
        let of = |told: &[Told]| cause(&ended(10.0, 50.0), &Grounds { stop_s: None, told, kills: &[] });
        assert_eq!(of(&[told(45.0, "changed", "x: left moves from n1 to n2; …")]), Cause::Moved);
        assert_eq!(of(&[told(45.0, "changed", "x: right moves from n1 to n2; …")]), Cause::None);
        assert_eq!(of(&[told(45.0, "changed", "x: left moves from n3 to n2; …")]), Cause::None);
        assert_eq!(of(&[told(45.0, "waiting", "not confirmed by n3 within 10 s")]), Cause::StartTakenBack);
    }

    #[test]
    fn the_death_of_docker_excuses_only_what_was_being_started_there() {
        let of = |node: &str, begun_s| {
            let victim = Victim::Docker(node.to_owned());
            let kills = [Kill { victim, at_s: 40.0, started_s: 41.0, back_s: Some(43.0) }];
            cause(&ended(begun_s, 50.0), &Grounds { stop_s: None, told: &[], kills: &kills })
        };
        assert_eq!(of("n1", 39.0), Cause::StartInterrupted);
        assert_eq!(of("n1", 42.0), Cause::StartInterrupted);
        assert_eq!(of("n1", 20.0), Cause::None);
        assert_eq!(of("n2", 39.0), Cause::None);
    }

    #[test]
    fn the_log_gives_what_was_told_of_jobs_and_a_torn_line_nothing() {
        let line = r#"{"timestamp":"2026-11-21T20:00:00.5Z","level":"INFO","fields":{"message":"stops","job":"a","kind":"stopping"}}"#;
        let log = format!("{line}\n{{\"timestamp\":\"2026-\n");
        let told = read_log(&log, &Timeline::begin());
        assert_eq!(told.len(), 1);
        assert_eq!(
            (told[0].job.as_str(), told[0].kind.as_str(), told[0].text.as_str()),
            ("a", "stopping", "stops")
        );
    }
}
