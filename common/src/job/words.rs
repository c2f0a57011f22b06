//! Short texts with a grammar of their own: image references, constraints, labels, item rates.

use super::problems::excerpt;
use super::{Attribute, Constraint};
use crate::digest::Digest;
use crate::ids::NodeId;
use std::str::FromStr;

/// Why a word does not read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum WordError {
    #[error("{text:?} is no image reference: its {part} is malformed")]
    Image { text: String, part: &'static str },
    #[error("{text:?} holds neither `==` nor `!=`")]
    Comparison { text: String },
    #[error("{attribute:?} is no attribute of a node")]
    Attribute { attribute: String },
    #[error("{value:?} can't be compared with {attribute}")]
    Compared { value: String, attribute: &'static str },
    #[error("{text:?} is no text of a label")]
    Label { text: String },
    #[error("{text:?} is no rate of items: it has to end in `/s`")]
    RateUnit { text: String },
    #[error("{text:?} is no time: it has to be a whole number with `s`, `m`, `h` or `d`")]
    Seconds { text: String },
    #[error("{text:?} is no rate of items: its number has to be above 0 and at most {max}", max = RATE_MAX)]
    RateNumber { text: String },
}

/// The fastest source, in items a second.
const RATE_MAX: f64 = 1e6;

/// Items a second, written `30/s` or `0.5/s`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PerSecond(pub(super) f64);

impl FromStr for PerSecond {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        let number = text.trim().strip_suffix("/s");
        let number = number.ok_or_else(|| WordError::RateUnit { text: excerpt(text) })?.trim_end();
        let plain = |c: char| c.is_ascii_digit() || c == '.';
        match number.parse::<f64>() {
            Ok(rate) if rate > 0.0 && rate <= RATE_MAX && number.chars().all(plain) => Ok(Self(rate)),
            _ => Err(WordError::RateNumber { text: excerpt(text) }),
        }
    }
}

/// A time in whole seconds, written `30s`, `5m`, `2h` or `1d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seconds(pub(super) u32);

impl FromStr for Seconds {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];
        let read = |(unit, seconds): (char, u32)| {
            let digits = text.trim().strip_suffix(unit)?.trim_end();
            let plain = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
            plain.then(|| digits.parse::<u32>().ok())??.checked_mul(seconds)
        };
        let seconds = units.into_iter().find_map(read);
        seconds.map(Self).ok_or_else(|| WordError::Seconds { text: excerpt(text) })
    }
}

/// An image reference that a registry could hold.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ImageName(pub(super) String);

impl FromStr for ImageName {
    type Err = WordError;
    /// The grammar of `distribution/reference`: `[host[:port]/]repository[:tag][@digest]`.
    fn from_str(text: &str) -> Result<Self, WordError> {
        let refuse = |part| Err(WordError::Image { text: excerpt(text), part });
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        let (name, tag) = match rest.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (rest, None),
        };
        let (host, repository) = match name.split_once('/') {
            Some((host, repository)) if host.contains(['.', ':']) || host == "localhost" => {
                (Some(host), repository)
            }
            _ => (None, name),
        };
        if host.is_some_and(|host| !is_host(host)) {
            return refuse("registry");
        }
        if name.len() > 255 || !repository.split('/').all(is_component) {
            return refuse("repository");
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return refuse("tag");
        }
        if digest.is_some_and(|digest| digest.parse::<Digest>().is_err()) {
            return refuse("digest");
        }
        Ok(Self(text.to_owned()))
    }
}

/// `name[:port]`.
pub(crate) fn is_host(host: &str) -> bool {
    let (name, port) = host.split_once(':').unwrap_or((host, "1"));
    let label = |label: &str| {
        !label.is_empty()
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.split('.').all(label) && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Lower-case letters and digits, parted by `.`, `_`, `__` or hyphens.
fn is_component(component: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    component.starts_with(alphanumeric)
        && component.ends_with(alphanumeric)
        && component
            .split(alphanumeric)
            .all(|between| matches!(between, "" | "." | "_" | "__") || between.chars().all(|c| c == '-'))
}

fn is_tag(tag: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    tag.len() <= 128 && tag.starts_with(word) && tag.chars().all(|c| word(c) || c == '.' || c == '-')
}

/// A constraint as a user writes it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Condition(pub(super) Constraint);

impl FromStr for Condition {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        let (attribute, value, equal) = match (text.split_once("=="), text.split_once("!=")) {
            (Some((attribute, value)), None) => (attribute.trim(), value.trim(), true),
            (None, Some((attribute, value))) => (attribute.trim(), value.trim(), false),
            _ => return Err(WordError::Comparison { text: excerpt(text) }),
        };
        let Topology(attribute) = attribute.parse()?;
        let compared = match &attribute {
            Attribute::Name if value.parse::<NodeId>().is_err() => Some("a node's name"),
            Attribute::Label(_) if !is_label_text(value) => Some("a label"),
            _ => None,
        };
        match compared {
            Some(attribute) => Err(WordError::Compared { value: excerpt(value), attribute }),
            None => Ok(Self(Constraint { attribute, equal, value: value.to_owned() })),
        }
    }
}

/// What nodes are compared by: `node.name` or `node.labels.zone`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Topology(pub(super) Attribute);

impl FromStr for Topology {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        match text.strip_prefix("node.labels.") {
            Some(key) if is_label_text(key) => Ok(Self(Attribute::Label(key.to_owned()))),
            None if text == "node.name" => Ok(Self(Attribute::Name)),
            _ => Err(WordError::Attribute { attribute: excerpt(text) }),
        }
    }
}

