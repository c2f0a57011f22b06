//! A pull beside a running job: a node gets the layers of a large image over the link and in the direction that a job's
//! flow takes as well, first from its neighbour, whose kernel shapes both, then from a registry behind that one. What
//! the job makes before and during a pull, its own output tells; what the pull gets of what the job leaves, frames
//! counted on the link.

use super::empty::{self, Held, LayerStore};
use super::pull::{self, Outcome};
use super::report::Report;
use crate::api::{Submitted, wait_for};
use crate::detour::Detour;
use crate::document::Document;
use crate::ground::Ground;
use crate::meter::{Meter, Snapshot};
use crate::publish;
use crate::throughput::{WARM_UP, Window};
use anyhow::{Result, bail, ensure};
use edgeloom_common::units::BitRate;
use edgeloom_common::view::JobState;
use edgeloom_examples::images::{File, ImageSpec, Layer};
use serde::Serialize;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Gives the layers, and sends the job's items.
const FROM: &str = "n1";
const TO: &str = "n2";
/// The job's items: 20 Mbit/s without headers, two fifths of the link.
const ITEM: &str = "100KB";
const ITEMS_PER_S: u32 = 25;
const LAYERS: u64 = 4;
const LAYER_BYTES: usize = 12_000_000;
/// How long the job is measured alone.
const ALONE: Duration = Duration::from_secs(12);
/// A pull has begun once so much of it has come. A proxy hears for two seconds what the job uses of its rate before it
/// takes the rest, and buffers fill meanwhile.
const BEGUN_BYTES: u64 = 1_000_000;
const HEARD_BYTES: u64 = 8_000_000;
/// It is over when less than so much came for so long.
const TRICKLE_BYTES: u64 = 50_000;
const QUIET: Duration = Duration::from_secs(3);
const LOOK_PAUSE: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(120);
/// Of its throughput, that the job loses.
const LOSS_MAX: f64 = 0.05;
/// Of what the job leaves of the link, that the pull gets.
const PART_MIN: f64 = 0.9;
/// First octets of tasks' addresses, of nodes' on links, and of the registry's.
const TASKS: [u8; 2] = [10, 77];
const LINKS: [u8; 2] = [10, 61];
const REGISTRY: [u8; 2] = [10, 60];
/// Of the neighbour's own line while the registry is behind it: the link is the narrowest.
const WIDE: BitRate = BitRate(200_000_000);

/// What both got; wire rates.
#[derive(Debug, Clone, Serialize)]
pub(super) struct BesideRow {
    pub(super) scenario: &'static str,
    pub(super) link_bps: u64,
    pub(super) items_per_s_before: f64,
    pub(super) items_per_s_during: f64,
    pub(super) job_bps_before: f64,
    pub(super) job_bps_during: f64,
    pub(super) pull_bps: f64,
    pub(super) pull_bytes: u64,
    pub(super) seconds: f64,
}

impl BesideRow {
    /// Part of its items that the job does not make.
    fn loss(&self) -> f64 {
        1.0 - self.items_per_s_during / self.items_per_s_before
    }

    /// Part of what the job leaves that the pull gets.
    fn part(&self) -> f64 {
        self.pull_bps / (BitRate(self.link_bps).as_f64() - self.job_bps_during)
    }

    fn judge(&self, report: &mut Report) {
        let mbit = |bps: f64| bps / 1e6;
        println!(
            "  job: {:.2} items/s ({:.2} Mbit/s) before, {:.2} ({:.2}) during; pull: {:.2} Mbit/s of {} for {:.1} s",
            self.items_per_s_before,
            mbit(self.job_bps_before),
            self.items_per_s_during,
            mbit(self.job_bps_during),
            mbit(self.pull_bps),
            BitRate(self.link_bps),
            self.seconds
        );
        let (loss, part) = (self.loss(), self.part());
        let name = self.scenario;
        report.verdict.check(&format!("{name}: what the job loses"), loss < LOSS_MAX, loss, LOSS_MAX);
        report.verdict.check(&format!("{name}: part of what is left"), part >= PART_MIN, part, PART_MIN);
    }
}

