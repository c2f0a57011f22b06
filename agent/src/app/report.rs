//! Load and inventory, told on time and when they change.

use super::tasks;
use crate::counts::Counts;
use crate::engine::{ContainerEngine, EngineVersion};
use crate::inventory::Gatherer;
use crate::network::NetworkThread;
use crate::node::Node;
use crate::wire::Up;
use edgeloom_common::desired::SCHEMA;
use edgeloom_common::ids::FlowId;
use edgeloom_common::report::{FlowRate, Report};
use edgeloom_common::units::{BitRate, Bytes};
use edgeloom_net::FlowCounter;
use edgeloom_observe::meter::{Meter, MeterError};
use edgeloom_observe::{disk, heat};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep, timeout};

/// A report at least this often: the controller takes silence of a few periods for a lost node.
const IDLE_PERIOD: Duration = Duration::from_secs(10);
/// While tasks or flows are here: a shortfall has to be seen within half a minute, from several reports.
const BUSY_PERIOD: Duration = Duration::from_secs(3);
/// While a container has just started: of what passes its interfaces the last moments are seen by nobody, and one
/// that lives for seconds should not lose half of it.
const YOUNG_PERIOD: Duration = Duration::from_secs(1);
const YOUNG_MS: u64 = 10_000;
/// Quotas are looked at this often; only changes are told.
const INVENTORY_PERIOD: Duration = Duration::from_secs(5);
/// Every so many looks Docker is asked for its version.
const LOOKS_PER_VERSION: u32 = 12;
/// Layers are read when Docker tells of a change; it tells nothing of a pull that failed.
const LOOKS_PER_LAYERS: u32 = 120;
/// A burst of events is one change, and Docker's files are at most this much behind them.
const SETTLED_AFTER: Duration = Duration::from_millis(300);
/// Each sample is about 1 ms of a core: 0.05 % of it.
const SPEED_PERIOD: Duration = Duration::from_secs(2);
/// Pause before a part that could not be read is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// A report waits no longer for Docker or the network thread: the node is alive without their answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// Sends reports for ever: on time, and when containers have changed.
pub(super) async fn reports(
    node: Node,
    counts: Counts,
    up: mpsc::Sender<Up>,
    mut containers: watch::Receiver<u64>,
) {
    let mut reporter = Reporter::new(meter(&node).await, node, counts);
    loop {
        let pause = match reporter.report().await {
            Ok(report) => {
                let pause = pause_after(&report);
                if up.send(Up::Report(report)).await.is_err() {
                    return;
                }
                pause
            }
            Err(error) => {
                tracing::warn!(%error, "no load to report");
                IDLE_PERIOD
            }
        };
        tokio::select! {
            () = sleep(pause) => {}
            Ok(()) = containers.changed() => {
                sleep(SETTLED_AFTER).await;
                containers.mark_unchanged();
            }
        }
    }
}

fn pause_after(report: &Report) -> Duration {
    if report.totals.iter().any(|total| total.age_ms < YOUNG_MS) {
        YOUNG_PERIOD
    } else if report.flows.is_empty() && report.totals.is_empty() {
        IDLE_PERIOD
    } else {
        BUSY_PERIOD
    }
}

/// What reports are made from.
struct Reporter {
    node: Node,
    meter: Meter,
    flows: FlowMeter,
    counts: Counts,
    engine: EngineVersion,
    since: Instant,
}

impl Reporter {
    fn new(meter: Meter, node: Node, counts: Counts) -> Self {
        let (flows, engine) = (FlowMeter::default(), EngineVersion::default());
        Self { node, meter, flows, counts, engine, since: Instant::now() }
    }

    async fn report(&mut self) -> Result<Report, MeterError> {
        let node = &self.node;
        if self.engine.version.is_empty() {
            let asked = timeout(ANSWER_MAX, node.engine.version()).await;
            self.engine = asked.ok().and_then(Result::ok).unwrap_or_default();
        }
        let load = self.meter.load()?;
        let looked = timeout(ANSWER_MAX, tasks::look(&self.counts, &node.engine)).await;
        let looked = looked.ok().and_then(Result::ok).unwrap_or_default();
        Ok(Report {
            schema: SCHEMA,
            cpu_used: load.cpu,
            memory_used: load.memory,
            disk_used: disk::read(node.disk(&self.engine)).map(|disk| disk.used).unwrap_or_default(),
            flows: timeout(ANSWER_MAX, self.flows.rates(&node.network)).await.unwrap_or_default(),
            tasks: looked.uses,
            totals: looked.totals,
            temperature_millicelsius: heat::millicelsius(),
            disk_written: disk::written(),
            running_s: Some(self.since.elapsed().as_secs()),
        })
    }
}

