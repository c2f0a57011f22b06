//! Reads the text back as strictly as its specification has it.

use std::collections::BTreeMap;

/// Families by name: their type, and samples by name with labels.
pub(crate) type Families = BTreeMap<String, (String, BTreeMap<String, f64>)>;

/// Panics where the text breaks a rule.
pub(crate) fn read(text: &str) -> Families {
    assert!(text.ends_with('\n'), "the last line has no end");
    let mut families = Families::new();
    let mut current = String::new();
    let mut helped = None;
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            helped = help.split_once(' ').map(|(name, _)| name.to_owned());
        } else if let Some(of) = line.strip_prefix("# TYPE ") {
            let (name, kind) = of.split_once(' ').unwrap();
            assert_eq!(helped.as_deref(), Some(name), "help before type");
            let twice = families.insert(name.to_owned(), (kind.to_owned(), BTreeMap::new()));
            assert!(twice.is_none(), "{name} is there twice");
            name.clone_into(&mut current);
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let (kind, samples) = families.get_mut(&current).expect("samples follow their type");
            let name = sample.split('{').next().unwrap();
            let suffix = name.strip_prefix(&current).unwrap_or_else(|| panic!("{name} below {current}"));
            let suffixes: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(suffixes.contains(&suffix), "{line}");
            assert!(kind != "counter" || current.ends_with("_total"), "{current}");
            assert!(name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_'), "{name}");
            let twice = samples.insert(sample.to_owned(), value.parse().unwrap());
            assert!(twice.is_none(), "{sample} is there twice");
        }
    }
    families.values().for_each(|(kind, samples)| cumulative(kind, samples));
    families
}

/// Buckets rise, and the last one has all.
fn cumulative(kind: &str, samples: &BTreeMap<String, f64>) {
    if kind != "histogram" {
        return;
    }
    for (sample, count) in samples.iter().filter(|(sample, _)| sample.contains("_count")) {
        let (name, labels) = sample.split_once("_count").unwrap();
        let labels = labels.trim_matches(['{', '}']);
        let of_it = |sample: &&String| sample.starts_with(&format!("{name}_bucket{{{labels}"));
        let mut buckets: Vec<(f64, f64)> = samples
            .iter()
            .filter(|(sample, _)| of_it(sample))
            .map(|(sample, count)| {
                let bound = sample.split("le=\"").nth(1).unwrap().trim_end_matches("\"}");
                (bound.parse().unwrap(), *count)
            })
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(buckets.is_sorted_by(|a, b| a.1 <= b.1), "{buckets:?}");
        assert_eq!(buckets.last().unwrap(), &(f64::INFINITY, *count));
    }
}
