//! Downloads under way: one a blob, however many read it.
//!
//! A download writes to the store and tells how far it is; readers follow in the same file. It stops when the
//! last reader has gone, and what came so far stays.

use crate::CHUNK_BYTES;
use crate::failure::{Blame, Failure, FetchError, SILENCE_MAX};
use crate::http::HttpError;
use crate::pace::Toll;
use crate::reader::{Check, Progress, Reader};
use crate::sources::{Place, Sources};
use crate::store::{Partial, Store};
use crate::ticket::Admitted;
use edgeloom_common::digest::{Digest, Hash};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_RANGE};
use hyper::{Response, StatusCode};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tokio::time::timeout;

/// Attempts of the registry in a row that bring not one byte.
const ATTEMPTS_MAX: u32 = 4;
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Entry {
    progress: watch::Receiver<Progress>,
    readers: Weak<()>,
}

/// All downloads.
#[derive(Debug, Clone)]
pub(crate) struct Flights {
    store: Store,
    sources: Sources,
    running: Arc<Mutex<HashMap<Digest, Entry>>>,
}

impl Flights {
    pub(crate) fn new(store: Store, sources: Sources) -> Self {
        Self { store, sources, running: Arc::default() }
    }

    /// The blob, from here or from the registry; its length is known when this returns.
    pub(crate) async fn reader(&self, digest: Digest, pull: &Arc<Admitted>) -> Result<Reader, Failure> {
        if let Some((file, bytes)) = self.store.whole(&digest) {
            pull.count_kept(bytes);
            return Ok(Reader::of_whole(file, bytes, Check::new(digest, &self.store)));
        }
        let (mut progress, reads) = self.join(digest, pull);
        let begun = progress.wait_for(|progress| progress.total.is_some() || progress.end.is_some()).await;
        let ended = |text: String| Failure { text, lasting: false, blame: Blame::Store };
        let begun = begun.map_err(|_| ended(format!("the download of {digest} has ended")))?.clone();
        if let Some(Err(error)) = begun.end {
            return Err(error);
        }
        let file = self.store.open_partial(&digest).map_err(|error| ended(error.to_string()))?;
        Ok(Reader::following(file, progress, reads))
    }

    fn join(&self, digest: Digest, pull: &Arc<Admitted>) -> (watch::Receiver<Progress>, Arc<()>) {
        let mut running = self.lock();
        if let Some(entry) = running.get_mut(&digest) {
            // The last reader may just have gone, and the download not have seen it yet.
            let reads = entry.readers.upgrade().unwrap_or_default();
            entry.readers = Arc::downgrade(&reads);
            return (entry.progress.clone(), reads);
        }
        let (sender, progress) = watch::channel(Progress::default());
        let reads = Arc::new(());
        running.insert(digest, Entry { progress: progress.clone(), readers: Arc::downgrade(&reads) });
        let flight = Flight { flights: self.clone(), digest, pull: Arc::clone(pull), progress: sender };
        tokio::spawn(flight.run());
        (progress, reads)
    }

