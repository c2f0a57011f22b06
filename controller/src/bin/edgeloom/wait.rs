//! `run --wait`: follows a job until it runs or fails, a batch until it is over, with the progress on standard
//! error. A controller that is restarted meanwhile is waited for.

use crate::client::Client;
use crate::error::Error;
use crate::patience::Patience;
use crate::{show, units};
use edgeloom_common::view::{JobState, JobView, TaskView};
use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

/// Pause between two looks.
const INTERVAL: Duration = Duration::from_millis(300);

/// Looks until the job runs, or the batch is over; a failure is an error with the job's own reason.
pub(crate) fn until_done(client: &Client, mut view: JobView) -> Result<JobView, Error> {
    let (mut progress, mut patience) = (Progress::default(), Patience::default());
    loop {
        for line in progress.changes(&view) {
            eprintln!("{line}");
        }
        match view.state {
            JobState::Succeeded => return Ok(view),
            JobState::Running if view.batch.is_none() => return Ok(view),
            JobState::Failed | JobState::Stopping => {
                let reason = if view.reason.is_empty() { view.state.word().to_owned() } else { view.reason };
                let job = view.name.to_string();
                return Err(match view.batch {
                    Some(_) => Error::NotSucceeded { job, reason },
                    None => Error::NotStarted { job, reason },
                });
            }
            JobState::Planned | JobState::Waiting | JobState::Starting | JobState::Running => {}
        }
        sleep(INTERVAL);
        let path = format!("/v1/jobs/{}", view.name);
        view = patience.until_answered(|| client.fetch(&path))?;
    }
}

/// What was said last, by what it is about.
#[derive(Default)]
struct Progress {
    said: BTreeMap<String, String>,
}

impl Progress {
    /// The lines that differ from what was said before.
    fn changes(&mut self, view: &JobView) -> Vec<String> {
        let mut job = match view.reason.as_str() {
            "" => view.state.word().to_owned(),
            reason => format!("{}: {reason}", view.state.word()),
        };
        job.extend(view.batch.iter().map(|batch| format!("; {}", show::batch(batch))));
        let mut lines = vec![(format!("job {}", view.name), job)];
        // Of a batch the counts say enough.
        let each = view.tasks.iter().filter(|_| view.batch.is_none());
        lines.extend(each.map(|task| (task.name.to_string(), task_line(task))));
        let fresh = |(about, line): (String, String)| {
            let changed = self.said.get(&about) != Some(&line);
            changed.then(|| {
                let text = format!("{about}: {line}").replace(char::is_control, " ");
                self.said.insert(about, line);
                text
            })
        };
        lines.into_iter().filter_map(fresh).collect()
    }
}

fn task_line(task: &TaskView) -> String {
    let mut line = format!("{} on {}", task.phase, task.node);
    if task.phase == "pulling" {
        let (fetched, predicted) = (units::bytes(task.bytes_fetched), units::bytes(task.bytes_predicted));
        line.push_str(&format!(", {fetched} fetched of {predicted} predicted"));
    }
    if !task.detail.is_empty() {
        line.push_str(&format!(", {}", task.detail));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::view::BatchView;

    fn view(phase: &str) -> JobView {
        let task = TaskView {
            name: "detect".parse().unwrap(),
            node: "n1".parse().unwrap(),
            image: String::new(),
            address: None,
            container: String::new(),
            phase: phase.to_owned(),
            detail: String::new(),
            restarts: 0,
            cpu_millicores: 0,
            memory_bytes: 0,
            bytes_predicted: 2_000_000,
            bytes_fetched: 1_000_000,
            pull_s: None,
            pull_s_predicted: None,
            started_ms: None,
            finished_ms: None,
            outcome: None,
        };
        let (name, state) = ("j".parse().unwrap(), JobState::Starting);
        let (profile, reason) = ("edgeloom".to_owned(), String::new());
        JobView {
            name,
            state,
            profile,
            reason,
            prediction: None,
            measured: None,
            replans: 0,
            notes: vec![],
            tasks: vec![task],
            flows: vec![],
            strategy: None,
            batch: None,
            explanation: None,
        }
    }

    #[test]
    fn progress_says_only_what_is_new() {
        let mut progress = Progress::default();
        let first = progress.changes(&view("pulling"));
        assert_eq!(first, ["job j: starting", "detect: pulling on n1, 1 MB fetched of 2 MB predicted"]);
        assert_eq!(progress.changes(&view("pulling")), Vec::<String>::new());
        assert_eq!(progress.changes(&view("running")), ["detect: running on n1"]);
    }

    #[test]
    fn of_a_batch_the_counts_are_told() {
        let batch =
            BatchView { tasks: 9, succeeded: 3, failed: 1, skipped: 0, running: 2, waiting: 3, placed: 2 };
        let view = JobView { batch: Some(batch), ..view("running") };
        let said = Progress::default().changes(&view);
        assert_eq!(said, ["job j: starting; 3 of 9 succeeded, 1 failed, 2 running, 3 waiting"]);
    }
}
