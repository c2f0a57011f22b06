//! One pass: looks at every image, and removes as many as the disk asks for.

use super::choose::{DANGLING_MAX, Ground, is_wanted};
use super::pressure::Usage;
use super::{Collection, Collector, InForce, now_s};
use crate::engine::{EngineError, FoundImage};
use edgeloom_common::desired::{DesiredState, ImageRef};
use edgeloom_common::report::CollectedImage;
use edgeloom_common::units::Bytes;

impl Collector {
    /// Removes what has to go, and tells it.
    pub(super) async fn pass(&mut self, document: &InForce) -> Result<Collection, EngineError> {
        let Some(wanted) = document.borrow().clone() else { return Ok(Collection::default()) };
        self.pressure.ask(&self.settings.engine).await;
        let images = self.settings.engine.found_images().await?;
        let now_s = now_s();
        let uses = images.iter().map(|image| (image.id.clone(), image.used || is_wanted(&wanted, image)));
        self.uses.note(uses, now_s);
        let mut collection = Collection::default();
        let Some(mut usage) = self.pressure.usage(&self.settings.engine).await else { return Ok(collection) };
        let ground = Ground {
            document: &wanted,
            uses: &self.uses,
            scope: self.settings.images.scope,
            age_min_s: self.settings.age_min_s,
            now_s,
        };
        for image in ground.dangling(&images) {
            let why = format!("it has no name, and {DANGLING_MAX} newer images have none either");
            self.remove(image, (&mut usage, why), document, &mut collection).await;
        }
        if usage.is_high() {
            for image in ground.candidates(&images) {
                let idle_s = now_s.saturating_sub(self.uses.of(&image.id).unwrap_or(now_s));
                let why = format!("{usage}; it was not used for {}", span(idle_s));
                self.remove(image, (&mut usage, why), document, &mut collection).await;
                if usage.is_low() {
                    break;
                }
            }
        }
        if usage.is_high() {
            collection.problem = format!(
                "{usage}, and no image can go: each is in use, wanted, pinned, new, or named by others; remove something by hand, or see [images] of agent.toml"
            );
        }
        collection.is_tight = !usage.is_low();
        Ok(collection)
    }

    /// Tries it once; one that the document wants by now stays.
    async fn remove(
        &self,
        image: &FoundImage,
        (usage, why): (&mut Usage, String),
        document: &InForce,
        collection: &mut Collection,
    ) {
        let Some(wanted) = document.borrow().clone() else { return };
        if is_wanted(&wanted, image) {
            return;
        }
        let name = image.names()[0].to_owned();
        if let Err(error) = self.settings.engine.remove_image(image).await {
            tracing::warn!(image = name, %error, "an image is not removed");
            return;
        }
        let after = self.pressure.usage(&self.settings.engine).await.unwrap_or(*usage);
        let freed = Bytes(usage.used.0.saturating_sub(after.used.0));
        *usage = after;
        tracing::info!(image = name, %freed, why, "image removed");
        collection.let_go.extend(held_ready(&wanted, image));
        collection.removed.push(CollectedImage { image: name, freed, at_s: now_s(), why });
    }
}

fn held_ready<'a>(document: &'a DesiredState, image: &'a FoundImage) -> impl Iterator<Item = ImageRef> + 'a {
    document.prefetch.iter().map(|prefetch| &prefetch.image).filter(|wanted| image.is(wanted)).cloned()
}

/// In the largest unit that fits.
fn span(seconds: u64) -> String {
    match seconds {
        172_800.. => format!("{} days", seconds / 86_400),
        7_200.. => format!("{} hours", seconds / 3600),
        120.. => format!("{} minutes", seconds / 60),
        _ => format!("{seconds} s"),
    }
}
