//! Which images go, and in which order. Pure.
//!
//! Spared whatever happens: what a container has, what the document wants or pins, what came a moment ago (a
//! measurement may be about to begin with it), and, as the node is set, what others have named.

use super::used::LastUse;
use crate::config::Scope;
use crate::engine::FoundImage;
use edgeloom_common::desired::DesiredState;

/// As the kubelet's `imageMinimumGCAge`.
pub(crate) const AGE_MIN_S: u64 = 120;
/// Images without any name that are left alone: the steps of somebody's work at hand.
pub(crate) const DANGLING_MAX: usize = 16;

/// What a choice is made by.
pub(crate) struct Ground<'a> {
    pub(crate) document: &'a DesiredState,
    pub(crate) uses: &'a LastUse,
    pub(crate) scope: Scope,
    pub(crate) age_min_s: u64,
    pub(crate) now_s: u64,
}

impl Ground<'_> {
    /// All that may go, the one not used for longest first.
    pub(crate) fn candidates<'i>(&self, images: &'i [FoundImage]) -> Vec<&'i FoundImage> {
        let mut chosen: Vec<_> = images.iter().filter(|image| self.may_go(image)).collect();
        chosen.sort_by_key(|image| (self.uses.of(&image.id), image.made_s, &image.id));
        chosen
    }

    /// Those without a name beyond the newest few, oldest first.
    pub(crate) fn dangling<'i>(&self, images: &'i [FoundImage]) -> Vec<&'i FoundImage> {
        let mut nameless: Vec<_> = images.iter().filter(|image| image.is_dangling()).collect();
        nameless.sort_by_key(|image| (image.made_s, &image.id));
        let beyond = nameless.len().saturating_sub(DANGLING_MAX);
        nameless.into_iter().filter(|image| self.may_go(image)).take(beyond).collect()
    }

    fn may_go(&self, image: &FoundImage) -> bool {
        let old = self.uses.of(&image.id).is_some_and(|used_s| used_s + self.age_min_s <= self.now_s);
        let others = self.scope == Scope::Own && image.is_named_by_others();
        old && !others && !image.used && !is_wanted(self.document, image)
    }
}

/// The document names it, or pins it.
pub(crate) fn is_wanted(document: &DesiredState, image: &FoundImage) -> bool {
    let containers = document.containers.iter().map(|container| &container.image);
    let pinned = document.prefetch.iter().filter(|prefetch| prefetch.pinned).map(|prefetch| &prefetch.image);
    document.images.iter().chain(containers).chain(pinned).any(|wanted| image.is(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fake::{document, spec};
    use edgeloom_common::desired::{ImageRef, Prefetch};

    const NOW_S: u64 = 10_000;

    fn image(name: &str) -> ImageRef {
        ImageRef { repository: format!("r/{name}"), digest: format!("sha256:{name}"), name: name.to_owned() }
    }

    fn found(name: &str) -> FoundImage {
        FoundImage {
            id: format!("id-{name}"),
            digests: vec![format!("r/{name}@sha256:{name}")],
            ..FoundImage::default()
        }
    }

    fn chosen(document: &DesiredState, images: &[(FoundImage, u64)], scope: Scope) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let mut uses = LastUse::open(folder.path(), 0);
        let mut times: Vec<u64> = images.iter().map(|(_, used_s)| *used_s).collect();
        times.sort_unstable();
        for now_s in times {
            let here = images.iter().filter(|(_, used_s)| *used_s <= now_s);
            uses.note(here.map(|(image, _)| (image.id.clone(), image.used)), now_s);
        }
        let images: Vec<FoundImage> = images.iter().map(|(image, _)| image.clone()).collect();
        let ground = Ground { document, uses: &uses, scope, age_min_s: AGE_MIN_S, now_s: NOW_S };
        ground.candidates(&images).into_iter().map(|image| image.id.clone()).collect()
    }

    #[test]
    fn what_runs_is_assigned_pinned_or_new_stays_and_the_least_used_goes_first() {
        let mut wanted = document(1, vec![spec("t", "h")]);
        wanted.containers[0].image = image("run");
        wanted.images = vec![image("assigned")];
        wanted.prefetch = vec![
            Prefetch { image: image("pinned"), pinned: true },
            Prefetch { image: image("unpinned"), pinned: false },
        ];
        let used = FoundImage { used: true, ..found("foreign-runs") };
        let named = FoundImage { tags: vec!["r/named:1".to_owned()], ..found("named") };
        let images = [
            (found("late"), 500),
            (found("early"), 100),
            (found("run"), 1),
            (found("assigned"), 1),
            (found("pinned"), 1),
            (found("unpinned"), 300),
            (used, 1),
            (named, 50),
            (found("new"), NOW_S - AGE_MIN_S + 1),
        ];
        assert_eq!(chosen(&wanted, &images, Scope::Own), ["id-early", "id-unpinned", "id-late"]);
        let all = chosen(&wanted, &images, Scope::All);
        assert_eq!(all, ["id-named", "id-early", "id-unpinned", "id-late"]);
    }

    #[test]
    fn what_came_or_was_used_a_moment_ago_waits_for_its_next_task() {
        let (document, folder) = (document(1, vec![]), tempfile::tempdir().unwrap());
        let mut uses = LastUse::open(folder.path(), 0);
        // A task of a batch has ended, an image has come ahead, one is only known by the store that it came through.
        let passing = ImageRef { repository: "127.0.0.1:7119/pull/ab".to_owned(), ..image("passing") };
        let images = [found("batch"), found("ahead"), found("passing")];
        uses.note([("id-batch".to_owned(), true)].into_iter(), NOW_S - 600);
        uses.note(images.iter().map(|image| (image.id.clone(), false)), NOW_S - 1);
        let at = |now_s, document| {
            let ground = Ground { document, uses: &uses, scope: Scope::Own, age_min_s: AGE_MIN_S, now_s };
            ground.candidates(&images).len()
        };
        assert_eq!((at(NOW_S, &document), at(NOW_S + AGE_MIN_S, &document)), (0, 3));
        let assigned = DesiredState { images: vec![passing, image("batch")], ..document.clone() };
        assert_eq!(at(NOW_S + AGE_MIN_S, &assigned), 1, "an image is known by its digest, whatever its name");
    }

    #[test]
    fn of_images_without_a_name_only_the_newest_few_stay() {
        let (document, folder) = (document(1, vec![]), tempfile::tempdir().unwrap());
        let nameless = |at: usize| FoundImage {
            id: format!("{at:02}"),
            made_s: i64::try_from(at).unwrap(),
            used: at == 0,
            ..FoundImage::default()
        };
        let images: Vec<_> = (0..DANGLING_MAX + 3).map(nameless).collect();
        let mut uses = LastUse::open(folder.path(), 0);
        uses.note(images.iter().map(|image| (image.id.clone(), image.used)), 1);
        let ground = Ground {
            document: &document,
            uses: &uses,
            scope: Scope::Own,
            age_min_s: AGE_MIN_S,
            now_s: NOW_S,
        };
        let ids: Vec<_> = ground.dangling(&images).into_iter().map(|image| image.id.as_str()).collect();
        assert_eq!(ids, ["01", "02", "03"]);
        assert!(ground.dangling(&images[..DANGLING_MAX]).is_empty());
    }
}
