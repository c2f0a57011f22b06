//! Sealed copies of jobs.

use super::world::{World, order};
use crate::copies::CopyKeys;
use crate::model::JobRecord;
use edgeloom_sched::plan::JobPlan;

fn committed() -> (JobRecord, JobPlan) {
    let mut world = World::new();
    world.owner.submit(order("a")).unwrap();
    world.settle();
    let record = world.owner.model().jobs[&"a".parse().unwrap()].clone();
    let plan = record.plan.clone().unwrap();
    (record, plan)
}

#[test]
fn a_copy_gives_the_job_back_with_the_key_alone() {
    let (record, plan) = committed();
    let keys = CopyKeys::new(&[[1; 32]]);
    let sealed = keys.seal(&record, &plan).unwrap();
    assert_eq!(keys.seal(&record, &plan).unwrap(), sealed, "equal jobs give equal texts");
    let opened = keys.open(&record.job.name, &sealed).unwrap();
    assert_eq!((&opened.job, &opened.images), (&record.job, &record.images));
    assert_eq!((&opened.addresses, opened.since_ms), (&record.addresses, record.since_ms));
    assert_eq!(opened.plan.unwrap().flows, plan.flows);
    assert!(CopyKeys::new(&[[2; 32]]).open(&record.job.name, &sealed).is_none());
    assert!(CopyKeys::new(&[[2; 32], [1; 32]]).open(&record.job.name, &sealed).is_some());
    assert!(keys.open(&"b".parse().unwrap(), &sealed).is_none(), "a copy is of its job alone");
}

#[test]
fn a_copy_that_was_changed_is_none() {
    let (record, plan) = committed();
    let keys = CopyKeys::new(&[[1; 32]]);
    let sealed = keys.seal(&record, &plan).unwrap();
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..1000 {
        let mut bytes = sealed.clone().into_bytes();
        let at = rng.usize(0..bytes.len());
        bytes[at] ^= 1 << rng.u8(0..7);
        let changed = String::from_utf8(bytes).unwrap();
        assert!(keys.open(&record.job.name, &changed).is_none(), "byte {at}");
        assert!(keys.open(&record.job.name, &sealed[..at]).is_none(), "cut at {at}");
    }
}
