//! `POST /v1/measure`: runs the profiler over a job document; `GET /v1/profiles`: what it has kept.
//!
//! The answer is one JSON line after the other ([`MeasureLine`]), the last one with every row. Nodes measure
//! side by side, each one program at a time. Whoever stops reading ends what is under way.

use super::error::ApiError;
use super::request::Parameters;
use super::{Api, body};
use crate::logs::{Answer, Piece};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use edgeloom_cluster::{Run, SurveyRequest, Trial, Verdict};
use edgeloom_common::ids::{NodeId, TaskName};
use edgeloom_common::job::{Job, line_of};
use edgeloom_common::measure::{
    COMMAND_MAX, MeasureLine, MeasureOutcome, MeasureReply, MeasureRow, Measured, ProfileList, ProfileView,
    TIMEOUT_DEFAULT_S, TIMEOUT_MAX_S,
};
use edgeloom_common::view::ProblemItem;
use futures_util::future::join_all;
use futures_util::stream;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// An agent says every second how far it is.
const PATIENCE: Duration = Duration::from_secs(30);
/// Lines that wait for the reader.
const LINES_MAX: usize = 64;
/// Of what an agent says about a failure.
const REASON_MAX: usize = 1000;
const LOG_LINES_MAX: usize = 10;
const LOG_LINE_MAX: usize = 400;

/// Parameters of a measurement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    /// Measure what is kept, too.
    #[serde(default)]
    again: bool,
    /// Seconds that each run may take.
    #[serde(default = "default_timeout_s")]
    timeout_s: u32,
}

fn default_timeout_s() -> u32 {
    TIMEOUT_DEFAULT_S
}

pub(super) async fn profiles(State(api): State<Api>) -> Json<ProfileList> {
    Json(ProfileList { profiles: api.cluster.profiles().await })
}

pub(super) async fn measure(
    State(api): State<Api>,
    Parameters(request): Parameters<Request>,
    body: Body,
) -> Result<Response, ApiError> {
    if !(1..=TIMEOUT_MAX_S).contains(&request.timeout_s) {
        let reason = format!("timeout_s is {}, 1 to {TIMEOUT_MAX_S} are allowed", request.timeout_s);
        return Err(ApiError::Query { reason });
    }
    let document = body::text(body).await?;
    let job = edgeloom_common::job::parse(&document).map_err(ApiError::JobInvalid)?;
    check(&job, &document)?;
    let request = SurveyRequest { again: request.again, timeout_s: request.timeout_s };
    let refused = |error| ApiError::Submit { error, document };
    let trials = api.cluster.survey(job, request).await.map_err(refused)?;
    let (sender, lines) = mpsc::channel(LINES_MAX);
    tokio::spawn(async move {
        let reader = Reader(sender);
        let gone = reader.0.clone();
        tokio::select! {
            () = all(&api, trials, &reader) => {}
            () = gone.closed() => {}
        }
    });
    let text = stream::unfold(lines, |mut lines| async { Some((lines.recv().await?, lines)) });
    let headers = [(CONTENT_TYPE, "application/x-ndjson")];
    Ok((headers, Body::from_stream(text)).into_response())
}

/// A document without anything to measure is a mistake.
fn check(job: &Job, document: &[u8]) -> Result<(), ApiError> {
    if job.tasks.values().any(|task| task.measure.is_some()) {
        return Ok(());
    }
    Err(ApiError::JobInvalid(vec![ProblemItem {
        line: line_of(document, "tasks"),
        field: "tasks".to_owned(),
        problem: "no task has a `measure` block".to_owned(),
        remedy: "write one, for instance `measure: { command: [\"measure\"], items: 20 }`".to_owned(),
    }]))
}

/// The way to whoever reads the answer; it may be gone, which ends everything.
struct Reader(mpsc::Sender<Result<Bytes, Infallible>>);

impl Reader {
    async fn say(&self, line: &MeasureLine) {
        let mut text = serde_json::to_vec(line).expect("a line of texts and finite numbers is JSON");
        text.push(b'\n');
        let _ = self.0.send(Ok(text.into())).await;
    }
}

/// One trial, with its place in the table.
struct Turn {
    place: usize,
    task: TaskName,
    class: String,
    run: Run,
}

impl Turn {
    fn row(&self, outcome: MeasureOutcome, profile: Option<ProfileView>) -> MeasureRow {
        let (task, class, node) = (self.task.clone(), self.class.clone(), Some(self.run.node.clone()));
        MeasureRow { task, class, node, outcome, profile, reason: String::new(), log: Vec::new() }
    }
}

