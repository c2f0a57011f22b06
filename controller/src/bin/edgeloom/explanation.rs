//! An explanation for people: the limit and its price first, then each task, then the nodes it is not on.

use crate::table::Table;
use edgeloom_common::view::{Explanation, LimitKind, LimitView, OtherNode, TaskExplanation, Verdict};

/// Rows of other nodes for one task; the JSON has all of them.
const ROWS_MAX: usize = 6;

/// Names in one row.
const NAMES_MAX: usize = 4;

/// The answer of `explain`.
pub(crate) fn text(explanation: &Explanation) -> String {
    let mut text = format!("job {}, profile {}", explanation.name, explanation.profile);
    if let Some(items) = explanation.items_per_s_predicted {
        text.push_str(&format!(": {items:.2} items/s predicted"));
    }
    text.push('\n');
    text.push_str(&body(explanation));
    text
}

/// Everything but the heading, for `plan`, which has one already.
pub(crate) fn body(explanation: &Explanation) -> String {
    let mut text = explanation.limit.as_ref().map(limit).unwrap_or_default();
    if !explanation.tasks.is_empty() {
        text.push('\n');
        text.push_str(&tasks(&explanation.tasks));
        text.push('\n');
        text.push_str(&others(&explanation.tasks));
        text.push_str("\nas it was decided:\n");
    }
    for line in &explanation.lines {
        text.push_str(&line.replace(char::is_control, " "));
        text.push('\n');
    }
    text
}

fn limit(limit: &LimitView) -> String {
    let kind = match limit.kind {
        LimitKind::Node => "processor of ",
        LimitKind::Link => "link ",
        LimitKind::Task => "CPU limit of ",
        LimitKind::Source => "",
    };
    let (name, now, more) = (&limit.name, limit.items_per_s_now, limit.items_per_s_with_more);
    format!("limit: {kind}{name}; 10% more: {now:.2} -> {more:.2} items/s ({})\n", limit.gain_per_unit)
        .replace(|c: char| c.is_control() && c != '\n', " ")
}

fn tasks(tasks: &[TaskExplanation]) -> String {
    let mut table = Table::new(["TASK", "NODE", "WHY"]);
    for task in tasks {
        table.row([task.task.to_string(), task.node.to_string(), task.why.clone()]);
    }
    table.text()
}

fn others(tasks: &[TaskExplanation]) -> String {
    let mut table = Table::new(["TASK", "NOT ON", "WHY NOT"]);
    for task in tasks.iter().filter(|task| !task.task.is_source()) {
        let groups = groups(&task.others);
        for (nodes, why) in groups.iter().take(ROWS_MAX) {
            table.row([task.task.to_string(), names(nodes), why.clone()]);
        }
        let left: usize = groups.iter().skip(ROWS_MAX).map(|(nodes, _)| nodes.len()).sum();
        if left > 0 {
            table.row([task.task.to_string(), format!("{left} more"), "see -o json".to_owned()]);
        }
    }
    table.text()
}

/// Nodes against which the same speaks, in the order of their first.
fn groups(others: &[OtherNode]) -> Vec<(Vec<String>, String)> {
    let mut groups: Vec<(Vec<String>, String)> = Vec::new();
    for other in others {
        let why = match &other.verdict {
            Verdict::Refused(reason) => format!("refused: {reason}"),
            Verdict::ItemsPerS(_) => other.text.clone(),
        };
        match groups.iter_mut().find(|(_, known)| *known == why) {
            Some((nodes, _)) => nodes.push(other.node.to_string()),
            None => groups.push((vec![other.node.to_string()], why)),
        }
    }
    groups
}

fn names(nodes: &[String]) -> String {
    let listed = nodes.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
    match nodes.len().saturating_sub(NAMES_MAX) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(node: &str, verdict: Verdict) -> OtherNode {
        let text = match &verdict {
            Verdict::Refused(reason) => reason.clone(),
            Verdict::ItemsPerS(items) => {
                format!(
                    "{items:.2} items/s instead of 11.90 (flow detect->track over n1->n3 would be the limit)"
                )
            }
        };
        OtherNode { node: node.parse().unwrap(), verdict, text }
    }

    fn explanation() -> Explanation {
        let full = || Verdict::Refused("memory 64 MB requested, 12 MB unused".to_owned());
        let mut others = vec![other("n3", Verdict::ItemsPerS(8.1))];
        others.extend(["n4", "n5", "n6", "n7", "n8"].map(|node| other(node, full())));
        Explanation {
            name: "cameras".parse().unwrap(),
            profile: "edgeloom".to_owned(),
            lines: vec!["track -> n1\u{1b}: 2.000 ms".to_owned()],
            items_per_s_predicted: Some(11.9),
            tasks: vec![TaskExplanation {
                task: "track".parse().unwrap(),
                node: "n1".parse().unwrap(),
                why: "11.90 items/s here; the next best, n3, would give 8.10".to_owned(),
                others,
            }],
            limit: Some(LimitView {
                kind: LimitKind::Link,
                name: "n1->n2".to_owned(),
                items_per_s_now: 11.9,
                items_per_s_with_more: 13.09,
                gain_per_unit: "0.60 items/s for each Mbit/s".to_owned(),
            }),
        }
    }

    #[test]
    fn the_limit_comes_first_and_equal_reasons_share_a_row() {
        assert_eq!(
            text(&explanation()),
            "job cameras, profile edgeloom: 11.90 items/s predicted\n\
             limit: link n1->n2; 10% more: 11.90 -> 13.09 items/s (0.60 items/s for each Mbit/s)\n\
             \n\
             TASK   NODE  WHY\n\
             track  n1    11.90 items/s here; the next best, n3, would give 8.10\n\
             \n\
             TASK   NOT ON                     WHY NOT\n\
             track  n3                         8.10 items/s instead of 11.90 (flow detect->track over n1->n3 would be the limit)\n\
             track  n4, n5, n6, n7 and 1 more  refused: memory 64 MB requested, 12 MB unused\n\
             \n\
             as it was decided:\n\
             track -> n1 : 2.000 ms\n"
        );
    }

    #[test]
    fn a_waiting_job_shows_its_reason_alone() {
        let waits = Explanation {
            tasks: Vec::new(),
            limit: None,
            items_per_s_predicted: None,
            lines: vec!["task track finds no node (n1: node is not ready)".to_owned()],
            ..explanation()
        };
        let expected = "job cameras, profile edgeloom\ntask track finds no node (n1: node is not ready)\n";
        assert_eq!(text(&waits), expected);
    }

    #[test]
    fn a_verdict_is_one_field_beside_its_words() {
        let json = serde_json::to_value(other("n3", Verdict::ItemsPerS(8.1))).unwrap();
        assert_eq!((&json["node"], &json["items_per_s"]), (&"n3".into(), &8.1.into()));
        let json = serde_json::to_value(other("n4", Verdict::Refused("offline".to_owned()))).unwrap();
        assert_eq!(json, serde_json::json!({ "node": "n4", "refused": "offline", "text": "offline" }));
        assert_eq!(serde_json::from_value::<OtherNode>(json).unwrap().node.as_str(), "n4");
    }
}