/// A key or a value of a label.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LabelText(pub(super) String);

impl FromStr for LabelText {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        let refuse = || WordError::Label { text: excerpt(text) };
        is_label_text(text).then(|| Self(text.to_owned())).ok_or_else(refuse)
    }
}

/// Keys and values of labels: 1 to 63 letters, digits and `. _ - /`.
pub(super) fn is_label_text(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    (1..=63).contains(&text.len()) && text.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_reference_follows_the_registry_grammar() {
        let digest = format!("reg.lan/a@sha256:{}", "0".repeat(64));
        for good in
            ["a", "vision/detect:1.2", "10.60.0.1:5000/vision/detect:1.0", "localhost/a_b/c--d", &digest]
        {
            assert!(good.parse::<ImageName>().is_ok(), "{good}");
        }
        let parts = [
            ("", "repository"),
            ("a b", "repository"),
            ("Vision/detect", "repository"),
            ("a//b", "repository"),
            ("a___b", "repository"),
            ("reg.lan:99999/a", "registry"),
            ("-reg.lan/a", "registry"),
            ("a:", "tag"),
            ("a:-1", "tag"),
            ("a@sha256:12", "digest"),
            ("a@sha512:12", "digest"),
            ("a@b@c", "digest"),
        ];
        for (bad, wanted) in parts {
            let refused = bad.parse::<ImageName>();
            assert!(matches!(refused, Err(WordError::Image { part, .. }) if part == wanted), "{bad}");
        }
    }

    #[test]
    fn a_rate_of_items_needs_its_unit_and_a_plain_number() {
        assert_eq!("30/s".parse(), Ok(PerSecond(30.0)));
        assert_eq!("0.5 /s".parse(), Ok(PerSecond(0.5)));
        for bad in ["30", "30fps", "30/min"] {
            assert!(matches!(bad.parse::<PerSecond>(), Err(WordError::RateUnit { .. })), "{bad}");
        }
        for bad in ["/s", "0/s", "-1/s", "inf/s", "NaN/s", "1e3/s", "2000000/s"] {
            assert!(matches!(bad.parse::<PerSecond>(), Err(WordError::RateNumber { .. })), "{bad}");
        }
    }

    #[test]
    fn a_time_is_a_whole_number_with_its_unit() {
        for (good, seconds) in [("30s", 30), ("5m", 300), ("2 h", 7_200), ("1d", 86_400), ("0s", 0)] {
            assert_eq!(good.parse(), Ok(Seconds(seconds)), "{good}");
        }
        for bad in ["30", "s", "-1s", "+1s", "1.5m", "30 sec", "1m30s", "99999999999s", "99999999d"] {
            assert!(matches!(bad.parse::<Seconds>(), Err(WordError::Seconds { .. })), "{bad}");
        }
    }

    #[test]
    fn a_constraint_names_an_attribute_a_comparison_and_a_value() {
        let wanted = Constraint {
            attribute: Attribute::Label("gpu".to_owned()),
            equal: false,
            value: "true".to_owned(),
        };
        assert_eq!("node.labels.gpu != true".parse(), Ok(Condition(wanted)));
        let wanted = Constraint { attribute: Attribute::Name, equal: true, value: "n1".to_owned() };
        assert_eq!("node.name==n1".parse(), Ok(Condition(wanted)));
        for bad in ["node.name", "node.name = n1", "node.name == a != b"] {
            assert!(matches!(bad.parse::<Condition>(), Err(WordError::Comparison { .. })), "{bad}");
        }
        for bad in ["node.hostname == a", "node.labels. == a", "node.labels == a", "== a"] {
            assert!(matches!(bad.parse::<Condition>(), Err(WordError::Attribute { .. })), "{bad}");
        }
        for bad in ["node.name == N1", "node.labels.a ==", "node.labels.a == b c"] {
            assert!(matches!(bad.parse::<Condition>(), Err(WordError::Compared { .. })), "{bad}");
        }
    }
}
