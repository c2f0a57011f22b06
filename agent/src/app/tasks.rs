//! What each running container of ours uses, for the report.
//!
//! Docker is asked which containers there are, and for the process of one that is not followed yet; the figures are
//! the kernel's own files. A container looked at for the first time has what it used since its start, and no
//! rates until the next look.

use crate::counts::Counts;
use crate::engine::{ContainerEngine, Docker, EngineError, FoundState, Hold};
use edgeloom_common::report::{TaskTotal, TaskUse};

/// What running containers use.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Looked {
    /// Since the look before, of each that ran then, too.
    pub(super) uses: Vec<TaskUse>,
    /// Since each was started.
    pub(super) totals: Vec<TaskTotal>,
}

/// Looks at every container that runs.
pub(super) async fn look(counts: &Counts, engine: &Docker) -> Result<Looked, EngineError> {
    let mut running = engine.list().await?;
    // One that the engine does not answer for would keep the figures of all others back.
    running.retain(|found| found.state == FoundState::Running && found.hold == Hold::Free);
    counts.retain(|id| running.iter().any(|found| found.id == id));
    let mut looked = Looked::default();
    for found in running {
        let mut figures = counts.look(&found.id);
        // Not followed yet, or started again since by others than us.
        if figures.is_none()
            && let Some(process) = engine.process(&found.id).await?
        {
            counts.follow(&found.key, &found.id, process);
            figures = counts.look(&found.id);
        }
        let Some((used, total)) = figures else { continue };
        looked.uses.extend(used);
        looked.totals.push(total);
    }
    Ok(looked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fake::{document, owner, spec};
    use crate::engine::private::{DaemonNetwork, PrivateDocker};
    use crate::engine::{Limits, NetworkSpec};
    use edgeloom_common::desired::ContainerSpec;
    use edgeloom_common::units::{Bytes, MilliCores};
    use edgeloom_observe::container::Container;
    use std::time::Duration;

    /// Many times what a daemon needs on a slow disk: a bound for one that never answers.
    const TRIAL_MAX: Duration = Duration::from_secs(300);

    /// The test's daemon has process ids of its own, so its container is looked for by its control group.
    fn process_of(id: &str) -> Option<u32> {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let member = |pid: &u32| {
            let file = std::fs::read_to_string(format!("/proc/{pid}/cgroup"));
            file.is_ok_and(|text| text.contains(id))
        };
        pids.into_iter().find(member)
    }

    #[tokio::test]
    async fn a_container_s_use_is_read_from_the_kernel() {
        let trial = async {
            let network = DaemonNetwork { enter: ["unshare", "--net"], tables: "--iptables=false" };
            let Some(mut docker) = PrivateDocker::start(network) else { return };
            let client = docker.client().await;
            let image = docker.import(&client).await;
            let engine = Docker::new(docker.socket(), owner());
            let bridge = "edgeloom-test".to_owned();
            let network = NetworkSpec { bridge: bridge.clone(), pool: document(1, vec![]).pool };
            engine.ensure_network(&network).await.unwrap();
            // Burns the processor time of minutes.
            let command = ["/app", "0", "600000", "8"].map(str::to_owned).to_vec();
            let spec = ContainerSpec { image, command, ..spec("busy", "hash") };
            let id = engine.create(&spec, &bridge).await.unwrap();
            let wanted = Limits { cpu: MilliCores(200), memory: Bytes(32 << 20) };
            engine.limit(&id, wanted).await.unwrap();
            assert_eq!(engine.process(&id).await.unwrap(), None, "it does not run yet");
            engine.start(&id).await.unwrap();
            assert!(engine.process(&id).await.unwrap().is_some());
            assert_eq!(engine.process("gone").await.unwrap(), None);
            check(&id).await;
            // Here the daemon's process ids mean other processes, and those are not taken for it.
            let counts = Counts::default();
            assert_eq!(look(&counts, &engine).await.unwrap(), Looked::default());
            assert_eq!(look(&counts, &engine).await.unwrap(), Looked::default());
        };
        tokio::time::timeout(TRIAL_MAX, trial).await.unwrap();
    }

    async fn check(id: &str) {
        let process = loop {
            match process_of(id) {
                Some(process) => break process,
                None => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        };
        let mut container = Container::open(id, process).unwrap();
        let (mut cpu, mut memory) = (MilliCores(0), Bytes(0));
        while cpu == MilliCores(0) || memory < Bytes(8 << 20) {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let used = container.used().unwrap();
            (cpu, memory) = (cpu.max(used.cpu), memory.max(used.memory));
        }
        let total = container.total();
        let limit = total.age.mul_f64(0.4);
        assert!(!total.cpu_time.is_zero() && total.cpu_time < limit, "{total:?}");
        assert!(
            total.memory_byte_s > 0 && total.memory_byte_s < (32 << 20) * total.age.as_secs().max(1),
            "{total:?}"
        );
        assert!(cpu < MilliCores(400), "{cpu} of a limit of 200m");
        assert!(memory < Bytes(32 << 20), "{memory}");
    }
}
