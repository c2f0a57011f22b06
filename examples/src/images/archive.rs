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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::{File, Layer};
    use std::io::Read;

    #[test]
    fn the_archive_lists_configuration_and_layers_that_are_in_it() {
        let layers = ["a", "b"]
            .map(|path| Layer::files(&[File { path, mode: 0o644, content: path.as_bytes() }]))
            .to_vec();
        let (repository, tag) = ("case/x".to_owned(), "1".to_owned());
        let image = ImageSpec { repository, tag, layers, entrypoint: Vec::new() };
        let bytes = archive(&image, "registry/case/x:1").unwrap();
        let mut files = std::collections::BTreeMap::new();
        for entry in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            files.insert(entry.path().unwrap().display().to_string(), content);
        }
        let manifest: serde_json::Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
        assert_eq!(manifest[0]["RepoTags"][0], "registry/case/x:1");
        assert_eq!(files[manifest[0]["Config"].as_str().unwrap()], image.config());
        assert_eq!(files[manifest[0]["Layers"][1].as_str().unwrap()], image.layers[1].blob);
        assert_eq!(files.len(), 4);
    }
}