/// What is played.
#[derive(Debug, Clone, Copy)]
struct Scenario {
    name: &'static str,
    /// First octets of the addresses that layers come from.
    from: [u8; 2],
    /// From when on it is measured.
    begun_bytes: u64,
}

const NEAR: Scenario = Scenario { name: "a pull beside a job", from: LINKS, begun_bytes: BEGUN_BYTES };
const FAR: Scenario =
    Scenario { name: "a pull from a registry beside a job", from: REGISTRY, begun_bytes: HEARD_BYTES };

/// Plays both with the layer store on; what they leave is removed.
pub(super) fn play(ground: &Ground, report: &mut Report) -> Result<()> {
    ground.chapter("a pull beside a running job");
    empty::set_layer_store(ground, LayerStore::On)?;
    let images = images()?;
    publish::push(&images)?;
    let [stream, near, far] = images.each_ref().map(publish::name);
    let Outcome::Runs(_) = pull::run(ground, &holds("held", &near, FROM))? else {
        bail!("{FROM} has no room for {near}");
    };
    let job = Document::read(&streams(&stream))?;
    ground.start(&job, |_| ())?;
    play_one(ground, report, (&job, &holds("near", &near, TO)), NEAR)?;
    let detour = Detour::lay(&ground.lab, (FROM, TO), WIDE)?;
    // Connections that are open would go on as they began.
    empty::set_layer_store(ground, LayerStore::On)?;
    play_one(ground, report, (&job, &holds("far", &far, TO)), FAR)?;
    detour.lift()?;
    let held = [(FROM, near), (TO, far)].map(|(node, image)| (node.to_owned(), image));
    empty::empty(ground, &Held::from(held))?;
    empty::set_layer_store(ground, LayerStore::Off)
}

fn play_one(
    ground: &Ground,
    report: &mut Report,
    (job, document): (&Document, &str),
    scenario: Scenario,
) -> Result<()> {
    let row = measure(ground, (job, document), scenario)?;
    row.judge(report);
    report.beside.push(row);
    Ok(())
}

/// The job's image and two large ones, each on a base of its own.
fn images() -> Result<[ImageSpec; 3]> {
    let program = publish::program()?;
    let image = |name: &str, above: Vec<Layer>, word: Option<&str>| {
        let files = [
            File { path: "pipeline", mode: 0o755, content: &program },
            File { path: "note", mode: 0o644, content: name.as_bytes() },
        ];
        ImageSpec {
            repository: format!("beside/{name}"),
            tag: "1".to_owned(),
            layers: std::iter::once(Layer::files(&files)).chain(above).collect(),
            entrypoint: std::iter::once("/pipeline").chain(word).map(str::to_owned).collect(),
        }
    };
    let large = |name: &str, seed: u64| {
        let layers = (seed..seed + LAYERS).map(|at| Layer::random("own.bin", at, LAYER_BYTES)).collect();
        image(name, layers, Some("idle"))
    };
    Ok([image("stream", Vec::new(), None), large("near", 9_100), large("far", 9_200)])
}

fn holds(name: &str, image: &str, node: &str) -> String {
    format!(
        "kind: Job\nname: {name}\ntasks:\n  app:\n    image: {image}\n    resources: {{ cpu: 20m, memory: 32MiB }}\n    constraints: [\"node.name == {node}\"]\n"
    )
}

fn streams(image: &str) -> String {
    format!(
        "kind: Job\nname: stream\nsource:\n  node: {FROM}\n  image: {image}\n  item: {ITEM}\n  rate: {ITEMS_PER_S}/s\n  resources: {{ cpu: 100m, memory: 32MiB }}\ntasks:\n  sink:\n    image: {image}\n    resources: {{ cpu: 100m, memory: 32MiB }}\n    work: 100us\n    inputs: [source]\n    constraints: [\"node.name == {TO}\"]\n"
    )
}

/// Bytes on the wire from the one node to the other.
#[derive(Debug, Clone, Copy)]
struct Look {
    at: Instant,
    job: u64,
    pull: u64,
}

