//! `GET /v1/jobs/{name}/logs`: the log of one task, or of all with the task's name before each line.

use super::Api;
use super::error::ApiError;
use super::request::{Job, Parameters};
use crate::logs::{Answer, Piece, Prefixed};
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use edgeloom_common::ids::{JobName, NodeId, TaskName};
use edgeloom_common::report::LogsCommand;
use futures_util::stream::{self, BoxStream, StreamExt};
use serde::Deserialize;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::timeout;

/// How long an agent may be silent before a log that is not followed counts as unanswered.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Parameters of a log request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Selection {
    /// None: every task of the job.
    task: Option<String>,
    /// Go on with what is logged from now.
    #[serde(default)]
    follow: bool,
    /// Lines from the end to begin with; none: all.
    tail: Option<u32>,
    /// Without what was logged before, in seconds since 1970 by the nodes' clocks.
    since: Option<u64>,
    /// Each line of a task begins with its time.
    #[serde(default)]
    timestamps: bool,
}

pub(super) async fn stream(
    State(api): State<Api>,
    Job(name): Job,
    Parameters(selection): Parameters<Selection>,
) -> Result<Response, ApiError> {
    let prefixed = selection.task.is_none();
    let tasks = tasks(&api, &name, selection.task.as_deref()).await?;
    if let [(_, node), ..] = tasks.offline.as_slice()
        && tasks.online.is_empty()
    {
        return Err(ApiError::NodeOffline { node: node.to_string() });
    }
    let missing = tasks
        .offline
        .iter()
        .map(|(task, node)| format!("edgeloom: no log of {task}: node {node} is offline\n"));
    let mut streams = vec![stream::iter(missing.collect::<Vec<_>>()).boxed()];
    for (task, node) in tasks.online {
        let command = LogsCommand {
            job: name.clone(),
            task: task.clone(),
            follow: selection.follow,
            tail: selection.tail,
            since_s: selection.since,
            timestamps: selection.timestamps,
            cancel: false,
        };
        let reader = Reader {
            log: api.logs.open(node.clone(), command)?,
            lines: prefixed.then(|| Prefixed::new(task.as_str())),
            task,
            node,
            patience: (!selection.follow).then_some(ANSWER_TIMEOUT),
            ended: false,
        };
        streams.push(reader.stream());
    }
    let merged = stream::select_all(streams).map(|text| Ok::<_, Infallible>(Bytes::from(text)));
    let headers = [(CONTENT_TYPE, "text/plain; charset=utf-8")];
    Ok((headers, Body::from_stream(merged)).into_response())
}

/// Tasks with the nodes they are on.
struct Tasks {
    online: Vec<(TaskName, NodeId)>,
    offline: Vec<(TaskName, NodeId)>,
}

/// The tasks asked for: one, or all of the job.
async fn tasks(api: &Api, name: &JobName, task: Option<&str>) -> Result<Tasks, ApiError> {
    let unknown_job = || ApiError::UnknownJob { name: name.to_string() };
    let view = api.cluster.job(name).await.ok_or_else(unknown_job)?;
    let mut found: Vec<_> = view.tasks.into_iter().map(|task| (task.name, task.node)).collect();
    if let Some(wanted) = task {
        found.retain(|(name, _)| name.as_str() == wanted);
        if found.is_empty() {
            return Err(ApiError::UnknownTask { job: name.to_string(), task: wanted.to_owned() });
        }
    }
    let nodes = api.cluster.nodes().await;
    let is_online = |node: &NodeId| nodes.iter().any(|view| view.online && view.name == *node);
    let (online, offline) = found.into_iter().partition(|(_, node)| is_online(node));
    Ok(Tasks { online, offline })
}

/// One task's log on its way into the answer.
struct Reader {
    log: Answer,
    lines: Option<Prefixed>,
    task: TaskName,
    node: NodeId,
    /// None: a followed log may be silent for as long as it likes.
    patience: Option<Duration>,
    ended: bool,
}

impl Reader {
    fn stream(self) -> BoxStream<'static, String> {
        stream::unfold(self, |mut reader| async {
            let text = reader.next().await?;
            Some((text, reader))
        })
        .boxed()
    }

    /// The next text for the reader; what went wrong is said in the stream, since its status is sent.
    async fn next(&mut self) -> Option<String> {
        if self.ended {
            return None;
        }
        let piece = match self.patience {
            None => self.log.next().await,
            Some(patience) => match timeout(patience, self.log.next()).await {
                Ok(piece) => piece,
                Err(_) => Some(Piece::Failed(format!("node {} does not answer", self.node))),
            },
        };
        match (piece, self.lines.as_mut()) {
            (Some(Piece::Text(text)), None) => Some(text),
            (Some(Piece::Text(text)), Some(lines)) => Some(lines.push(&text)),
            (Some(Piece::Gap), _) => {
                Some(format!("edgeloom: part of the log of {} is missing here\n", self.task))
            }
            (Some(Piece::Failed(error)), _) => {
                self.ended = true;
                Some(format!("edgeloom: the log of {} ends here: {error}\n", self.task))
            }
            (None, lines) => {
                self.ended = true;
                lines.map(Prefixed::rest)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::Logs;
    use edgeloom_common::report::Reply;
    use tokio::sync::mpsc;

    fn reader(logs: &Logs, task: &str, patience: Option<Duration>) -> Reader {
        let node: NodeId = "n1".parse().unwrap();
        let task: TaskName = task.parse().unwrap();
        let job = "three".parse().unwrap();
        let command = LogsCommand {
            job,
            task: task.clone(),
            follow: false,
            tail: None,
            since_s: None,
            timestamps: false,
            cancel: false,
        };
        let log = logs.open(node.clone(), command).unwrap();
        let lines = Some(Prefixed::new(task.as_str()));
        Reader { log, lines, task, node, patience, ended: false }
    }

    /// Answers as an agent does: three pieces, the first without a line's end.
    async fn agent(logs: Logs, mut commands: mpsc::Receiver<edgeloom_cluster::Publish>) {
        while let Some(publish) = commands.recv().await {
            let id = publish.topic.rsplit('/').next().unwrap().parse().unwrap();
            let command: LogsCommand = serde_json::from_slice(&publish.payload).unwrap();
            for (sequence, text) in [(0, "hel"), (1, "lo\nfrom "), (2, command.task.as_str())] {
                let (text, last) = (text.to_owned(), sequence == 2);
                logs.reply(&"n1".parse().unwrap(), Reply { id, sequence, text, last, error: String::new() });
            }
        }
    }

    #[tokio::test]
    async fn the_lines_of_all_tasks_share_one_stream() {
        let (publish, commands) = mpsc::channel(8);
        let logs = Logs::new(publish);
        let streams = [reader(&logs, "detect", None).stream(), reader(&logs, "track", None).stream()];
        tokio::spawn(agent(logs, commands));
        let text: String = stream::select_all(streams).collect::<Vec<_>>().await.concat();
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["detect | from detect", "detect | hello", "track | from track", "track | hello"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_that_does_not_answer_is_named() {
        let (publish, _commands) = mpsc::channel(8);
        let logs = Logs::new(publish);
        let stream = reader(&logs, "detect", Some(ANSWER_TIMEOUT)).stream();
        let text: String = stream.collect::<Vec<_>>().await.concat();
        assert_eq!(text, "edgeloom: the log of detect ends here: node n1 does not answer\n");
    }
}
