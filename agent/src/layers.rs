//! The layer store of this node: what Docker pulls through, and what neighbours may have of it.
//!
//! In: `[layers]` of agent.toml, the membership, and from each document where neighbours are, what they may have
//! and what flows have of links. Without a budget there is no store, and Docker asks the registry itself.

use crate::config::{Config, LayerSettings, Link};
use crate::join::Live;
use crate::lanes;
use edgeloom_blobs::{Digest, Grants, Neighbours, Pace, Proxy, Sources, Store, StoreError};
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
    exchange: Exchange,
    /// None on a machine that has not joined: its neighbours could not tell who it is.
    asked: Option<(Neighbours, TcpListener)>,
}

/// Between this node and its neighbours; follows the documents.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    config: Arc<Config>,
    sources: Sources,
    pace: Pace,
    neighbours: Option<Neighbours>,
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
        let pace = Pace::new(lanes::METER);
        let sources = Sources::new(config.node.clone(), live.map(Live::asking_config)).paced(pace.clone());
        let proxy = Proxy::new(store.clone(), sources.clone(), address);
        let asked = match live {
            Some(live) => {
                let (asked, _) = listen(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await?;
                let neighbours = Neighbours::new(store, live.asked_config());
                Some((neighbours.with_priority(edgeloom_net::PULL_PRIORITY), asked))
            }
            None => None,
        };
        let neighbours = asked.as_ref().map(|(neighbours, _)| neighbours.clone());
        let exchange = Exchange { config: Arc::clone(config), sources, pace, neighbours };
        Ok(Some(Self { proxy, pulls, exchange, asked }))
    }

    pub(crate) fn proxy(&self) -> Proxy {
        self.proxy.clone()
    }

    pub(crate) fn exchange(&self) -> Exchange {
        self.exchange.clone()
    }

    /// Serves until the future is dropped.
    pub(crate) async fn serve(self) {
        let pulls = self.proxy.serve(self.pulls);
        match self.asked {
            Some((neighbours, asked)) => {
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
        self.pace.set(lanes::of(&self.config.links, document));
        let images = |texts: &[String]| texts.iter().filter_map(|text| text.parse::<Digest>().ok()).collect();
        let grants = document.layer_grants.iter().map(|(node, texts)| (node.clone(), images(texts)));
        let grants: Grants = grants.collect();
        self.neighbours.iter().for_each(|neighbours| neighbours.grant(grants.clone()));
    }

    /// What registries are read at.
    pub(crate) fn pace(&self) -> Pace {
        self.pace.clone()
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