    /// Whether nobody reads any more; if so, the download is none from now on.
    fn abandoned(&self, digest: &Digest) -> bool {
        let mut running = self.lock();
        let alone = running.get(digest).is_none_or(|entry| entry.readers.strong_count() == 0);
        if alone {
            running.remove(digest);
        }
        alone
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Entry>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One download.
struct Flight {
    flights: Flights,
    digest: Digest,
    pull: Arc<Admitted>,
    progress: watch::Sender<Progress>,
}

impl Flight {
    async fn run(self) {
        let end = self.fetch().await;
        // What fills a disk is in everybody's way there, and what is not the blob is of no use.
        if let Err(
            FetchError::TooLarge { digest, .. }
            | FetchError::Disk { digest, .. }
            | FetchError::Longer { digest, .. },
        ) = &end
        {
            self.flights.store.discard(digest);
        }
        let end = end.map_err(|error| {
            tracing::warn!(digest = %self.digest, %error, "an image blob does not come");
            Failure::of(&error)
        });
        if let Err(failure) = &end {
            self.pull.failed(self.digest, failure);
        }
        // Whoever comes now finds the blob, or begins anew.
        self.flights.lock().remove(&self.digest);
        self.progress.send_modify(|progress| progress.end = Some(end));
    }

    /// To the end, or until nobody reads.
    async fn fetch(&self) -> Result<(), FetchError> {
        let (store, digest) = (self.flights.store.clone(), self.digest);
        if let Some((_, bytes)) = store.whole(&digest) {
            // The download before this one ended just now.
            self.announce(bytes, Some(bytes));
            return Ok(());
        }
        let resumed = tokio::task::spawn_blocking(move || store.resume(&digest)).await;
        let mut partial = resumed.map_err(io::Error::other).flatten().map_err(|source| self.disk(source))?;
        let (mut attempts, mut failed, mut gave) = (0, BTreeSet::new(), BTreeSet::new());
        while partial.hash.clone().end() != digest {
            let places = self.flights.sources.places(&self.pull.upstream);
            let Some(place) = places.into_iter().find(|place| !failed.contains(place)) else {
                tokio::time::sleep(PAUSE * attempts).await;
                failed.clear();
                continue;
            };
            let before = partial.bytes;
            let ended = self.transfer(&place, &mut partial).await;
            if partial.bytes > before {
                (attempts, failed) = (0, BTreeSet::new());
                gave.insert(place.clone());
            }
            match ended {
                Ok(Transfer::Complete) => break,
                Ok(Transfer::Abandoned) => return Ok(()),
                Err(error @ FetchError::Disk { .. }) => return Err(error),
                Err(FetchError::Longer { bytes, told, .. }) => {
                    // Whatever a neighbour sent before is as little the blob.
                    self.flights.sources.distrust(&place);
                    let alone = matches!(place, Place::Registry(_));
                    return Err(FetchError::Longer { digest, bytes, told, alone });
                }
                Err(error) if error.is_lasting() && matches!(place, Place::Registry(_)) => return Err(error),
                Err(error) => {
                    tracing::debug!(%digest, ?place, %error, "an image blob does not come from here");
                    attempts += u32::from(matches!(place, Place::Registry(_)));
                    if attempts == ATTEMPTS_MAX {
                        return Err(error);
                    }
                    failed.insert(place);
                }
            }
        }
        self.keep(partial, &gave).await
    }

    async fn keep(&self, partial: Partial, gave: &BTreeSet<Place>) -> Result<(), FetchError> {
        let (store, digest, found) = (self.flights.store.clone(), self.digest, partial.hash.end());
        if found != digest {
            store.discard(&digest);
            gave.iter().for_each(|place| self.flights.sources.distrust(place));
            let alone = gave.iter().all(|place| matches!(place, Place::Registry(_)));
            return Err(FetchError::Mismatch { digest, found, alone });
        }
        let bytes = partial.bytes;
        let kept = tokio::task::spawn_blocking(move || store.keep(&digest, &partial.file)).await;
        kept.map_err(io::Error::other).flatten().map_err(|source| self.disk(source))?;
        self.announce(bytes, Some(bytes));
        Ok(())
    }

    /// One answer of a place, from where we are.
    async fn transfer(&self, place: &Place, partial: &mut Partial) -> Result<Transfer, FetchError> {
        let sources = &self.flights.sources;
        let answer = self.ask(place, partial.bytes).await?;
        let from = first_byte(&answer);
        if from != partial.bytes {
            self.rewind(partial, from)?;
        }
        let rest =
            answer.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        let total = rest.map(|rest| partial.bytes.saturating_add(rest));
        self.bound(total.unwrap_or(0))?;
        self.announce(partial.bytes.saturating_sub(1), total);
        let copy = partial.file.try_clone().map_err(|source| self.disk(source))?;
        let mut file = tokio::fs::File::from_std(copy);
        file.set_max_buf_size(CHUNK_BYTES);
        let (before, began) = (partial.bytes, Instant::now());
        let toll = sources.toll(place, &answer);
        let ended = self.take_in((answer.into_body(), toll), partial, &mut file).await;
        let came = partial.bytes - before;
        self.pull.count(place, came);
        sources.learn(place, came, began.elapsed());
        ended
    }

    /// A neighbour that refuses may not know yet that the blob is part of what this node may have: it is told once
    /// a pull.
    async fn ask(&self, place: &Place, from: u64) -> Result<Response<Incoming>, HttpError> {
        let (sources, wanted) = (&self.flights.sources, (&self.digest, from));
        let answer = sources.ask(place, &self.pull.upstream, wanted).await;
        let (Place::Neighbour(node), Err(HttpError::Status { .. })) = (place, &answer) else { return answer };
        let mut taken = false;
        for digest in self.pull.untold(node) {
            let store = self.flights.store.clone();
            let read = tokio::task::spawn_blocking(move || store.read(&digest)).await;
            let Some(manifest) = read.ok().flatten() else { continue };
            taken |= sources.hand_over(node, (&digest, manifest.into())).await?;
        }
        if taken { sources.ask(place, &self.pull.upstream, wanted).await } else { answer }
    }

    async fn take_in(
        &self,
        (mut body, toll): (Incoming, Option<Toll>),
        partial: &mut Partial,
        file: &mut tokio::fs::File,
    ) -> Result<Transfer, FetchError> {
        let digest = self.digest;
        loop {
            let next = timeout(SILENCE_MAX, body.frame()).await;
            let Some(frame) = next.map_err(|_| FetchError::Silent { digest })? else {
                return Ok(Transfer::Complete);
            };
            let frame =
                frame.map_err(|source| FetchError::Broken { digest, bytes: partial.bytes, source })?;
            let Some(bytes) = frame.data_ref().filter(|bytes| !bytes.is_empty()) else { continue };
            self.bound(partial.bytes.saturating_add(bytes.len() as u64))?;
            let written = async {
                file.write_all(bytes).await?;
                file.flush().await
            };
            written.await.map_err(|source| self.disk(source))?;
            partial.hash.update(bytes);
            partial.bytes += bytes.len() as u64;
            self.flights.store.grown(&digest, partial.bytes);
            // One byte is held back until all are verified, so that nobody ends up with a wrong blob.
            self.progress.send_modify(|progress| progress.written = partial.bytes - 1);
            if self.flights.abandoned(&digest) {
                return Ok(Transfer::Abandoned);
            }
            if let Some(toll) = &toll {
                toll.pay(bytes.len()).await;
            }
        }
    }

    /// No more than its manifest says, nor than there is room for.
    fn bound(&self, bytes: u64) -> Result<(), FetchError> {
        let digest = self.digest;
        if let Some(told) = self.pull.size(&digest).filter(|told| *told < bytes) {
            return Err(FetchError::Longer { digest, bytes, told, alone: false });
        }
        match self.flights.store.has_room_for(bytes) {
            true => Ok(()),
            false => Err(FetchError::TooLarge { digest, bytes }),
        }
    }

    /// A registry that knows no ranges begins at its first byte, and so do we.
    fn rewind(&self, partial: &mut Partial, from: u64) -> Result<(), FetchError> {
        if from != 0 {
            let (host, wanted) =
                ("the registry".to_owned(), format!("blob {} from byte {}", self.digest, partial.bytes));
            return Err(HttpError::Content { host, wanted }.into());
        }
        partial.file.set_len(0).map_err(|source| self.disk(source))?;
        (partial.hash, partial.bytes) = (Hash::default(), 0);
        Ok(())
    }

    fn announce(&self, written: u64, total: Option<u64>) {
        self.progress.send_modify(|progress| {
            (progress.written, progress.total) = (written, total.or(progress.total));
        });
    }

    fn disk(&self, source: io::Error) -> FetchError {
        FetchError::Disk { digest: self.digest, source }
    }
}

enum Transfer {
    Complete,
    Abandoned,
}

/// Where an answer begins: `Content-Range: bytes 7-…`, or the first byte of the whole.
fn first_byte<T>(answer: &Response<T>) -> u64 {
    if answer.status() != StatusCode::PARTIAL_CONTENT {
        return 0;
    }
    let range = answer.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
    let first = range.and_then(|range| range.strip_prefix("bytes ")?.split('-').next()?.parse().ok());
    first.unwrap_or(u64::MAX)
}
