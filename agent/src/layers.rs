//! The layer store of this node: what Docker pulls through, and what neighbours may have of it.
//!
//! In: `[layers]` of agent.toml, the membership, and from each document which neighbours have what and who may
//! have ours. Without a budget there is none, and Docker asks the registry itself.

use crate::config::LayerSettings;
use crate::join::Live;
use edgeloom_blobs::{Digest, Grants, Neighbours, Proxy, Sources, Store, StoreError};
use edgeloom_common::desired::DesiredState;
use edgeloom_common::ids::NodeId;
use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Why layers are not kept; pulls go on without.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LayersError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot listen on {address} for image layers: {source}")]
    Listen { address: SocketAddr, source: io::Error },
}

/// The store, and who is served from it.
#[derive(Debug)]
pub(crate) struct Layers {
    proxy: Proxy,
    pulls: TcpListener,
    exchange: Option<(Sources, Neighbours, TcpListener)>,
}

/// What a new document changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exchange(Option<(Sources, Neighbours)>);

impl Layers {
    /// Opens the store and listens. None without a budget; neighbours are served by members alone.
    pub(crate) async fn open(
        settings: &LayerSettings,
        (state_dir, node): (&Path, &NodeId),
        live: Option<&Arc<Live>>,
    ) -> Result<Option<Self>, LayersError> {
        if settings.budget.0 == 0 {
            return Ok(None);
        }
        let store = Store::open(&state_dir.join("layers"), settings.budget)?;
        let pulls = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let address = pulls.local_addr().map_err(|source| LayersError::Listen {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            source,
        })?;
        let sources = Sources::new(node.clone(), live.map(Live::asking_config));
        let proxy = Proxy::new(store.clone(), sources.clone(), address);
        let exchange = match live {
            Some(live) => {
                let asked = listen(SocketAddr::from((Ipv4Addr::UNSPECIFIED, settings.port))).await?;
                Some((sources, Neighbours::new(store, live.asked_config()), asked))
            }
            None => None,
        };
        Ok(Some(Self { proxy, pulls, exchange }))
    }

    pub(crate) fn proxy(&self) -> Proxy {
        self.proxy.clone()
    }

    pub(crate) fn exchange(&self) -> Exchange {
        let pair = self.exchange.as_ref();
        Exchange(pair.map(|(sources, neighbours, _)| (sources.clone(), neighbours.clone())))
    }

    /// Where neighbours are served.
    pub(crate) fn port(&self) -> Option<u16> {
        let listener = self.exchange.as_ref().map(|(_, _, listener)| listener);
        listener.and_then(|listener| Some(listener.local_addr().ok()?.port()))
    }

    /// Serves until the future is dropped.
    pub(crate) async fn serve(self) {
        let pulls = self.proxy.serve(self.pulls);
        match self.exchange {
            Some((_, neighbours, listener)) => {
                tokio::join!(pulls, neighbours.serve(listener));
            }
            None => pulls.await,
        }
    }
}

impl Exchange {
    /// From now on as this document says.
    pub(crate) fn follow(&self, document: &DesiredState) {
        let Some((sources, neighbours)) = &self.0 else { return };
        let digests = |images: &BTreeSet<String>| {
            images.iter().filter_map(|text| text.parse::<Digest>().ok()).collect()
        };
        let grants: Grants =
            document.layer_grants.iter().map(|(node, images)| (node.clone(), digests(images))).collect();
        neighbours.grant(grants);
        sources.set(document.layer_sources.clone());
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, LayersError> {
    TcpListener::bind(address).await.map_err(|source| LayersError::Listen { address, source })
}
