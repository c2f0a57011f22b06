//! `run --wait`: follows a job until it runs or fails, with its progress on standard error.

use crate::client::Client;
use crate::error::Error;
use crate::{show, units};
use edgeloom_common::view::{JobState, JobView, TaskView};
use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

/// Pause between two looks.
const INTERVAL: Duration = Duration::from_millis(300);

/// Looks until the job runs; a failure is an error with the job's own reason.
pub(crate) fn until_running(client: &Client, mut view: JobView) -> Result<JobView, Error> {
    let mut progress = Progress::default();
    loop {
        for line in progress.changes(&view) {
            eprintln!("{line}");
        }
        match view.state {
            JobState::Running => return Ok(view),
            JobState::Failed | JobState::Stopping => {
                let reason =
                    if view.reason.is_empty() { show::state(view.state).to_owned() } else { view.reason };
                return Err(Error::NotStarted { job: view.name.to_string(), reason });
            }
            JobState::Planned | JobState::Waiting | JobState::Starting => {}
        }
        sleep(INTERVAL);
        view = client.fetch(&format!("/v1/jobs/{}", view.name))?;
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
        let job = match view.reason.as_str() {
            "" => show::state(view.state).to_owned(),
            reason => format!("{}: {reason}", show::state(view.state)),
        };
        let mut lines = vec![(format!("job {}", view.name), job)];
        lines.extend(view.tasks.iter().map(|task| (task.name.to_string(), task_line(task))));
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
}
