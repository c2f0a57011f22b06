//! What changes in Docker: containers and volumes of ours, images of anybody.

use super::{Docker, EngineError, Request, hosting};
use crate::engine::{Changes, label};
use bollard::models::{EventActor, EventMessage, EventMessageTypeEnum};
use bollard::query_parameters::EventsOptionsBuilder;
use futures_util::{StreamExt, pin_mut};
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

const OF_CONTAINERS: [&str; 7] = ["start", "die", "destroy", "pause", "unpause", "oom", "update"];
const OF_IMAGES: [&str; 7] = ["pull", "tag", "untag", "delete", "load", "import", "prune"];
const OF_VOLUMES: [&str; 3] = ["create", "destroy", "prune"];

pub(super) async fn follow(docker: &Docker, changes: Changes) -> Result<(), EngineError> {
    // The daemon repeats what happened since now, so nothing falls between the first look and the stream.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let options = EventsOptionsBuilder::new().since(&now.to_string()).filters(&filters()).build();
    let stream = docker.client().await?.events(Some(options));
    pin_mut!(stream);
    docker.limits.forget_all();
    changes.all();
    while let Some(event) = stream.next().await {
        let event =
            event.map_err(|error| docker.refusal(Request { verb: "follow", object: "events" }, &error))?;
        if !tell(docker, &event, &changes) {
            break;
        }
    }
    Ok(())
}

/// Labels are not asked for: images have none of ours.
fn filters() -> HashMap<&'static str, Vec<&'static str>> {
    let actions = OF_CONTAINERS.iter().chain(&OF_IMAGES).chain(&OF_VOLUMES).copied().collect();
    HashMap::from([("type", vec!["container", "image", "volume"]), ("event", actions)])
}

/// False when nobody listens any more.
fn tell(docker: &Docker, event: &EventMessage, changes: &Changes) -> bool {
    // Volumes without a name of ours come and go with the containers of others.
    let name = event.actor.as_ref().and_then(|actor| actor.id.as_deref()).unwrap_or_default();
    match event.typ {
        Some(EventMessageTypeEnum::VOLUME) if !name.is_empty() && hosting::held(name).is_none() => {
            return true;
        }
        Some(EventMessageTypeEnum::IMAGE | EventMessageTypeEnum::VOLUME) => {
            changes.image();
            return true;
        }
        _ => {}
    }
    let action = event.action.as_deref().unwrap_or_default();
    // Docker's filter takes every action of every type.
    if !OF_CONTAINERS.contains(&action) {
        return true;
    }
    // A container holds layers whose image may be gone, also one that is not ours.
    if action == "destroy" {
        changes.image();
    }
    let Some(actor) = event.actor.as_ref().filter(|actor| is_ours(docker, actor)) else { return true };
    let id = actor.id.as_deref().unwrap_or_default();
    docker.limits.heard(id);
    match action {
        "update" => docker.limits.forget(id),
        // Started again between two lists, it shows the state that it had.
        "start" => docker.limits.started(id),
        "die" => docker.limits.ended(id, event),
        _ => {}
    }
    changes.container()
}

fn is_ours(docker: &Docker, actor: &EventActor) -> bool {
    let node = actor.attributes.as_ref().and_then(|attributes| attributes.get(label::NODE));
    node.is_some_and(|node| *node == docker.owner.node.as_str())
}
