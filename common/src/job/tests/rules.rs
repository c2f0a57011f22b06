//! Labels, tolerations, preferences, affinity and spread.

use super::{accepted, task, wants, with_task_lines};
use crate::job::{Attribute, Constraint, Effect, Placement, Preference, Selector, Spread, Term, Toleration};
use std::collections::BTreeMap;

fn zone() -> Attribute {
    Attribute::Label("zone".to_owned())
}

fn cache() -> BTreeMap<String, String> {
    BTreeMap::from([("app".to_owned(), "cache".to_owned())])
}

fn term(with: Selector, by: Attribute) -> Term {
    Term { with, by }
}

#[test]
fn every_word_is_read_and_kept() {
    let text = with_task_lines(
        "    labels: { app: web }
    tolerations: [gpu, \"slow=very:prefer_no_schedule\", all]
    preferences: [{ constraint: \"node.labels.ssd == true\", weight: 10 }]
    affinity:
      - { with: [b] }
      - { labels: { app: cache }, by: node.labels.zone, weight: 50 }
    anti_affinity: { labels: { app: cache } }
    spread: { by: node.labels.zone, max_skew: 2, required: true }
  b: { image: i }",
    );
    let job = accepted(&text);
    let read = &job.tasks[&task("a")].placement;
    let gpu = Toleration { key: Some("gpu".into()), ..Toleration::default() };
    let slow = Toleration {
        key: Some("slow".into()),
        value: Some("very".into()),
        effect: Some(Effect::PreferNoSchedule),
    };
    assert_eq!(read.tolerations, [gpu, slow, Toleration::default()]);
    let attribute = Attribute::Label("ssd".into());
    let constraint = Constraint { attribute, equal: true, value: "true".into() };
    assert_eq!(read.preferences, [Preference { constraint, weight: 10 }]);
    assert_eq!(read.affinity.required, [term(Selector::Task(task("b")), Attribute::Name)]);
    assert_eq!(read.affinity.preferred, [(term(Selector::Labels(cache()), zone()), 50)]);
    assert_eq!(read.anti_affinity.required, [term(Selector::Labels(cache()), Attribute::Name)]);
    let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
    assert_eq!(read.spread, [Spread { labels, by: zone(), max_skew: 2, required: true }]);
    assert!(job.tasks[&task("b")].placement.is_anywhere());
    let text = serde_json::to_string(&job).unwrap();
    assert_eq!(serde_json::from_str::<crate::job::Job>(&text).unwrap(), job);
}

#[test]
fn a_task_without_rules_is_kept_as_before() {
    let job = accepted("kind: Job\nname: j\ntasks: { a: { image: i } }\n");
    assert_eq!(job.tasks[&task("a")].placement, Placement::default());
    assert!(!serde_json::to_string(&job).unwrap().contains("placement"));
}

#[test]
fn what_does_not_read_is_told_with_its_line() {
    let cases = [
        ("labels: { app: \"a b\" }", "labels.app", "is no text of a label"),
        ("tolerations: [\"gpu:never\"]", "tolerations[0]", "no effect of a taint"),
        ("tolerations: [\"=yes\"]", "tolerations[0]", "is no taint"),
        ("preferences: { constraint: \"node.name == n1\", weight: 0 }", "preferences.weight", "1 to 100"),
        ("preferences: { weight: 5 }", "preferences.constraint", "is missing"),
        ("affinity: { by: node.name }", "affinity", "says nothing of which tasks"),
        ("affinity: { with: [c] }", "affinity.with[0]", "there is no task c"),
        ("affinity: { with: [a] }", "affinity.with[0]", "names itself"),
        ("affinity: { with: [source] }", "affinity.with[0]", "on its node already"),
        ("anti_affinity: { with: [b], by: zone }", "anti_affinity.by", "is no attribute of a node"),
        ("anti_affinity: { with: [b], weight: 101 }", "anti_affinity.weight", "1 to 100"),
        ("spread: { by: node.labels.zone }", "spread", "which tasks to spread"),
        ("spread: { labels: { a: b }, max_skew: 0 }", "spread.max_skew", "1 to 1000"),
        ("spread: { labels: { a: b }, required: maybe }", "spread.required", "write `required: true`"),
    ];
    for (line, field, part) in cases {
        let text = with_task_lines(&format!("    {line}\n  b: {{ image: i }}"));
        wants(&text, &[(6, &format!("tasks.a.{field}"), part)]);
    }
}

#[test]
fn lists_are_bounded() {
    let many = vec!["gpu"; 33].join(", ");
    wants(
        &with_task_lines(&format!("    tolerations: [{many}]")),
        &[(6, "tasks.a.tolerations", "at most 32")],
    );
    let labels: Vec<String> = (0..33).map(|number| format!("l{number}: x")).collect();
    let text = with_task_lines(&format!("    labels: {{ {} }}", labels.join(", ")));
    wants(&text, &[(6, "tasks.a.labels", "at most 32")]);
}
