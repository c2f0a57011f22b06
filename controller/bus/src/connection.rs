//! One client: its MQTT connect, then packets both ways until one side ends it.
//!
//! QoS 0 and 1 and MQTT 3.1.1, which is what agents speak. Sessions are not kept: a client that comes
//! back subscribes again and gets the retained values (`session_present` is always false).

use crate::hub::{ControllerGone, Hub, Refused, Session};
use crate::outbox::{Closed, Message};
use edgeloom_common::ids::{ClusterId, NodeId};
use edgeloom_common::topics::{self, PACKET_MAX, Uplink};
use edgeloom_identity::{Peer, PeerError};
use futures_util::{SinkExt, StreamExt};
use rumqttc::mqttbytes::v4::{
    Codec, ConnAck, ConnectReturnCode, LastWill, Packet, PubAck, Publish, SubAck, Subscribe,
    SubscribeReasonCode, UnsubAck,
};
use rumqttc::{Connect, QoS};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::server::TlsStream;
use tokio_util::codec::Framed;

/// How long one packet may take to leave.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

/// Silence allowed to a client that asks for no keep-alive.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// QoS 1 messages that a client may leave unacknowledged before the next one waits.
const INFLIGHT_MAX: usize = 64;

/// Filters in one SUBSCRIBE: a node has four.
const FILTERS_MAX: usize = 16;

