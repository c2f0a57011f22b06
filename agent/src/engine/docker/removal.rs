//! Images that may be removed, and their removal, name by name: Docker refuses to remove one that a container has.

use super::{Docker, EngineError, Request, has_status};
use crate::engine::image::{FoundImage, real_names};
use bollard::models::ImageSummary;
use bollard::query_parameters::{ListContainersOptionsBuilder, ListImagesOptions, RemoveImageOptions};
use edgeloom_common::units::Bytes;
use std::collections::BTreeSet;

impl Docker {
    /// Every image that is not just a step of another, with whether a container has it.
    pub(crate) async fn found_images(&self) -> Result<Vec<FoundImage>, EngineError> {
        let client = self.client().await?;
        let refused = |object| move |error| self.refusal(Request { verb: "list", object }, &error);
        let all = ListContainersOptionsBuilder::new().all(true).build();
        let images = client.list_images(None::<ListImagesOptions>).await.map_err(refused("images"))?;
        // Afterwards, so that no container was made from a listed image without being seen.
        let containers = client.list_containers(Some(all)).await.map_err(refused("containers"))?;
        let used: BTreeSet<String> =
            containers.into_iter().filter_map(|container| container.image_id).collect();
        Ok(images.into_iter().map(|image| found(image, &used)).collect())
    }

    /// Takes every name away from it; gone already is well.
    pub(crate) async fn remove_image(&self, image: &FoundImage) -> Result<(), EngineError> {
        let client = self.client().await?;
        for name in image.names() {
            match client.remove_image(name, None::<RemoveImageOptions>, None).await {
                // The last tag of a repository takes its digests with it.
                Err(error) if !has_status(&error, 404) => {
                    return Err(self.refusal(Request { verb: "remove image", object: name }, &error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn found(image: ImageSummary, used: &BTreeSet<String>) -> FoundImage {
    FoundImage {
        used: used.contains(&image.id),
        id: image.id,
        tags: real_names(image.repo_tags),
        digests: real_names(image.repo_digests),
        bytes: Bytes(u64::try_from(image.size).unwrap_or(0)),
        made_s: image.created,
    }
}
