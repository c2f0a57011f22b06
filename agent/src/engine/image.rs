//! An image as the engine has it, and whose it is.

use edgeloom_common::desired::ImageRef;
use edgeloom_common::units::Bytes;

/// The agent's own tags begin with this.
pub(crate) const OWN_TAG: &str = "edgeloom-";
/// How Docker writes that there is no name.
const NONE: &str = "<none>";

/// An image that is not just a step of another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FoundImage {
    pub(crate) id: String,
    /// `repository:tag`.
    pub(crate) tags: Vec<String>,
    /// `repository@digest`.
    pub(crate) digests: Vec<String>,
    /// Unpacked, with what it shares with others.
    pub(crate) bytes: Bytes,
    pub(crate) made_s: i64,
    /// A container was made from it, running or not.
    pub(crate) used: bool,
}

impl FoundImage {
    /// It is what a document names so.
    pub(crate) fn is(&self, image: &ImageRef) -> bool {
        let by_digest =
            |name: &String| name.rsplit_once('@').is_some_and(|(_, digest)| digest == image.digest);
        let own = super::docker::own_name(image);
        self.id == image.digest
            || self.digests.iter().any(by_digest)
            || own.is_some_and(|own| self.tags.contains(&own))
    }

    /// Somebody gave it a name that is not ours.
    pub(crate) fn is_named_by_others(&self) -> bool {
        let tag = |name: &String| name.rsplit_once(':').is_some_and(|(_, tag)| tag.starts_with(OWN_TAG));
        self.tags.iter().any(|name| !tag(name))
    }

    /// Nothing leads to it but its id.
    pub(crate) fn is_dangling(&self) -> bool {
        self.tags.is_empty() && self.digests.is_empty()
    }

    /// All that leads to it: while there is one, it stays.
    pub(crate) fn names(&self) -> Vec<&str> {
        let names: Vec<&str> = self.tags.iter().chain(&self.digests).map(String::as_str).collect();
        if names.is_empty() { vec![&self.id] } else { names }
    }
}

/// Without the words for no name.
pub(crate) fn real_names(names: Vec<String>) -> Vec<String> {
    names.into_iter().filter(|name| !name.starts_with(NONE)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_known_by_digest_by_our_tag_and_by_id() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let image =
            ImageRef { repository: "r:5000/x".to_owned(), digest: digest.clone(), name: "x".to_owned() };
        let found = |tags: &[&str], digests: &[String]| FoundImage {
            id: "sha256:id".to_owned(),
            tags: tags.iter().map(ToString::to_string).collect(),
            digests: digests.to_vec(),
            ..FoundImage::default()
        };
        assert!(found(&[], &[format!("elsewhere/x@{digest}")]).is(&image));
        let own = super::super::docker::own_name(&image).unwrap();
        assert!(found(&[&own], &[]).is(&image) && !found(&[&own], &[]).is_named_by_others());
        let loaded = ImageRef { repository: String::new(), digest: "sha256:id".to_owned(), ..image.clone() };
        assert!(found(&[], &[]).is(&loaded) && !found(&[], &[]).is(&image));
        assert!(found(&[&own, "r:5000/x:1"], &[]).is_named_by_others());
        assert!(found(&[], &[]).is_dangling() && found(&[], &[]).names() == ["sha256:id"]);
    }

    #[test]
    fn no_name_is_no_name() {
        let listed = ["<none>:<none>", "r/x:1"].map(str::to_owned).to_vec();
        assert_eq!(real_names(listed), ["r/x:1"]);
    }
}
