//! The layer store of this node: what Docker pulls through, and what neighbours may have of it.
//!
//! In: `[layers]` of agent.toml, the membership, and from each document where neighbours are and what they may
//! have. Without a budget there is no store, and Docker asks the registry itself.

use crate::config::{Config, LayerSettings, Link};
use crate::join::Live;
use edgeloom_blobs::{Digest, Grants, Neighbours, Proxy, Sources, Store, StoreError};
use edgeloom_common::desired::DesiredState;
use edgeloom_common::ids::NodeId;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;

/// Any port of the loopback address.
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

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
    /// None on a machine that has not joined: its neighbours could not tell who it is.
    exchange: Option<(Exchange, TcpListener)>,
}

/// Between this node and its neighbours; follows the documents.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    config: Arc<Config>,
    sources: Sources,
    neighbours: Neighbours,
}

impl Layers {
    /// Opens the store and listens; none without a budget.
    pub(crate) async fn open(
        config: &Arc<Config>,
        live: Option<&Arc<Live>>,
    ) -> Result<Option<Self>, LayersError> {
        let LayerSettings { budget, port } = config.layers;
        if budget.0 == 0 {
            return Ok(None);
        }
        let store = Store::open(&config.state_dir.join("layers"), budget)?;
        let (pulls, address) = listen(LOOPBACK).await?;
        let sources = Sources::new(config.node.clone(), live.map(Live::asking_config));
        let proxy = Proxy::new(store.clone(), sources.clone(), address);
        let exchange = match live {
            Some(live) => {
                let (asked, _) = listen(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await?;
                let neighbours = Neighbours::new(store, live.asked_config());
                Some((Exchange { config: Arc::clone(config), sources, neighbours }, asked))
            }
            None => None,
        };
        Ok(Some(Self { proxy, pulls, exchange }))
    }

    pub(crate) fn proxy(&self) -> Proxy {
        self.proxy.clone()
    }

    pub(crate) fn exchange(&self) -> Option<Exchange> {
        self.exchange.as_ref().map(|(exchange, _)| exchange.clone())
    }

    /// Serves until the future is dropped.
    pub(crate) async fn serve(self) {
        let pulls = self.proxy.serve(self.pulls);
        match self.exchange {
            Some((Exchange { neighbours, .. }, asked)) => {
                tokio::join!(pulls, neighbours.serve(asked));
            }
            None => pulls.await,
        }
    }
}

impl Exchange {
    /// From now on as this document says. All nodes of a cluster serve layers on the same port.
    pub(crate) fn follow(&self, document: &DesiredState) {
        let at =
            |link: &Link| document.neighbours.get(&link.neighbour).copied().unwrap_or(link.neighbour_address);
        let place = |link: &Link| (link.neighbour.clone(), (at(link), self.config.layers.port).into());
        let places: BTreeMap<NodeId, SocketAddr> = self.config.links.iter().map(place).collect();
        self.sources.set(places);
        let images = |texts: &[String]| texts.iter().filter_map(|text| text.parse::<Digest>().ok()).collect();
        let grants = document.layer_grants.iter().map(|(node, texts)| (node.clone(), images(texts)));
        self.neighbours.grant(grants.collect::<Grants>());
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), LayersError> {
    let listening = async {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    listening.await.map_err(|source| LayersError::Listen { address, source })
}
