use super::*;
use crate::cache::Cache;
use crate::error::RegistryError;
use crate::manifest::{Blob, Layer, Platform};
use proptest::prelude::*;

/// An image of some of ten layers.
fn found(number: u8) -> Found {
    let digest = |kind: &str, number: u8| Digest::of(format!("{kind} {number}").as_bytes());
    let layer = |layer: u8| Layer {
        blob: Blob { digest: digest("blob", layer), size_bytes: u64::from(layer) },
        diff_id: digest("diff", layer),
    };
    let layers = (0..10).filter(|bit| (u32::from(number) * 37) >> bit & 1 == 1).map(layer).collect();
    let config = Blob { digest: digest("config", number), size_bytes: 1 };
    let platforms = vec![Platform { architecture: "arm64".to_owned(), config, layers }];
    let etag = number.is_multiple_of(3).then(|| format!("\"{number}\""));
    Found { digest: digest("manifest", number), etag, platforms, flaw: None }
}

fn place(number: u8) -> Place {
    let host = format!("reg-{}.lan", number % 2).parse().unwrap();
    Place { host, repository: format!("app-{}", number % 3).into(), tag: number.to_string().into() }
}

/// What is shown, without registries of which nothing is left.
fn shown(catalogue: &Catalogue) -> String {
    format!("{:#?}", catalogue.views(""))
}

/// What a cache of these lines holds.
fn restored(lines: &[u8]) -> Catalogue {
    let folder = tempfile::tempdir().unwrap();
    let mut cache = Cache::open(folder.path()).unwrap();
    cache.append(lines).unwrap();
    let mut catalogue = Catalogue::default();
    catalogue.restore(cache.records().unwrap());
    catalogue
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_cache_holds_what_the_catalogue_held(steps in prop::collection::vec((0_u8..8, 0_u8..12), 1..60)) {
        let mut catalogue = Catalogue::default().with_cache();
        let mut lines = Vec::new();
        for (tag, image) in steps {
            match image {
                10.. => catalogue.remove(&place(tag)),
                image => drop(catalogue.found(&place(tag), found(image), 1)),
            }
            lines.extend(catalogue.take_lines());
        }
        prop_assert_eq!(shown(&restored(&lines)), shown(&catalogue));
        prop_assert_eq!(shown(&restored(&catalogue.all_lines())), shown(&catalogue));
        let tags: BTreeSet<_> = catalogue.hosts.keys().flat_map(|host| catalogue.places(host)).collect();
        for place in &tags {
            let entity = catalogue.tag(place).unwrap().entity().unwrap();
            prop_assert!(entity.starts_with('"'));
            let again = restored(&lines).tag(place).and_then(Tag::entity);
            prop_assert_eq!(again, Some(entity));
        }
        prop_assert_eq!(catalogue.hosts.values().map(|host| host.tags).sum::<usize>(), tags.len());
    }
}

#[test]
fn a_tag_that_fails_keeps_what_was_known_and_is_learnt_anew() {
    let mut catalogue = Catalogue::default();
    assert_eq!(catalogue.found(&place(1), found(1), 5), Outcome::Changed);
    catalogue.fail(&place(1), "gone");
    let tag = catalogue.tag(&place(1)).unwrap();
    assert_eq!((tag.digest, tag.seen_ms, tag.entity()), (Some(found(1).digest), 5, None));
    assert_eq!(catalogue.confirm(&place(1), found(1).digest, 6), Outcome::Same);
    assert!(catalogue.tag(&place(1)).unwrap().problem.is_none());
    assert_eq!(catalogue.confirm(&place(1), found(2).digest, 7), Outcome::Failed, "of an image nobody saw");
}

#[test]
fn an_image_of_which_a_part_is_broken_is_learnt_anew_after_a_restart() {
    let flaw = Some(RegistryError::Name { image: "its manifest for arm64".to_owned() });
    let mut catalogue = Catalogue::default().with_cache();
    catalogue.found(&place(1), Found { flaw, ..found(1) }, 5);
    catalogue.found(&place(2), found(2), 5);
    let tag = catalogue.tag(&place(1)).unwrap();
    assert!(tag.problem.is_some() && tag.digest.is_some() && !catalogue.table.is_whole(&found(1).digest));
    for lines in [catalogue.take_lines(), catalogue.all_lines()] {
        let restored = restored(&lines);
        assert!(restored.tag(&place(1)).is_none_or(|tag| tag.digest.is_none()));
        assert_eq!(restored.table.platforms(&found(2).digest), Some(found(2).platforms));
    }
    catalogue.found(&place(1), found(1), 6);
    assert!(
        catalogue.table.is_whole(&found(1).digest) && catalogue.tag(&place(1)).unwrap().problem.is_none()
    );
}
