//! The example application's images in the lab's registry.

use anyhow::{Context, Result};
use edgeloom_examples::build::{self, Profile};
use edgeloom_examples::images;

/// The registry as the host reaches it.
const REGISTRY: &str = "10.60.0.1:5000";

/// Builds the application and pushes the images that the example jobs name.
pub(crate) fn images() -> Result<()> {
    let pipeline = build::pipeline(Profile::Release)?;
    let binary = std::fs::read(&pipeline).with_context(|| pipeline.display().to_string())?;
    let specs = images::application_images(&binary);
    eprintln!("pushing {} images to {REGISTRY}", specs.len());
    for spec in &specs {
        images::push(REGISTRY, spec)?;
    }
    Ok(())
}
