//! The section [scoring]: bytes from which scores go up, for clusters whose images are small.

use super::section::Section;
use edgeloom_common::units::Bytes;
use edgeloom_sched::scoring::{Condition, Locality, Room, Scoring};

/// What is written in place of the defaults; problems are noted.
pub(super) fn read(section: &mut Section) -> Scoring {
    let mut scoring = Scoring::default();
    if let Some(wanted) = size(section, "local_above") {
        for condition in &mut scoring.layers.conditions {
            if let Condition::LocalAbove(bytes) = condition {
                *bytes = wanted;
            }
        }
    }
    scoring.locality = locality(section).unwrap_or(scoring.locality);
    scoring.room = Room {
        fill: size(section, "room_fill").unwrap_or(scoring.room.fill),
        imbalance: size(section, "room_imbalance").unwrap_or(scoring.room.imbalance),
    };
    scoring
}

fn size(section: &mut Section, key: &str) -> Option<Bytes> {
    if !section.has_any(&[key]) {
        return None;
    }
    section.parsed(key, "a size such as \"10MB\"")
}

fn locality(section: &mut Section) -> Option<Locality> {
    let texts = section.texts("locality");
    if texts.is_empty() {
        return None;
    }
    let sizes: Option<Vec<Bytes>> = texts.iter().map(|text| text.parse().ok()).collect();
    match sizes.as_deref() {
        Some([least, most]) if least < most => Some(Locality { least: *least, most: *most }),
        _ => {
            let remedy = "write two sizes, the smaller first: [\"23MiB\", \"1000MiB\"]";
            section.refuse("locality", format!("{texts:?} is no range; {remedy}"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> (Scoring, Vec<String>) {
        let mut section = Section::root(text.parse().unwrap());
        let scoring = read(&mut section);
        let problems = Section::finish([section]).iter().map(ToString::to_string).collect();
        (scoring, problems)
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        assert_eq!(read_text(""), (Scoring::default(), Vec::new()));
    }

    #[test]
    fn sizes_replace_the_defaults() {
        let text = "local_above = \"250KB\"\nlocality = [\"575KiB\", \"25MiB\"]\nroom_fill = \"1MB\"\nroom_imbalance = \"4MB\"";
        let (scoring, problems) = read_text(text);
        assert_eq!(problems, Vec::<String>::new());
        assert!(scoring.layers.conditions.contains(&Condition::LocalAbove(Bytes(250_000))));
        assert_eq!(scoring.layers.conditions.len(), Scoring::default().layers.conditions.len());
        assert_eq!(scoring.locality, Locality { least: Bytes(575 << 10), most: Bytes(25 << 20) });
        assert_eq!(scoring.room, Room { fill: Bytes(1_000_000), imbalance: Bytes(4_000_000) });
    }

    #[test]
    fn what_is_no_size_or_no_range_is_refused() {
        for text in [
            "local_above = \"much\"",
            "locality = [\"2MB\"]",
            "locality = [\"2MB\", \"1MB\"]",
            "room = \"1MB\"",
        ] {
            assert_eq!(read_text(text).1.len(), 1, "{text}");
        }
    }
}
