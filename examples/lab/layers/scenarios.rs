//! Pulls that are not told by the set of layers on a node (Docker's graph-driver stores find a layer by all layers
//! below it): a tag that was pushed again, an image that came without a registry, a layer above another base.

use super::empty::Held;
use super::pull::{self, Outcome};
use super::report::{Report, ScenarioRow};
use crate::api::wait_for;
use crate::docker;
use crate::ground::Ground;
use crate::publish;
use anyhow::{Context, Result, bail};
use edgeloom_examples::images::{File, ImageSpec, Layer, archive};
use std::time::Duration;

/// Where all of them are played: one store has to hold what came before.
const NODE: &str = "n1";
const MEGABYTE: usize = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(30);

/// What images are made of.
struct Kit {
    /// Each with the program, and none like another.
    bases: [Layer; 3],
    layers: [Layer; 4],
}

impl Kit {
    fn new() -> Result<Self> {
        let program = publish::program()?;
        let base = |note: &str| {
            let program = File { path: "pipeline", mode: 0o755, content: &program };
            Layer::files(&[program, File { path: "note", mode: 0o644, content: note.as_bytes() }])
        };
        let layers = [1, 2, 3, 4].map(|seed| Layer::random("own.bin", 9000 + seed, MEGABYTE));
        Ok(Self { bases: ["one", "another", "a third"].map(base), layers })
    }

    /// A base with some of the layers, lowest first.
    fn image(&self, name: &str, base: usize, above: &[usize]) -> ImageSpec {
        let above = above.iter().map(|at| self.layers[*at].clone());
        ImageSpec {
            repository: format!("case/{name}"),
            tag: "1".to_owned(),
            layers: std::iter::once(self.bases[base].clone()).chain(above).collect(),
            entrypoint: vec!["/pipeline".to_owned(), "idle".to_owned()],
        }
    }
}

/// Plays all of them, each on what the ones before left; their containers go on.
pub(super) fn play(ground: &Ground, report: &mut Report) -> Result<Held> {
    ground.chapter("pulls that a set of layers does not tell");
    let kit = Kit::new()?;
    let mut play = |scenario, image: &ImageSpec, bytes| -> Result<()> {
        publish::push(std::slice::from_ref(image))?;
        let number = report.scenarios.len() + 1;
        let row = fetch(ground, (number, image), (scenario, bytes))?;
        row.print();
        report.scenarios.push(row);
        Ok(())
    };
    let first = kit.image("first", 0, &[0, 1]);
    play("an image on an empty store", &first, above(&first, 0))?;
    let again = kit.image("first", 0, &[0, 2]);
    play("a tag that was pushed again", &again, above(&again, 2))?;
    let shared = kit.image("shared", 1, &[0, 3]);
    play("a shared layer above another base", &shared, above(&shared, 0))?;
    let loaded = kit.image("loaded", 2, &[0]);
    load(ground, &loaded)?;
    let over = kit.image("over", 2, &[0, 1]);
    // Docker does not know what digests the layers of a loaded image have in a registry.
    play("an image above a loaded one", &over, above(&over, 0))?;
    play("a loaded image", &loaded, 0)?;
    Ok(Held::from([(NODE.to_owned(), publish::name(&loaded))]))
}

/// Bytes of the layers from one height on, and of the configuration.
fn above(image: &ImageSpec, height: usize) -> u64 {
    let layers: u64 = image.layers[height..].iter().map(Layer::compressed_bytes).sum();
    layers + image.config().len() as u64
}

/// Brings an image to the node without a registry, and waits until the controller has seen it.
fn load(ground: &Ground, image: &ImageSpec) -> Result<()> {
    let held = || -> Result<usize> {
        let nodes = ground.api.nodes()?.nodes;
        let node = nodes.iter().find(|node| node.name.as_str() == NODE);
        Ok(node.with_context(|| format!("{NODE} is gone"))?.layers_held)
    };
    let before = held()?;
    docker::load(&ground.lab.node(NODE)?.docker_socket(), &archive(image, &publish::name(image))?)?;
    wait_for("the loaded image to be seen", PATIENCE, || Ok(held()? > before))
}

/// Starts a container of the image.
fn fetch(
    ground: &Ground,
    (number, image): (usize, &ImageSpec),
    (scenario, bytes_expected): (&'static str, u64),
) -> Result<ScenarioRow> {
    let name = publish::name(image);
    let document = format!(
        "kind: Job\nname: case-{number}\ntasks:\n  app:\n    image: {name}\n    resources: {{ cpu: 20m, memory: 64MB }}\n    constraints: [\"node.name == {NODE}\"]\n"
    );
    let outcome = pull::run(ground, &document).with_context(|| scenario.to_owned())?;
    let Outcome::Runs(pull) = outcome else { bail!("{scenario}: {outcome:?}") };
    Ok(ScenarioRow {
        scenario,
        image: name,
        bytes_expected,
        bytes_predicted: pull.bytes_predicted,
        bytes_fetched: pull.uplink_bytes(),
    })
}
