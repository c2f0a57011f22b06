//! The handle's part for images to hold ready.

use super::Cluster;
use crate::error::PrefetchError;
use edgeloom_common::prefetch::{Hold, PrefetchRequest, PrefetchView};

impl Cluster {
    /// Has nodes fetch an image ahead of need, or lets go of it. Its name is resolved now, once more each time.
    pub async fn prefetch(&self, request: PrefetchRequest) -> Result<PrefetchView, PrefetchError> {
        let PrefetchRequest { image, on, hold } = request;
        let done = if hold == Hold::Released {
            self.ask(move |owner| owner.release(image)).await
        } else {
            let login = self.login_for(&image).await;
            let image = self.registry.resolve(&image, login.as_ref()).await?.reference;
            self.ask(move |owner| owner.prefetch(image, on, hold)).await
        };
        done.unwrap_or(Err(PrefetchError::Unavailable))
    }

    /// Every image that is held ready.
    pub async fn prefetched(&self) -> Vec<PrefetchView> {
        self.ask(|owner| owner.prefetched()).await.unwrap_or_default()
    }
}
