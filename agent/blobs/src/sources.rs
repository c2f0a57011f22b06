//! Where a blob may come from, the cheapest first, by what each place gave before.

use crate::http::{Fields, HttpError, Local, Way, ask, put};
use crate::pace::{Pace, Sender, Toll};
use crate::upstream::Upstream;
use edgeloom_common::digest::Digest;
use edgeloom_common::ids::NodeId;
use edgeloom_common::join::node_name;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderName, RANGE};
use hyper::{Response, StatusCode};
use rustls::ClientConfig;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Who asks; the certificate has to be of that name.
pub(crate) const NODE: HeaderName = HeaderName::from_static("edgeloom-node");
/// A neighbour is near: it answers at once, or is not worth waiting for.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long one that did not answer is left alone.
const SILENT: Duration = Duration::from_secs(60);
/// Weight of the newest transfer in a place's goodput.
const NEWEST: f64 = 0.3;
/// Shorter transfers say more of round trips than of bandwidth.
const SAMPLE_MIN: u64 = 64 * 1024;

/// A place that has blobs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    Neighbour(NodeId),
    Registry(String),
}

#[derive(Debug, Default)]
struct State {
    neighbours: BTreeMap<NodeId, SocketAddr>,
    /// Bytes a second.
    goodput: HashMap<Place, f64>,
    /// Neighbours that did not answer, and until when they are not asked.
    silent: HashMap<NodeId, Instant>,
}

/// A handle; clones share what was learnt.
#[derive(Debug, Clone)]
pub struct Sources {
    own: NodeId,
    tls: Option<Arc<ClientConfig>>,
    pace: Option<Pace>,
    state: Arc<Mutex<State>>,
}

impl Sources {
    /// The registry alone, until [`set`](Self::set) says who else; `tls` shows this node's certificate and
    /// trusts its cluster. Without it nobody else is asked.
    #[must_use]
    pub fn new(own: NodeId, tls: Option<Arc<ClientConfig>>) -> Self {
        Self { own, tls, pace: None, state: Arc::default() }
    }

    /// The same; what comes over links that flows take is read at this pace.
    #[must_use]
    pub fn paced(self, pace: Pace) -> Self {
        Self { pace: Some(pace), ..self }
    }

    /// These neighbours may have blobs, and serve them at these addresses.
    pub fn set(&self, neighbours: BTreeMap<NodeId, SocketAddr>) {
        if self.tls.is_some() {
            self.lock(|state| state.neighbours = neighbours);
        }
    }

    /// The places to ask, in this order. Neighbours that nothing is known of come first: they are near, and one
    /// question shows what they are worth.
    pub(crate) fn places(&self, upstream: &Upstream) -> Vec<Place> {
        let registry = Place::Registry(upstream.host().to_owned());
        let mut places = self.lock(|state| {
            let now = Instant::now();
            state.silent.retain(|_, until| now < *until);
            let heard = state.neighbours.keys().filter(|node| !state.silent.contains_key(*node)).cloned();
            let all = heard.map(Place::Neighbour).chain([registry]);
            let known = |place: &Place| match (state.goodput.get(place), place) {
                (Some(goodput), _) => *goodput,
                (None, Place::Neighbour(_)) => f64::INFINITY,
                (None, Place::Registry(_)) => 0.0,
            };
            all.map(|place| (known(&place), place)).collect::<Vec<_>>()
        });
        places.sort_by(|(x, a), (y, b)| y.total_cmp(x).then_with(|| a.cmp(b)));
        places.into_iter().map(|(_, place)| place).collect()
    }

    /// What holds an answer back.
    pub(crate) fn toll<T>(&self, place: &Place, answer: &Response<T>) -> Option<Toll> {
        let sender = match place {
            Place::Registry(_) => Sender::Registry,
            Place::Neighbour(_) => Sender::Neighbour,
        };
        self.pace.as_ref()?.toll(answer.extensions().get::<Local>()?.0, sender)
    }

    /// A place gave so many bytes in this time.
    pub(crate) fn learn(&self, place: &Place, bytes: u64, took: Duration) {
        if bytes < SAMPLE_MIN || took.is_zero() {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "a transfer has far less than 2^52 bytes")]
        let now = bytes as f64 / took.as_secs_f64();
        self.lock(|state| {
            let known = state.goodput.entry(place.clone()).or_insert(now);
            if *known > 0.0 {
                *known += NEWEST * (now - *known);
            }
        });
    }

    /// A place gave bytes that were wrong: whoever else there is comes before it.
    pub(crate) fn distrust(&self, place: &Place) {
        self.lock(|state| state.goodput.insert(place.clone(), -1.0));
    }

    /// What a place answers to a question for the blob from this byte on.
    pub(crate) async fn ask(
        &self,
        place: &Place,
        upstream: &Upstream,
        (digest, from): (&Digest, u64),
    ) -> Result<Response<Incoming>, HttpError> {
        let Place::Neighbour(node) = place else { return upstream.blob(digest, from).await };
        let range = (from > 0).then(|| (RANGE, format!("bytes={from}-")));
        let fields: Fields = self.own().chain(range).collect();
        let (way, url) = self.way(node, &format!("/blobs/{digest}"))?;
        let answer = self.patiently(node, ask(&way, &url, &fields, &Fields::new())).await?;
        match answer.status() {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => Ok(answer),
            status => {
                let (host, path) = (format!("node {node}"), digest.to_string());
                Err(HttpError::Status { host, path, status: status.as_u16() })
            }
        }
    }

    /// Hands a neighbour the manifest of an image that this node may have, so that it knows which blobs those are;
    /// whether it took it.
    pub(crate) async fn hand_over(
        &self,
        node: &NodeId,
        (digest, manifest): (&Digest, Bytes),
    ) -> Result<bool, HttpError> {
        let (way, url) = self.way(node, &format!("/manifests/{digest}"))?;
        let fields: Fields = self.own().collect();
        let answer = self.patiently(node, put(&way, &url, &fields, manifest)).await?;
        Ok(answer.status().is_success())
    }

    fn own(&self) -> impl Iterator<Item = (HeaderName, String)> {
        std::iter::once((NODE, self.own.to_string()))
    }

    fn way(&self, node: &NodeId, path: &str) -> Result<(Way, String), HttpError> {
        let url = format!("https://{}{path}", node_name(node));
        let address = self.lock(|state| state.neighbours.get(node).copied());
        match self.tls.clone().zip(address) {
            Some((tls, address)) => Ok((Way { tls, address: Some(address) }, url)),
            None => Err(HttpError::Address { url }),
        }
    }

    /// One that does not answer is left alone for a while.
    async fn patiently(
        &self,
        node: &NodeId,
        asked: impl Future<Output = Result<Response<Incoming>, HttpError>>,
    ) -> Result<Response<Incoming>, HttpError> {
        let answer = timeout(PATIENCE, asked).await;
        let answer = answer.unwrap_or_else(|_| Err(HttpError::Slow { host: format!("node {node}") }));
        answer.inspect_err(|_| {
            self.lock(|state| state.silent.insert(node.clone(), Instant::now() + SILENT));
        })
    }

    fn lock<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