fn every(period: Duration) -> Interval {
    let mut interval = interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

async fn meter(node: &Node) -> Meter {
    loop {
        match Meter::open(node.config.cgroup.as_deref()) {
            Ok(meter) => return meter,
            Err(error) => tracing::warn!(%error, "load is not measured"),
        }
        sleep(AGAIN_AFTER).await;
    }
}

/// Sends the inventory when it changed, and after each connection.
pub(super) async fn inventories(
    node: Node,
    up: mpsc::Sender<Up>,
    mut connected: watch::Receiver<u64>,
    mut images: watch::Receiver<u64>,
) {
    let mut gatherer = gatherer(&node).await;
    let mut said = None;
    let mut period = every(INVENTORY_PERIOD);
    let mut sampling = every(SPEED_PERIOD);
    let mut looks = 0_u32;
    loop {
        tokio::select! {
            _ = sampling.tick() => {
                gatherer.sample_speed();
                continue;
            }
            _ = period.tick() => {
                looks = looks.wrapping_add(1);
                if looks.is_multiple_of(LOOKS_PER_LAYERS) {
                    gatherer.look_at_store().await;
                }
            }
            Ok(()) = images.changed() => {
                sleep(SETTLED_AFTER).await;
                images.mark_unchanged();
                gatherer.look_at_store().await;
            }
            changed = connected.changed() => match changed {
                Ok(()) => said = None,
                Err(_) => return,
            },
        }
        if looks.is_multiple_of(LOOKS_PER_VERSION) || said.is_none() {
            gatherer.ask_engine().await;
        }
        match gatherer.gather().await {
            Ok(inventory) if said.as_ref() != Some(&inventory) => {
                if up.send(Up::Inventory(Box::new(inventory.clone()))).await.is_err() {
                    return;
                }
                said = Some(inventory);
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "no inventory to report"),
        }
    }
}

async fn gatherer(node: &Node) -> Gatherer {
    loop {
        match Gatherer::open(node.clone()).await {
            Ok(gatherer) => return gatherer,
            Err(error) => tracing::warn!(%error, "the inventory is not known"),
        }
        sleep(AGAIN_AFTER).await;
    }
}

/// Rates from counters: bytes since the reading before.
#[derive(Debug, Default)]
struct FlowMeter {
    before: BTreeMap<FlowId, u64>,
    at: Option<Instant>,
}

impl FlowMeter {
    async fn rates(&mut self, network: &NetworkThread) -> Vec<FlowRate> {
        match network.flow_counters().await {
            Ok(counters) => self.since(counters, Instant::now()),
            Err(error) => {
                tracing::debug!(%error, "no flow counters");
                Vec::new()
            }
        }
    }

    /// A counter that went back belongs to a class made anew: its bytes count from zero.
    fn since(&mut self, counters: Vec<FlowCounter>, now: Instant) -> Vec<FlowRate> {
        let elapsed = self.at.replace(now).map_or(Duration::ZERO, |at| now - at).as_millis();
        let before = std::mem::take(&mut self.before);
        let mut rates = Vec::with_capacity(counters.len());
        for counter in counters {
            let earlier = before.get(&counter.id).copied().filter(|earlier| *earlier <= counter.bytes);
            let bits = u128::from(counter.bytes - earlier.unwrap_or(0)) * 8;
            self.before.insert(counter.id.clone(), counter.bytes);
            // A flow's first reading may hold bytes of any age.
            let known = elapsed > 0 && before.contains_key(&counter.id);
            let rate = if known { u64::try_from(bits * 1000 / elapsed).unwrap_or(u64::MAX) } else { 0 };
            rates.push(FlowRate { id: counter.id, rate: BitRate(rate), backlog: Bytes(counter.backlog) });
        }
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgeloom_common::report::TaskTotal;

    fn counter(bytes: u64) -> FlowCounter {
        let name = |text: &str| text.parse().unwrap();
        let id = FlowId { job: "j".parse().unwrap(), from: name("a"), to: name("b") };
        FlowCounter { id, bytes, backlog: 0, packets: 0 }
    }

    #[test]
    fn a_container_that_has_just_started_is_looked_at_often() {
        let total = |age_ms| TaskTotal {
            job: "j".parse().unwrap(),
            task: "t".parse().unwrap(),
            container: "c".to_owned(),
            run: 1,
            age_ms,
            cpu_us: 0,
            sent: Bytes(0),
            received: Bytes(0),
            memory: Bytes(0),
            memory_byte_s: 0,
            memory_from_ms: 0,
        };
        let pause = |totals| pause_after(&Report { totals, ..Report::default() });
        assert_eq!(pause(Vec::new()), IDLE_PERIOD);
        assert_eq!(pause(vec![total(YOUNG_MS)]), BUSY_PERIOD);
        assert_eq!(pause(vec![total(YOUNG_MS), total(5)]), YOUNG_PERIOD);
    }

    #[test]
    fn a_rate_is_bytes_since_the_reading_before() {
        let mut meter = FlowMeter::default();
        let start = Instant::now();
        assert_eq!(meter.since(vec![counter(5000)], start)[0].rate, BitRate(0));
        let later = start + Duration::from_secs(10);
        assert_eq!(meter.since(vec![counter(5000 + 1_250_000)], later)[0].rate, BitRate(1_000_000));
    }

    #[test]
    fn a_counter_that_went_back_counts_from_zero() {
        let mut meter = FlowMeter::default();
        let start = Instant::now();
        meter.since(vec![counter(5_000_000)], start);
        let rates = meter.since(vec![counter(1250)], start + Duration::from_secs(1));
        assert_eq!(rates[0].rate, BitRate(10_000));
    }
}
