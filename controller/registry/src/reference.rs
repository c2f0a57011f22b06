//! Image names as people write them: `[registry[:port]/]repository[:tag][@digest]`.

use edgeloom_common::digest::Digest;
use edgeloom_common::registry::{RegistryHost, locate};

/// Lengths of the distribution specification: a repository in most registries, and a tag.
const REPOSITORY_MAX: usize = 255;
const TAG_MAX: usize = 128;

/// Where an image is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) registry: RegistryHost,
    pub(crate) repository: String,
    pub(crate) version: Version,
    /// Registry and repository as Docker takes them for a pull by digest.
    pub(crate) name: String,
}

/// Which image of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Version {
    Tag(String),
    /// A digest decides, whatever tag is beside it.
    Digest(Digest),
}

impl Reference {
    /// Reads a name; none if it is no image name.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        let slash = rest.rfind('/').map_or(0, |at| at + 1);
        let (name, tag) = match rest[slash..].rfind(':') {
            Some(colon) => (&rest[..slash + colon], &rest[slash + colon + 1..]),
            None => (rest, "latest"),
        };
        let (registry, repository) = locate(name)?;
        if !is_repository(&repository) || !is_tag(tag) {
            return None;
        }
        let version = match digest {
            Some(digest) => Version::Digest(digest.parse().ok()?),
            None => Version::Tag(tag.to_owned()),
        };
        Some(Self { registry, repository, version, name: name.to_owned() })
    }
}

/// Whether a text may be in a path as a repository's name.
pub(crate) fn is_repository(text: &str) -> bool {
    let part = |part: &str| {
        let sound = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
        !part.is_empty() && part.chars().all(sound) && !part.starts_with('.')
    };
    text.len() <= REPOSITORY_MAX && text.split('/').all(part)
}

/// Whether a text may be in a path as a tag.
pub(crate) fn is_tag(text: &str) -> bool {
    let sound = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=TAG_MAX).contains(&text.len()) && text.chars().all(sound) && !text.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_docker_reads_them() {
        let read = |text: &str| {
            let it = Reference::parse(text)?;
            let version = match it.version {
                Version::Tag(tag) => tag,
                Version::Digest(digest) => digest.to_string(),
            };
            Some([it.registry.api().to_owned(), it.repository, version, it.name])
        };
        let owned = |words: [&str; 4]| Some(words.map(str::to_owned));
        assert_eq!(read("10.0.0.1:5000/a/b:1"), owned(["10.0.0.1:5000", "a/b", "1", "10.0.0.1:5000/a/b"]));
        assert_eq!(read("redis"), owned(["registry-1.docker.io", "library/redis", "latest", "redis"]));
        let digest = Digest::of(b"x").to_string();
        for name in [format!("r.lan/x@{digest}"), format!("r.lan/x:1@{digest}")] {
            assert_eq!(read(&name), owned(["r.lan", "x", &digest, "r.lan/x"]));
        }
        for bad in
            ["", "A", "r.lan/../x", "r.lan/x:a b", "r.lan/x?y", "r.lan/x@sha256:ab", "r.lan//x", "r.lan/x:.."]
        {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