impl Look {
    fn at(meter: &Meter, source: [u8; 2]) -> Self {
        let Snapshot(counts) = meter.snapshot();
        let of = |network: [u8; 2]| {
            let mine = counts.iter().filter(|(key, _)| key.from == FROM && key.to == TO);
            let tcp = mine.filter(|(key, _)| {
                let within = |source: Ipv4Addr| source.octets()[..2] == network;
                key.flow.is_some_and(|(source, _, protocol, _)| within(source) && protocol == 6)
            });
            tcp.map(|(_, bytes)| *bytes).sum()
        };
        Self { at: Instant::now(), job: of(TASKS), pull: of(source) }
    }

    /// Bits a second of the job and of the pull since then.
    #[expect(clippy::cast_precision_loss, reason = "megabytes")]
    fn since(&self, before: &Self) -> (f64, f64) {
        let seconds = self.at.duration_since(before.at).as_secs_f64();
        let bps = |now: u64, before: u64| (now - before) as f64 * 8.0 / seconds;
        (bps(self.job, before.job), bps(self.pull, before.pull))
    }
}

/// The job alone, then beside the pull that `document` asks for, from when that has begun until nothing more comes from
/// its source.
fn measure(ground: &Ground, (job, document): (&Document, &str), scenario: Scenario) -> Result<BesideRow> {
    let link = &ground.lab.topology.links[ground.lab.topology.link(FROM, TO)?];
    let meter = Meter::start(&ground.lab)?;
    let look = || Look::at(&meter, scenario.from);
    std::thread::sleep(WARM_UP);
    let (window, alone) = (Window::open(&ground.engines, [job])?, look());
    std::thread::sleep(ALONE);
    let (before, idle) = (window.close()?[0], look());
    let Submitted::Accepted(view) = ground.api.submit(document)? else { bail!("{document} is refused") };
    let come = |bytes: u64| look().pull >= idle.pull + bytes;
    await_bytes("the pull to begin", || come(scenario.begun_bytes))?;
    let (window, begun) = (Window::open(&ground.engines, [job])?, look());
    let done = until_nothing_comes(look)?;
    let during = window.close()?[0];
    let name = view.name.as_str();
    wait_for("the pulled image to run", PATIENCE, || {
        Ok(ground.api.job(name)?.is_some_and(|view| view.state == JobState::Running))
    })?;
    let ((job_before, _), (job_during, pull)) = (idle.since(&alone), done.since(&begun));
    Ok(BesideRow {
        scenario: scenario.name,
        link_bps: link.rate.0,
        items_per_s_before: before,
        items_per_s_during: during,
        job_bps_before: job_before,
        job_bps_during: job_during,
        pull_bps: pull,
        pull_bytes: done.pull - begun.pull,
        seconds: done.at.duration_since(begun.at).as_secs_f64(),
    })
}

/// The last look at which more of the pull had come. Beside a neighbour the registry gives layers at the same time, so
/// how much that one gives is not known before.
fn until_nothing_comes(look: impl Fn() -> Look) -> Result<Look> {
    let begun = Instant::now();
    let mut last = look();
    while last.at.elapsed() < QUIET {
        ensure!(begun.elapsed() < PATIENCE, "the pull takes longer than {} s", PATIENCE.as_secs());
        std::thread::sleep(LOOK_PAUSE);
        let now = look();
        if now.pull >= last.pull + TRICKLE_BYTES {
            last = now;
        }
    }
    Ok(last)
}

/// Looks more often than `wait_for`: a pull of some seconds is measured to a tenth.
fn await_bytes(what: &str, come: impl Fn() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !come() {
        ensure!(begun.elapsed() < PATIENCE, "waited {} s for {what}", PATIENCE.as_secs());
        std::thread::sleep(LOOK_PAUSE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_read_and_a_row_tells_both_parts() {
        for text in [holds("held", "r/large:1", FROM), streams("r/stream:1")] {
            Document::read(&text).unwrap();
        }
        let row = BesideRow {
            scenario: NEAR.name,
            link_bps: 50_000_000,
            items_per_s_before: 25.0,
            items_per_s_during: 24.0,
            job_bps_before: 20e6,
            job_bps_during: 20e6,
            pull_bps: 27e6,
            pull_bytes: 1,
            seconds: 1.0,
        };
        assert!((row.loss() - 0.04).abs() < 1e-9 && (row.part() - 0.9).abs() < 1e-9);
    }
}
