//! The `disconnect` block: its words, its defaults, and all of its problems at once.

use super::{accepted, wants};
use crate::job::{Disconnect, LOST_AFTER_S, Reconcile};

fn with(block: &str) -> String {
    format!("kind: Job\nname: j\ndisconnect:\n{block}tasks: {{ a: {{ image: i }} }}\n")
}

#[test]
fn a_job_that_says_nothing_has_its_tasks_replaced_after_a_minute_and_left_there() {
    let job = accepted("kind: Job\nname: j\ntasks: { a: { image: i } }\n");
    assert_eq!(job.disconnect, Disconnect::default());
    assert_eq!((job.disconnect.lost_after_s, job.disconnect.replace), (LOST_AFTER_S, true));
    assert_eq!(job.disconnect.reconcile, Reconcile::KeepReplacement);
    assert_eq!(job.disconnect.stop_on_client_after_s, None);
    let text = serde_json::to_string(&job).unwrap();
    assert!(!text.contains("disconnect"), "what is left out is not written: {text}");
    assert_eq!(serde_json::from_str::<crate::job::Job>(&text).unwrap(), job);
}

#[test]
fn every_field_of_the_block_is_read_and_kept() {
    let block =
        "  lost_after: 30s\n  replace: false\n  stop_on_client_after: 5m\n  reconcile: keep_original\n";
    let job = accepted(&with(block));
    let wanted = Disconnect {
        lost_after_s: 30,
        replace: false,
        stop_on_client_after_s: Some(300),
        reconcile: Reconcile::KeepOriginal,
    };
    assert_eq!(job.disconnect, wanted);
    let text = serde_json::to_string(&job).unwrap();
    assert_eq!(serde_json::from_str::<crate::job::Job>(&text).unwrap(), job);
}

#[test]
fn every_problem_of_the_block_is_told_at_once_with_its_line_and_remedy() {
    let block = "  lost_after: 4s\n  replace: maybe\n  stop_on_client_after: 90\n  reconcile: best_score\n  stop: 1\n";
    wants(
        &with(block),
        &[
            (4, "disconnect.lost_after", "4 s is outside of 5 s to 7 days"),
            (5, "disconnect.replace", "write `replace: true` or `replace: false`"),
            (6, "disconnect.stop_on_client_after", "\"90\" is no time"),
            (7, "disconnect.reconcile", "write `keep_original` or `keep_replacement`"),
            (8, "disconnect.stop", "is no known field"),
        ],
    );
    wants(&with("  lost_after: 8d\n"), &[(4, "disconnect.lost_after", "outside of 5 s to 7 days")]);
}
