//! `[registries]`: which are spoken to in the clear, which are watched and how often.

use super::section::Section;
use edgeloom_cluster::Registries;
use edgeloom_common::registry::RegistryHost;
use std::time::Duration;

/// Bounds of the period, in seconds: below it is a burden, above it is no watch.
const PERIOD_MIN_S: u64 = 1;
const PERIOD_MAX_S: u64 = 3600;

/// Takes both tables; what is wrong is noted in them.
pub(super) fn read(registries: &mut Section, watch: &mut Section) -> Registries {
    let insecure = registries.texts("insecure");
    let default = Registries::default();
    let mut watched: Vec<RegistryHost> = Vec::new();
    for text in watch.texts("registries") {
        match text.parse() {
            Ok(host) => watched.push(host),
            Err(error) => watch.refuse("registries", error.to_string()),
        }
    }
    // An insecure one that does not read is refused when it is asked for, by its name.
    watched.extend(insecure.iter().filter_map(|text| text.parse().ok()));
    let period = match watch.has_any(&["period"]) {
        true => period(watch).unwrap_or(default.period),
        false => default.period,
    };
    Registries { insecure, watched, period }
}

fn period(watch: &mut Section) -> Option<Duration> {
    let text = watch.text("period", "a time such as \"10s\"")?;
    let seconds = text.strip_suffix('s').and_then(|number| number.parse().ok());
    let seconds = seconds.filter(|seconds| (PERIOD_MIN_S..=PERIOD_MAX_S).contains(seconds));
    if seconds.is_none() {
        let problem =
            format!("{text:?} is no time from {PERIOD_MIN_S}s to {PERIOD_MAX_S}s; write it as \"10s\"");
        watch.refuse("period", problem);
    }
    seconds.map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registries(text: &str) -> (Registries, Vec<String>) {
        let mut root = Section::root(text.parse().unwrap());
        let mut registries = root.optional_section("registries");
        let mut watch = registries.optional_section("watch");
        let read = read(&mut registries, &mut watch);
        let problems = Section::finish([root, registries, watch]);
        (read, problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn insecure_ones_are_watched_too() {
        let text = "[registries]\ninsecure = [\"10.0.0.1:5000\"]\n[registries.watch]\n\
                    registries = [\"reg.lan\"]\nperiod = \"30s\"";
        let (read, problems) = registries(text);
        let watched: Vec<_> = read.watched.iter().map(ToString::to_string).collect();
        assert_eq!((watched, problems), (vec!["reg.lan".to_owned(), "10.0.0.1:5000".to_owned()], Vec::new()));
        assert_eq!(read.period, Duration::from_secs(30));
        assert_eq!(registries("").0.period, Registries::default().period);
    }

    #[test]
    fn what_does_not_read_is_named() {
        let (_, problems) =
            registries("[registries.watch]\nregistries = [\"http://x\"]\nperiod = \"0s\"\nperoid = 1");
        let fields: Vec<_> = problems.iter().filter_map(|it| it.split(": ").next()).collect();
        assert_eq!(
            fields,
            ["registries.watch.registries", "registries.watch.period", "registries.watch.peroid"]
        );
        for bad in ["10", "10m", "-1s", "99999s", ""] {
            let (_, problems) = registries(&format!("[registries.watch]\nperiod = \"{bad}\""));
            assert_eq!(problems.len(), 1, "{bad}");
        }
    }
}
