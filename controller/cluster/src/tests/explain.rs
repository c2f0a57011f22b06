//! Explanations through the owner: the same before and after the commit, and reasons for jobs without a place.

use super::world::{World, order};
use edgeloom_common::view::{Explanation, LimitKind, Verdict};

fn explained(world: &World, job: &str) -> Explanation {
    world.owner.question(&job.parse().unwrap()).unwrap().answer()
}

#[test]
fn a_plan_is_explained_like_the_job_that_comes_of_it() {
    let mut world = World::new();
    let planned = world.owner.plan(order("a")).unwrap();
    let planned_why = planned.question.unwrap().answer();
    world.owner.submit(order("a")).unwrap();
    world.settle();
    assert_eq!(explained(&world, "a"), planned_why);
    let nodes: Vec<_> =
        planned_why.tasks.iter().map(|task| (task.task.as_str(), task.node.as_str())).collect();
    assert_eq!(nodes, [("source", "n1"), ("detect", "n2"), ("track", "n3")]);
    let refused = Verdict::Refused("constraint node.name == n2 does not hold".to_owned());
    assert!(planned_why.tasks[1].others.iter().all(|other| other.verdict == refused));
    let predicted = planned.view.prediction.unwrap();
    assert_eq!(planned_why.items_per_s_predicted, Some(predicted.items_per_s_predicted));
    // 100m of speed 1 for 10 ms of work, in both tasks at once.
    let limit = planned_why.limit.unwrap();
    assert_eq!((limit.kind, limit.items_per_s_now), (LimitKind::Task, 10.0));
    assert!(limit.name.contains("detect on n2") && limit.name.contains("track on n3"), "{limit:?}");
    assert!((limit.items_per_s_with_more - 11.0).abs() < 1e-9, "{limit:?}");
}

#[test]
fn a_job_without_a_place_is_explained_by_its_reason() {
    let mut world = World::new();
    for job in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"] {
        world.owner.submit(order(job)).unwrap();
        world.settle();
    }
    let waits = explained(&world, "k");
    assert_eq!((waits.tasks, waits.limit, waits.items_per_s_predicted), (Vec::new(), None, None));
    assert_eq!(waits.lines.len(), 1);
    assert!(waits.lines[0].contains("cpu 100m requested, 0m unused"), "{:?}", waits.lines);
    assert!(world.owner.plan(order("l")).unwrap().question.is_none());
}
