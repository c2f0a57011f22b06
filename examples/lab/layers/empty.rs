//! From one profile to the next on the same lab: no job, no image, and the layer store on or off with nothing in it.

use crate::api::{Request, wait_for};
use crate::docker;
use crate::ground::Ground;
use crate::lab::Node;
use anyhow::{Context, Result, ensure};
use edgeloom_common::view::{JobList, JobView};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(90);
/// More than all images of the family have.
const BUDGET: &str = "200MB";
const SECTION: &str = "\n[layers]";

/// An image of each node that has any.
pub(super) type Held = BTreeMap<String, String>;

/// Stops every job and removes every image, and waits until the controller has seen it.
pub(super) fn empty(ground: &Ground, held: &Held) -> Result<()> {
    let jobs = || -> Result<Vec<String>> {
        let (_, body) = ground.api.request(&Request::Get("/v1/jobs"))?;
        let list: JobList = serde_json::from_str(&body)?;
        Ok(list.jobs.into_iter().map(|job| job.name.to_string()).collect())
    };
    for job in jobs()? {
        ground.api.request(&Request::Delete(&format!("/v1/jobs/{job}")))?;
    }
    wait_for("every job to be gone", PATIENCE, || Ok(jobs()?.is_empty()))?;
    ground.await_converged("without jobs", PATIENCE)?;
    ground.lab.nodes().iter().try_for_each(|node| remove_images(&node.docker_socket()))?;
    for (node, image) in held {
        let what = format!("the controller to see that {node} has no images");
        wait_for(&what, PATIENCE, || lacks(ground, node, image))?;
    }
    Ok(())
}

/// The controller foretells a pull of the image there.
fn lacks(ground: &Ground, node: &str, image: &str) -> Result<bool> {
    let document = format!(
        "kind: Job\nname: probe\ntasks:\n  app:\n    image: {image}\n    constraints: [\"node.name == {node}\"]\n"
    );
    let (status, body) = ground.api.request(&Request::Post("/v1/jobs?dry_run=true", &document))?;
    ensure!(status == 200, "planning {image} on {node}: status {status}: {body}");
    let view: JobView = serde_json::from_str(&body)?;
    Ok(view.tasks.iter().any(|task| task.bytes_predicted > 0))
}

fn remove_images(socket: &Path) -> Result<()> {
    let listed = || -> Result<Vec<String>> {
        let images = docker::ask(socket, "/images/json?all=1")?;
        let ids = images.as_array().into_iter().flatten().filter_map(|image| image["Id"].as_str());
        Ok(ids.map(str::to_owned).collect())
    };
    for id in listed()? {
        docker::remove_image(socket, &id)?;
    }
    ensure!(listed()?.is_empty(), "images stay on {}", socket.display());
    Ok(())
}

/// Whether agents keep layers and give them to their neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LayerStore {
    On,
    Off,
}

/// Starts all daemons anew, without a layer store: what pulls taught of lines that a scenario led elsewhere, or shared
/// with a flow, is nothing to go by afterwards.
pub(super) fn forget_lines(ground: &Ground) -> Result<()> {
    ground.lab.kill_controller()?;
    ground.lab.start_controller()?;
    ground.api.await_controller(PATIENCE)?;
    set_layer_store(ground, LayerStore::Off)
}

/// Starts every agent anew, with an empty layer store or without one.
pub(super) fn set_layer_store(ground: &Ground, wanted: LayerStore) -> Result<()> {
    for node in ground.lab.nodes() {
        ground.lab.kill_agent(&node)?;
        configure(&node, wanted)?;
        ground.lab.start_agent(&node)?;
    }
    ground.await_converged("with agents started anew", PATIENCE)
}

fn configure(node: &Node<'_>, wanted: LayerStore) -> Result<()> {
    let path = node.state().join("agent.toml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut text = text.split(SECTION).next().unwrap_or_default().to_owned();
    if wanted == LayerStore::On {
        text += &format!("{SECTION}\nbudget = \"{BUDGET}\"\n");
    }
    std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    let kept = node.state().join("agent/layers");
    match std::fs::remove_dir_all(&kept) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| kept.display().to_string())
        }
        _ => Ok(()),
    }
}
