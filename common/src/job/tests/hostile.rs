//! Documents that mean harm: floods, deep nesting, noise.

use super::{GOOD, refused};
use crate::job::{DOCUMENT_MAX_BYTES, Job, parse};
use proptest::prelude::*;
use std::fmt::Write;

#[test]
fn a_flood_of_problems_is_counted_not_told() {
    let mut text = String::from("kind: Job\nname: j\ntasks:\n  a:\n    image: i\n    outputs:\n");
    for index in 0..20_000 {
        writeln!(text, "      Unknown-{index}: 1KB").unwrap();
    }
    let problems = refused(&text);
    assert_eq!(problems.len(), 51);
    assert_eq!(problems[50].problem, "and 19950 further problems");
}

#[test]
fn hostile_shapes_of_full_size_end_in_a_refusal() {
    let size = DOCUMENT_MAX_BYTES;
    for unit in ["[", "{", "- ", "? ", "a: ", "a:\n ", "\"", "&a ", "*a ", "!", "a\n", "[a,", "{a: b, "] {
        assert!(!refused(&unit.repeat(size / unit.len())).is_empty(), "{unit:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(text in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Err(problems) = parse(&text) {
            prop_assert!(!problems.is_empty());
        }
    }

    #[test]
    fn a_damaged_document_is_read_or_refused_with_reasons(
        cuts in proptest::collection::vec((0..GOOD.len(), "[-a-z:{}\\[\\],\"'&*!?#0-9 \n]{0,3}"), 1..6),
    ) {
        let mut text = GOOD.to_owned();
        for (at, insert) in cuts {
            text.replace_range(at.min(text.len())..(at + 1).min(text.len()), &insert);
        }
        match parse(text.as_bytes()) {
            Ok(job) => {
                let wire = serde_json::to_string(&job).unwrap();
                prop_assert_eq!(serde_json::from_str::<Job>(&wire).unwrap(), job);
            }
            Err(problems) => prop_assert!(problems.iter().all(|item| item.line <= 1 + text.lines().count())),
        }
        prop_assert!(true);
    }
}