async fn all(api: &Api, trials: Vec<Trial>, reader: &Reader) {
    let mut rows: BTreeMap<usize, MeasureRow> = BTreeMap::new();
    let mut queues: BTreeMap<NodeId, Vec<Turn>> = BTreeMap::new();
    for (place, Trial { task, class, verdict }) in trials.into_iter().enumerate() {
        let (node, outcome, profile, reason) = match verdict {
            Verdict::Run(run) => {
                queues.entry(run.node.clone()).or_default().push(Turn { place, task, class, run: *run });
                continue;
            }
            Verdict::Kept(kept) => {
                (Some(kept.node.clone()), MeasureOutcome::Kept, Some(*kept), String::new())
            }
            Verdict::Refused(reason) => (None, MeasureOutcome::Failed, None, reason),
        };
        let row = MeasureRow { task, class, node, outcome, profile, reason, log: Vec::new() };
        reader.say(&MeasureLine::Row(Box::new(row.clone()))).await;
        rows.insert(place, row);
    }
    let measured = join_all(queues.into_values().map(|turns| queue(api, turns, reader))).await;
    rows.extend(measured.into_iter().flatten());
    reader.say(&MeasureLine::Done { rows: rows.into_values().collect() }).await;
}

/// One node's measurements, one after the other; a program that several tasks run is measured once.
async fn queue(api: &Api, turns: Vec<Turn>, reader: &Reader) -> Vec<(usize, MeasureRow)> {
    let mut rows: Vec<(usize, MeasureRow)> = Vec::new();
    for (index, turn) in turns.iter().enumerate() {
        let same = turns[..index].iter().zip(&rows).find(|(earlier, _)| earlier.run.is_same(&turn.run));
        let row = match same {
            Some((_, (_, row))) => MeasureRow { task: turn.task.clone(), ..row.clone() },
            None => measured(api, turn, reader).await,
        };
        reader.say(&MeasureLine::Row(Box::new(row.clone()))).await;
        rows.push((turn.place, row));
    }
    rows
}

/// Why a run brought no result.
struct Failure {
    reason: String,
    log: Vec<String>,
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self { reason, log: Vec::new() }
    }
}

async fn measured(api: &Api, turn: &Turn, reader: &Reader) -> MeasureRow {
    let node = &turn.run.node;
    let outcome = match result(api, turn, reader).await {
        Ok(measured) => api.cluster.keep_profile(turn.run.clone(), measured).await.ok_or_else(|| {
            Failure::from(format!("the figures of node {node} are not kept; the controller's log says why"))
        }),
        Err(failure) => Err(failure),
    };
    match outcome {
        Ok(profile) => turn.row(MeasureOutcome::New, Some(profile)),
        Err(Failure { reason, log }) => {
            tracing::info!(task = %turn.task, %node, reason, "a measurement failed");
            MeasureRow { reason: cut(&reason, REASON_MAX), log, ..turn.row(MeasureOutcome::Failed, None) }
        }
    }
}

/// Asks the agent and waits for its last word.
async fn result(api: &Api, turn: &Turn, reader: &Reader) -> Result<Measured, Failure> {
    let Run { node, command, .. } = &turn.run;
    let bytes = serde_json::to_vec(command).map_or(usize::MAX, |text| text.len());
    if bytes > COMMAND_MAX {
        return Err(format!(
            "command and environment have {bytes} bytes, at most {COMMAND_MAX} are sent to an agent"
        )
        .into());
    }
    let mut answer: Answer =
        api.logs.open(node.clone(), command.clone()).map_err(|error| error.to_string())?;
    loop {
        let piece = timeout(PATIENCE, answer.next()).await;
        let piece = piece.map_err(|_| {
            format!(
                "node {node} does not answer: its agent is gone, was started anew, or is too old to measure"
            )
        })?;
        let text = match piece {
            Some(Piece::Text(text)) => text,
            Some(Piece::Gap) => continue,
            Some(Piece::Failed(error)) => return Err(error.into()),
            None => return Err(format!("node {node} ended its answer without a result").into()),
        };
        let word: MeasureReply = serde_json::from_str(&text)
            .map_err(|error| format!("node {node} answers in unknown words: {error}"))?;
        let text = match word {
            MeasureReply::Measured(measured) => return Ok(measured),
            MeasureReply::Failed { reason, log, .. } => {
                let log =
                    log.iter().rev().take(LOG_LINES_MAX).rev().map(|line| cut(line, LOG_LINE_MAX)).collect();
                return Err(Failure { reason, log });
            }
            MeasureReply::Queued => "waits for another measurement on this node".to_owned(),
            MeasureReply::Pulling { bytes_fetched, bytes_total: Some(total) } => {
                format!("pulls the image, {bytes_fetched} of {total} so far")
            }
            MeasureReply::Pulling { .. } => "pulls the image".to_owned(),
            MeasureReply::Running { seconds } => format!("runs for {seconds} s"),
            MeasureReply::Unknown => continue,
        };
        let (task, class, node) = (turn.task.clone(), turn.class.clone(), node.clone());
        reader.say(&MeasureLine::Progress { task, class, node, text }).await;
    }
}

fn cut(text: &str, max: usize) -> String {
    text.chars().take(max).collect()
}
