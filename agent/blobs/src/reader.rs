//! A blob that is read while it comes.

use crate::CHUNK_BYTES;
use crate::failure::Failure;
use crate::store::Store;
use edgeloom_common::digest::{Digest, Hash};
use futures_util::{Stream, StreamExt, stream};
use hyper::body::Bytes;
use std::fs::File;
use std::io::{self, SeekFrom};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::sync::watch;

/// How far a download is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    pub(crate) written: u64,
    pub(crate) total: Option<u64>,
    /// Why it failed, if it did.
    pub(crate) end: Option<Result<(), Failure>>,
}

/// A blob as its reader has it.
#[derive(Debug)]
pub(crate) struct Reader {
    file: tokio::fs::File,
    progress: watch::Receiver<Progress>,
    /// Of a blob that was kept since earlier.
    check: Option<Check>,
    _reads: Option<Arc<()>>,
}

/// Whether what is read is what was kept: a card may lose it, and a power cut what was never synced.
#[derive(Debug)]
pub(crate) struct Check {
    digest: Digest,
    hash: Hash,
    store: Store,
}

impl Check {
    pub(crate) fn new(digest: Digest, store: &Store) -> Self {
        Self { digest, hash: Hash::default(), store: store.clone() }
    }

    /// At the last byte: the blob is forgotten if it is another one.
    fn judge(self) -> io::Result<()> {
        if self.hash.end() == self.digest {
            return Ok(());
        }
        tracing::warn!(digest = %self.digest, "a kept image blob has changed on disk; it is fetched again");
        self.store.discard(&self.digest);
        Err(io::Error::from(io::ErrorKind::InvalidData))
    }
}

impl Reader {
    /// Of a file that is here as a whole.
    pub(crate) fn of_whole(file: File, bytes: u64, check: Check) -> Self {
        let (_, progress) =
            watch::channel(Progress { written: bytes, total: Some(bytes), end: Some(Ok(())) });
        Self { file: file.into(), progress, check: Some(check), _reads: None }
    }

    /// Of a file that grows; the download goes on as long as this lives.
    pub(crate) fn following(file: File, progress: watch::Receiver<Progress>, reads: Arc<()>) -> Self {
        Self { file: file.into(), progress, check: None, _reads: Some(reads) }
    }

    /// The whole blob's length, where the registry told it.
    pub(crate) fn total(&self) -> Option<u64> {
        self.progress.borrow().total
    }

    /// The bytes from this one on, as they come.
    pub(crate) fn stream(mut self, from: u64) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        let at = async move {
            self.file.seek(SeekFrom::Start(from)).await?;
            // Of a part nothing can be told.
            self.check = self.check.filter(|_| from == 0);
            Ok::<_, io::Error>((self, from))
        };
        let begin = stream::once(at);
        let follow = |begun: io::Result<(Self, u64)>| match begun {
            Ok(begun) => stream::try_unfold(begun, |(mut reader, at)| async move {
                let next = reader.next(at).await?;
                Ok(next.map(|bytes| {
                    let at = at + bytes.len() as u64;
                    (bytes, (reader, at))
                }))
            })
            .left_stream(),
            Err(error) => stream::once(async { Err(error) }).right_stream(),
        };
        begin.flat_map(follow)
    }

    /// What comes next, up to a chunk; none at the end.
    async fn next(&mut self, at: u64) -> io::Result<Option<Bytes>> {
        let there = |progress: &Progress| at < progress.written || progress.end.is_some();
        let progress = self.progress.wait_for(there).await.map_err(io::Error::other)?.clone();
        if progress.written <= at {
            return match progress.end {
                Some(Err(error)) => Err(io::Error::other(error)),
                _ if progress.total.is_some_and(|total| at < total) => {
                    Err(io::Error::other("the download was given up"))
                }
                _ => Ok(None),
            };
        }
        let most = usize::try_from(progress.written - at).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        let mut bytes = vec![0; most];
        let read = self.file.read(&mut bytes).await?;
        bytes.truncate(read);
        if read == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        if let Some(check) = &mut self.check {
            check.hash.update(&bytes);
        }
        if progress.total == Some(at + read as u64) {
            self.check.take().map_or(Ok(()), Check::judge)?;
        }
        Ok(Some(bytes.into()))
    }
}
