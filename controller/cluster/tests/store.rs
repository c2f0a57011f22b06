//! A store on a disk that refuses. In a process of its own, since sled's threads do not recover from it.

use edgeloom_cluster::{Cluster, CopyKeys, NodeMessage, Registries, Settings};
use edgeloom_common::desired::Pool;
use edgeloom_common::report::{Links, Status};
use edgeloom_common::samples;
use std::time::Duration;
use tokio::sync::mpsc;

fn links(count: usize, interface: u8) -> NodeMessage {
    let link = |index: usize| samples::link(&format!("node-{index}"), [10, 61, 0, interface].into());
    NodeMessage::Links(Links { schema: 1, links: (0..count).map(link).collect() })
}

#[tokio::test]
async fn a_store_that_cannot_be_written_stops_neither_work_nor_end() {
    let state = tempfile::tempdir().unwrap();
    let settings = Settings {
        cluster: "home".parse().unwrap(),
        state_dir: state.path().to_owned(),
        profile: "edgeloom".to_owned(),
        scoring: edgeloom_sched::scoring::Scoring::default(),
        batching: edgeloom_cluster::Batching::default(),
        pool: Pool { network: [10, 77, 0, 0].into(), prefix_len: 16, gateway: [10, 77, 0, 1].into() },
        registries: Registries::default(),
        follow: None,
        copy_keys: CopyKeys::new(&[]),
        secrets_key: state.path().join("secrets.key"),
        prices: None,
    };
    let (outgoing, mut published) = mpsc::channel(64);
    let cluster = Cluster::start(settings, outgoing).unwrap();
    // sled keeps large values in files of their own, which a missing directory refuses.
    std::fs::remove_dir_all(state.path().join("store")).unwrap();
    cluster.observe("n1".parse().unwrap(), NodeMessage::Status(Status::new(true, 1))).await;
    let journal = state.path().join("journal");
    let (mut length, mut compactions) = (0, 0);
    // Each change is journaled with all neighbours; a long journal is compacted, which writes the store.
    for round in 0..40 {
        cluster.observe("n1".parse().unwrap(), links(50_000, round + 1)).await;
        assert!(cluster.ready().await);
        let now = std::fs::metadata(&journal).unwrap().len();
        assert_ne!(now, length, "the change is journaled");
        compactions += u32::from(now < length);
        length = now;
    }
    assert!(compactions > 1, "the store was not asked to write");
    drop(cluster);
    // The channel closes when the owner is gone with all it had.
    let closed = async { while published.recv().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(60), closed).await.expect("the cluster ends");
}
