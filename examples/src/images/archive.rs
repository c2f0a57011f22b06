//! An image as `docker save` writes it, for `docker load`: it reaches a node without any registry.

use super::{ImageSpec, digest, layer};
use serde_json::json;
use std::io;

/// The archive; `name` is what Docker calls the image then.
///
/// # Errors
/// When a path is too long for a tar header, which those of this format are not.
pub fn archive(image: &ImageSpec, name: &str) -> io::Result<Vec<u8>> {
    let config = image.config();
    let config_path = format!("{}.json", digest(&config).trim_start_matches("sha256:"));
    let paths: Vec<String> = (0..image.layers.len()).map(|height| format!("{height}/layer.tar")).collect();
    let manifest = json!([{ "Config": config_path, "RepoTags": [name], "Layers": paths }]).to_string();
    let mut tar = tar::Builder::new(Vec::new());
    let mut append = |path: &str, content: &[u8]| {
        let mut header = layer::header(0o644, content.len() as u64, tar::EntryType::Regular);
        tar.append_data(&mut header, path, content)
    };
    append(&config_path, &config)?;
    for (path, layer) in paths.iter().zip(&image.layers) {
        append(path, &layer.blob)?;
    }
    append("manifest.json", manifest.as_bytes())?;
    tar.into_inner()
}
