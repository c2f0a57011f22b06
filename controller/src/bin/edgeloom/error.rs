//! What can go wrong on the command line's side, with the remedy.

use crate::arguments::{EXIT_FAILURE, EXIT_PLACEMENT};
use edgeloom_common::view::{Problem, ProblemItem};
use edgeloom_sim::what_if::FileProblem;
use std::fmt::Write;
use std::io;
use std::path::PathBuf;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(
        "server {server:?} is no https:// or http:// address; set --server or EDGELOOM_SERVER, as in https://master:7070"
    )]
    Server { server: String },
    #[error("a token is not sent to {server} in the clear; use its https:// address")]
    PlainToken { server: String },
    #[error(
        "there is no authority to verify the controller by; set --ca or EDGELOOM_CA, or use `edgeloom login` with them once"
    )]
    NoAuthority,
    #[error("only `edgeloom usage` has an answer for spreadsheets; leave -o csv out, or write -o json")]
    NoCsv,
    #[error("there is no token to keep; set EDGELOOM_TOKEN")]
    NoToken,
    #[error("there is no place for the context: neither EDGELOOM_CONTEXT, XDG_CONFIG_HOME nor HOME is set")]
    NoHome,
    #[error("{path} is no context; write it anew with `edgeloom login`")]
    Context { path: PathBuf },
    #[error(
        "cannot reach the controller at {server}: {reason}; is edgeloom-controller running there? Another address is set by --server or EDGELOOM_SERVER; as a rule it begins with https:// and takes a token, which `edgeloom login` keeps"
    )]
    Unreachable { server: String, reason: String },
    #[error("the answer of {server} is none of an Edgeloom controller (status {status}): {reason}")]
    Answer { server: String, status: u16, reason: String },
    #[error("the answer of {server} ends in the middle: {reason}")]
    Cut { server: String, reason: String },
    #[error("the controller refused: {0:?}")]
    Problem(Problem),
    #[error("cannot read {path}: {source}")]
    Input { path: PathBuf, source: io::Error },
    #[error("cannot write {path}: {source}")]
    Create { path: PathBuf, source: io::Error },
    #[error("files do not read: {0:?}")]
    Files(Vec<FileProblem>),
    #[error("job {job} is over: {reason}")]
    NotSucceeded { job: String, reason: String },
    #[error("job {job} did not start: {reason}")]
    NotStarted { job: String, reason: String },
    #[error(transparent)]
    Simulation(#[from] edgeloom_sim::SimError),
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

impl Error {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Problem(problem) if problem.code == "job.unplaceable" => EXIT_PLACEMENT,
            _ => EXIT_FAILURE,
        }
    }

    /// The controller is away, or not ready yet: the same may go well before long.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Cut { .. } => true,
            // Of a proxy before it, RFC 9110, 15.6.
            Self::Answer { status, .. } => (502..=504).contains(status),
            Self::Problem(problem) => problem.status == 503,
            _ => false,
        }
    }

    /// The controller does not know what it is asked for.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Self::Problem(problem) if problem.status == 404)
    }

    /// What standard error gets.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Problem(problem) => problem_text(problem),
            Self::Files(problems) => problems.iter().map(file_text).collect(),
            other => format!("edgeloom: {other}\n"),
        }
    }
}

fn problem_text(problem: &Problem) -> String {
    let mut text = format!("edgeloom: {}: {}\n", problem.title, problem.detail);
    for item in &problem.problems {
        writeln!(text, "  {}", item_text(item)).expect("a String takes all that is written");
    }
    text
}

/// `jobs/x.yaml: line 12: …`
fn file_text(problem: &FileProblem) -> String {
    format!("{}: {}\n", problem.file, item_text(&problem.item))
}

/// `line 12: tasks.x.cpu: needs a unit (write 500m)`; parts that are not there are left out.
fn item_text(item: &ProblemItem) -> String {
    let mut text = String::new();
    if item.line > 0 {
        text.push_str(&format!("line {}: ", item.line));
    }
    if !item.field.is_empty() {
        text.push_str(&format!("{}: ", item.field));
    }
    text.push_str(&item.problem);
    if !item.remedy.is_empty() {
        text.push_str(&format!(" ({})", item.remedy));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(line: usize, field: &str, remedy: &str) -> ProblemItem {
        let text = str::to_owned;
        ProblemItem { line, field: text(field), problem: text("too large"), remedy: text(remedy) }
    }

    #[test]
    fn a_problem_names_line_field_and_remedy() {
        assert_eq!(
            item_text(&item(12, "tasks.x.cpu", "use 500m")),
            "line 12: tasks.x.cpu: too large (use 500m)"
        );
        assert_eq!(item_text(&item(0, "n1", "")), "n1: too large");
        assert_eq!(item_text(&item(0, "", "")), "too large");
    }

    #[test]
    fn a_placement_failure_has_its_own_exit_code() {
        let problem = |code: &str| {
            let (title, detail) = (String::new(), String::new());
            Error::Problem(Problem { code: code.to_owned(), title, status: 422, detail, problems: vec![] })
        };
        assert_eq!(problem("job.unplaceable").exit_code(), 2);
        assert_eq!(problem("job.invalid").exit_code(), 1);
    }
}