/// Why a client is not, or no longer, served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Identity(#[from] PeerError),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("packet refused: {0}")]
    Packet(#[from] rumqttc::mqttbytes::Error),
    #[error("the peer closed the connection")]
    PeerClosed,
    #[error("the first packet is no CONNECT")]
    NoConnect,
    #[error("client id {id:?} is not the certificate's common name {node}")]
    ClientId { id: String, node: NodeId },
    #[error("the certificate of node {node} was used to publish to {topic:?}, which is not its own")]
    Publish { node: NodeId, topic: String },
    #[error("QoS 2 is not spoken here")]
    Qos2,
    #[error("a packet that only a broker sends, a second CONNECT, or too many filters")]
    Unexpected,
    #[error("silent for longer than 1.5 times its keep-alive")]
    Silent,
    #[error("a packet did not leave within {WRITE_TIMEOUT:?}")]
    WriteTimeout,
    #[error(transparent)]
    Closed(#[from] Closed),
    #[error(transparent)]
    ControllerGone(#[from] ControllerGone),
}

type Stream = Framed<TlsStream<TcpStream>, Codec>;

/// An accepted client.
pub(crate) struct Client {
    stream: Stream,
    hub: Arc<Hub>,
    session: Session,
    will: Option<LastWill>,
    /// 1.5 times the keep-alive (MQTT 3.1.1, 3.1.2.10).
    silence_max: Duration,
    unacknowledged: BTreeSet<u16>,
    last_id: u16,
}

/// What a peer has to pass.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) cluster: ClusterId,
    pub(crate) hub: Arc<Hub>,
}

/// Reads the CONNECT of a peer whose certificate is verified, and opens its session.
pub(crate) async fn greet(stream: TlsStream<TcpStream>, gate: &Gate) -> Result<Client, ConnectionError> {
    let Gate { cluster, hub } = gate;
    let peer = Peer::of(stream.get_ref().1.peer_certificates(), cluster)?;
    let codec = Codec { max_incoming_size: PACKET_MAX, max_outgoing_size: PACKET_MAX };
    let mut stream = Framed::new(stream, codec);
    let Packet::Connect(connect) = stream.next().await.ok_or(ConnectionError::PeerClosed)?? else {
        return Err(ConnectionError::NoConnect);
    };
    let node = peer.node.clone();
    let opened = match admit(&node, &connect) {
        Ok(()) => hub.open(peer).await.map_err(ConnectionError::from),
        Err(error) => Err(error),
    };
    let session = match opened {
        Ok(session) => session,
        Err(error) => {
            hub.refuse(&node, error.to_string());
            stream.send(Packet::ConnAck(ConnAck::new(ConnectReturnCode::NotAuthorized, false))).await?;
            return Err(error);
        }
    };
    let silence_max = match connect.keep_alive {
        0 => SILENCE_MAX,
        seconds => Duration::from_millis(u64::from(seconds) * 1500),
    };
    Ok(Client {
        stream,
        hub: Arc::clone(hub),
        session,
        will: connect.last_will,
        silence_max,
        unacknowledged: BTreeSet::new(),
        last_id: 0,
    })
}

/// Whether the node that the certificate names may connect like this.
fn admit(node: &NodeId, connect: &Connect) -> Result<(), ConnectionError> {
    if connect.client_id != node.as_str() {
        return Err(ConnectionError::ClientId { id: connect.client_id.clone(), node: node.clone() });
    }
    match &connect.last_will {
        Some(will) if !topics::may_publish(node, &will.topic) => {
            Err(ConnectionError::Publish { node: node.clone(), topic: will.topic.clone() })
        }
        _ => Ok(()),
    }
}

impl Client {
    /// Who the certificate says it is.
    pub(crate) fn node(&self) -> &NodeId {
        &self.session.node
    }

    /// Serves the client to its end, then speaks its Last Will unless it said goodbye or is back already:
    /// the old connection's Will would contradict the birth on the new one (MQTT 5 has the Will delay
    /// for that; 3.1.1 does not).
    pub(crate) async fn serve(mut self) {
        tracing::info!("node connected");
        let end = self.exchange().await;
        let current = self.hub.close(&self.session);
        match end {
            Ok(()) => tracing::info!("node disconnected"),
            Err(error) => {
                tracing::warn!(%error, "node's connection ended");
                if matches!(error, ConnectionError::Publish { .. }) {
                    self.hub.refuse(&self.session.node, error.to_string());
                }
                if current {
                    self.speak_will().await;
                }
            }
        }
    }

    async fn speak_will(&mut self) {
        let Some(will) = self.will.take() else { return };
        if let Some((node, kind)) = Uplink::parse(&will.topic) {
            // The only error is a controller that has gone, which needs no will.
            let _ = self.hub.deliver(&node, kind, (QoS::AtLeastOnce, &will.message)).await;
        }
    }

    /// Accepts the client, then moves packets until DISCONNECT (Ok) or any other end.
    async fn exchange(&mut self) -> Result<(), ConnectionError> {
        self.send(Packet::ConnAck(ConnAck::new(ConnectReturnCode::Success, false))).await?;
        let outbox = Arc::clone(&self.session.outbox);
        let mut heard = Instant::now();
        loop {
            let may_send = self.unacknowledged.len() < INFLIGHT_MAX;
            tokio::select! {
                reason = outbox.closed() => return Err(reason.into()),
                () = tokio::time::sleep_until(heard + self.silence_max) => return Err(ConnectionError::Silent),
                packet = self.stream.next() => {
                    match packet.ok_or(ConnectionError::PeerClosed)?? {
                        Packet::Disconnect => return Ok(()),
                        packet => {
                            outbox.hear();
                            self.answer(packet).await?;
                        }
                    }
                    // After the answer: waiting for the controller is not the client's silence.
                    heard = Instant::now();
                }
                message = outbox.next(), if may_send => self.forward(message).await?,
            }
        }
    }

    async fn answer(&mut self, packet: Packet) -> Result<(), ConnectionError> {
        match packet {
            Packet::Publish(publish) => self.take(publish).await,
            Packet::PubAck(ack) => {
                self.unacknowledged.remove(&ack.pkid);
                Ok(())
            }
            Packet::Subscribe(subscribe) => self.subscribe(subscribe).await,
            Packet::Unsubscribe(unsubscribe) => {
                for filter in &unsubscribe.topics {
                    self.hub.unsubscribe(&self.session, filter);
                }
                self.send(Packet::UnsubAck(UnsubAck::new(unsubscribe.pkid))).await
            }
            Packet::PingReq => self.send(Packet::PingResp).await,
            _ => Err(ConnectionError::Unexpected),
        }
    }

    /// A publication of the node: checked, handed over, acknowledged.
    async fn take(&mut self, publish: Publish) -> Result<(), ConnectionError> {
        let node = &self.session.node;
        let Some((owner, kind)) = Uplink::parse(&publish.topic).filter(|(owner, _)| owner == node) else {
            return Err(ConnectionError::Publish { node: node.clone(), topic: publish.topic });
        };
        if publish.qos == QoS::ExactlyOnce {
            return Err(ConnectionError::Qos2);
        }
        self.hub.deliver(&owner, kind, (publish.qos, &publish.payload)).await?;
        if publish.qos == QoS::AtLeastOnce {
            self.send(Packet::PubAck(PubAck::new(publish.pkid))).await?;
        }
        Ok(())
    }

    async fn subscribe(&mut self, subscribe: Subscribe) -> Result<(), ConnectionError> {
        if subscribe.filters.len() > FILTERS_MAX {
            return Err(ConnectionError::Unexpected);
        }
        let grant = |filter: &rumqttc::SubscribeFilter| {
            let qos = if filter.qos == QoS::AtMostOnce { QoS::AtMostOnce } else { QoS::AtLeastOnce };
            if self.hub.subscribe(&self.session, &filter.path, qos) {
                SubscribeReasonCode::Success(qos)
            } else {
                SubscribeReasonCode::Failure
            }
        };
        let codes = subscribe.filters.iter().map(grant).collect();
        self.send(Packet::SubAck(SubAck::new(subscribe.pkid, codes))).await
    }

    /// A message of the controller to this client.
    async fn forward(&mut self, message: Message) -> Result<(), ConnectionError> {
        let mut publish = Publish::from_bytes(message.topic, message.qos, message.payload);
        publish.retain = message.retained;
        if message.qos != QoS::AtMostOnce {
            publish.pkid = self.fresh_id();
            self.unacknowledged.insert(publish.pkid);
        }
        self.send(Packet::Publish(publish)).await
    }

    /// The next packet id that is not 0 and not in flight; there is one, since few are in flight.
    fn fresh_id(&mut self) -> u16 {
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if self.last_id != 0 && !self.unacknowledged.contains(&self.last_id) {
                return self.last_id;
            }
        }
    }

    async fn send(&mut self, packet: Packet) -> Result<(), ConnectionError> {
        timeout(WRITE_TIMEOUT, self.stream.send(packet))
            .await
            .map_err(|_| ConnectionError::WriteTimeout)??;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tokio_util::codec::Decoder;

    proptest! {
        /// A panic would only end the client's own task, but even that is not to happen.
        #[test]
        fn hostile_bytes_are_an_error_not_a_panic(kind in 0u8..16, flags in 0u8..16, body in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut codec = Codec { max_incoming_size: PACKET_MAX, max_outgoing_size: PACKET_MAX };
            let mut framed = vec![kind << 4 | flags, u8::try_from(body.len()).unwrap()];
            framed.extend_from_slice(&body);
            let mut bytes = bytes::BytesMut::from(framed.as_slice());
            while let Ok(Some(_)) = codec.decode(&mut bytes) {}
        }
    }
}
