//! `GET /v1/doctor`, which `edgeloom doctor` prints: what stands in the cluster's way, with the remedy.
//!
//! Two halves, as on the node: [`examine`] looks at state, clock and disk; [`judge`] turns the [`Readings`] into
//! verdicts and looks at nothing.

mod judge;

use edgeloom_cluster::Cluster;
use edgeloom_common::doctor::{Examination, Space};
use edgeloom_common::images::WatchView;
use edgeloom_common::view::NodeView;
use std::fs::File;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Everything that is judged.
#[derive(Debug, Clone)]
struct Readings {
    /// The wall clock.
    now_ms: u64,
    /// The owner's clock, which runs steadily from the wall clock at the start; none when the owner is gone.
    owner_ms: Option<u64>,
    state_dir: String,
    space: Space,
    nodes: Vec<NodeView>,
    registries: Vec<WatchView>,
}

/// Looks at everything and judges it.
pub(crate) async fn examine(cluster: &Cluster) -> Examination {
    let directory = cluster.state_dir().to_owned();
    let reading = tokio::task::spawn_blocking(move || space(&directory)).await;
    let gone = |error: tokio::task::JoinError| {
        let problem = error.to_string();
        Space { writable: Err(problem.clone()), free_bytes: Err(problem) }
    };
    let owner_ms = cluster.now_ms().await;
    let readings = Readings {
        now_ms: now_ms(),
        owner_ms,
        state_dir: cluster.state_dir().display().to_string(),
        space: reading.unwrap_or_else(gone),
        nodes: cluster.nodes().await,
        registries: cluster.registries(),
    };
    Examination { checks: judge::checks(&readings) }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn space(directory: &Path) -> Space {
    let path = directory.join(format!(".doctor-{}", std::process::id()));
    let made = File::create(&path).and_then(|_| std::fs::remove_file(&path));
    let stat = nix::sys::statvfs::statvfs(directory);
    Space {
        writable: made.map_err(|error| error.to_string()),
        free_bytes: stat
            .map(|stat| stat.blocks_available().saturating_mul(stat.fragment_size()))
            .map_err(|error| format!("{}: {error}", directory.display())),
    }
}
