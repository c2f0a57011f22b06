//! The first process of a container, by which the kernel tells what the container uses.

use super::{Docker, EngineError, Request, has_status};
use bollard::query_parameters::InspectContainerOptions;

/// Its id on this machine; none if the container has gone or does not run.
pub(super) async fn first(docker: &Docker, id: &str) -> Result<Option<u32>, EngineError> {
    match docker.client().await?.inspect_container(id, None::<InspectContainerOptions>).await {
        Ok(made) => {
            let pid = made.state.and_then(|state| state.pid).and_then(|pid| u32::try_from(pid).ok());
            Ok(pid.filter(|pid| *pid > 0))
        }
        Err(error) if has_status(&error, 404) => Ok(None),
        Err(error) => Err(docker.refusal(Request { verb: "inspect container", object: id }, &error)),
    }
}
