//! Images in the lab's registry: those of the example application, and the scaled family of real ones.

use anyhow::{Context, Result};
use edgeloom_examples::build::{self, Profile};
use edgeloom_examples::images::{self, ImageSpec};

/// The registry as the host reaches it.
const REGISTRY: &str = "10.60.0.1:5000";

/// Builds the application and pushes the images that the example jobs name.
pub(crate) fn images() -> Result<()> {
    push(&images::application_images(&program()?))
}

/// Pushes the scaled family of real images, and answers with it.
pub(crate) fn family() -> Result<Vec<ImageSpec>> {
    let specs = images::family(&program()?);
    push(&specs)?;
    Ok(specs)
}

/// Pushes these, in place of what their tags named before.
pub(crate) fn push(specs: &[ImageSpec]) -> Result<()> {
    eprintln!("pushing {} images to {REGISTRY}", specs.len());
    specs.iter().try_for_each(|spec| images::push(REGISTRY, spec).map(drop))?;
    Ok(())
}

/// What jobs call an image of the lab's registry.
pub(crate) fn name(spec: &ImageSpec) -> String {
    format!("{REGISTRY}/{}:{}", spec.repository, spec.tag)
}

/// The program that every image starts with.
pub(crate) fn program() -> Result<Vec<u8>> {
    let path = build::pipeline(Profile::Release)?;
    std::fs::read(&path).with_context(|| path.display().to_string())
}
