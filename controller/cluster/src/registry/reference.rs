//! Image names as people write them: `[registry[:port]/]repository[:tag][@digest]`.
//!

use edgeloom_common::registry::locate;

/// Where an image is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// Host and port.
    pub(crate) registry: String,
    pub(crate) repository: String,
    /// Tag or digest.
    pub(crate) version: String,
    /// Registry and repository as Docker takes them for a pull by digest.
    pub(crate) name: String,
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
        let version = digest.unwrap_or(tag);
        let (host, repository) = locate(name)?;
        let path = |text: &str| {
            !text.is_empty()
                && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-/".contains(c))
        };
        let word = |text: &str| {
            !text.is_empty()
                && text.len() <= 136
                && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-:".contains(c))
        };
        if !path(name.rsplit('/').next().unwrap_or(""))
            || !path(&repository)
            || repository.contains("..")
            || !word(version)
        {
            return None;
        }
        Some(Self {
            registry: host.api().to_owned(),
            repository,
            version: version.to_owned(),
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_docker_reads_them() {
        let read = |text| Reference::parse(text).map(|r| (r.registry, r.repository, r.version, r.name));
        let owned = |a: [&str; 4]| Some(a.map(str::to_owned).into());
        assert_eq!(read("10.0.0.1:5000/a/b:1"), owned(["10.0.0.1:5000", "a/b", "1", "10.0.0.1:5000/a/b"]));
        assert_eq!(read("redis"), owned(["registry-1.docker.io", "library/redis", "latest", "redis"]));
        assert_eq!(read("r.lan/x@sha256:ab"), owned(["r.lan", "x", "sha256:ab", "r.lan/x"]));
        for bad in ["", "A", "r.lan/../x", "r.lan/x:a b", "r.lan/x?y"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
