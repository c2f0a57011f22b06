//! The session with the controller: MQTT over mutual TLS, kept up for as long as the agent runs.
//!
//! In: [`Up`] to say. Out: [`Down`] that was heard. The broker is taken for a lossy pipe: nothing here
//! is kept across connections but the newest message of each kind, and [`Down::Connected`] asks the
//! agent to say again what it publishes by exception.
//! Invariant: the connection is polled at all times. Neither a full channel to the agent nor a full
//! send queue ever holds it up; what does not fit is replaced by what is newer.

mod back_off;
mod inbox;
mod outbox;
mod source;
mod tls;

pub use tls::TlsFileError;

use crate::config::IdentityFiles;
use crate::join::Live;
use crate::wire::{Down, Up};
use back_off::BackOff;
use edgeloom_common::ids::NodeId;
use edgeloom_common::report::Status;
use edgeloom_common::topics::{PACKET_MAX, Uplink, node_filters};
use inbox::Inbox;
use outbox::Outbox;
use rumqttc::{
    AsyncClient, ConnectionError, Event, EventLoop, LastWill, MqttOptions, NetworkOptions, Outgoing, Packet,
    QoS, SubAck, SubscribeFilter, SubscribeReasonCode, TlsConfiguration, Transport,
};
use std::net::Ipv4Addr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// A path that went silent is noticed within two of it; a ping is some hundred bytes on the wire.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// For connecting, and for a send that the network does not take.
const NETWORK_TIMEOUT_S: u64 = 10;
/// Requests between us and the event loop; the rest waits in the outbox, where newer replaces older.
const REQUESTS_QUEUED: usize = 16;
/// Publications that the broker has not acknowledged.
const IN_FLIGHT_MAX: u16 = 16;
/// A connection that lasts this long ends the back-off; a shorter one may be a broker that refuses us.
const SETTLED_AFTER: Duration = Duration::from_secs(10);
const FAREWELL_MAX: Duration = Duration::from_secs(2);

/// Where the controller is and who we are.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// Also the MQTT client id and the common name of the certificate.
    pub node: NodeId,
    pub host: String,
    pub port: u16,
    pub credentials: Credentials,
}

/// How we prove who we are, and know who answers.
#[derive(Debug, Clone)]
pub enum Credentials {
    /// Managed from outside: read once, and the controller is known by its host's name.
    Files(IdentityFiles),
    /// From joining: followed as it is renewed, and the controller is known by its authority.
    Joined(Arc<Live>),
}

/// Runs the session until `up` is closed (then it says goodbye) or nobody listens to `down`. Neither a
/// controller out of reach nor a certificate that does not read ends it: it tries again until they are there.
/// `changes` rises with each change of the network.
pub async fn run(
    settings: SessionSettings,
    mut up: mpsc::Receiver<Up>,
    down: mpsc::Sender<Down>,
    changes: watch::Receiver<u64>,
) {
    let Some((client, mut event_loop)) = first_connection(&settings, &mut up).await else { return };
    let session = Session {
        number: AtomicU64::new(0),
        inbox: Inbox::new(settings.node.clone()),
        outbox: Outbox::new(settings.node.clone(), client.clone()),
        client,
        settings,
    };
    tokio::select! {
        () = session.speak(up) => {}
        () = session.listen(&mut event_loop, changes) => {}
        () = session.inbox.deliver(down) => {}
    }
    // Without an answer in time the Last Will says the same.
    let _ = timeout(FAREWELL_MAX, session.say_goodbye(&mut event_loop)).await;
}

/// Reads the files until they read; none when the agent ends. What it says meanwhile nobody can hear, and it
/// must not wait for that.
async fn first_connection(
    settings: &SessionSettings,
    up: &mut mpsc::Receiver<Up>,
) -> Option<(AsyncClient, EventLoop)> {
    let mut back_off = BackOff::default();
    loop {
        let error = match connection(settings) {
            Ok(connection) => return Some(connection),
            Err(error) => error,
        };
        let pause = back_off.next_pause();
        tracing::error!(%error, pause_ms = pause.as_millis(), "no session with the controller");
        let over = Instant::now() + pause;
        loop {
            tokio::select! {
                said = up.recv() => drop(said?),
                () = sleep_until(over) => break,
            }
        }
    }
}

fn connection(settings: &SessionSettings) -> Result<(AsyncClient, EventLoop), TlsFileError> {
    let tls = match &settings.credentials {
        Credentials::Files(files) => tls::client_config(files)?,
        Credentials::Joined(live) => live.client_config(),
    };
    let mut options = MqttOptions::new(settings.node.as_str(), &settings.host, settings.port);
    options
        .set_transport(Transport::tls_with_config(TlsConfiguration::Rustls(tls)))
        .set_keep_alive(KEEP_ALIVE)
        .set_clean_session(true)
        .set_max_packet_size(PACKET_MAX, PACKET_MAX)
        .set_inflight(IN_FLIGHT_MAX);
    let (client, mut event_loop) = AsyncClient::new(options, REQUESTS_QUEUED);
    let mut network = NetworkOptions::new();
    network.set_tcp_nodelay(true);
    network.set_connection_timeout(NETWORK_TIMEOUT_S);
    event_loop.set_network_options(network);
    Ok((client, event_loop))
}

fn presence(online: bool, session: u64) -> Vec<u8> {
    serde_json::to_vec(&Status::new(online, session)).expect("a status has no map keys and no failing parts")
}

/// Why a connection ended, or none came about.
#[derive(Debug, thiserror::Error)]
enum EndError {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error("our address {0}, which it ran from, is gone")]
    SourceGone(Ipv4Addr),
}

/// How a connection, or the attempt at one, ended.
struct Ended {
    error: EndError,
    /// None: it was only an attempt.
    connected_at: Option<Instant>,
    heard_at: Instant,
}

/// What the three sides of a session share.
struct Session {
    /// Of this connection or attempt; higher than all before.
    number: AtomicU64,
    settings: SessionSettings,
    client: AsyncClient,
    inbox: Inbox,
    outbox: Outbox,
}

impl Session {
    /// Takes what the agent says, until it says no more.
    async fn speak(&self, mut up: mpsc::Receiver<Up>) {
        while let Some(message) = up.recv().await {
            self.outbox.offer(&message);
        }
    }

    /// Connects again and again, with a growing pause between attempts.
    async fn listen(&self, event_loop: &mut EventLoop, changes: watch::Receiver<u64>) {
        let mut back_off = BackOff::default();
        loop {
            self.renew(event_loop);
            let Ended { error, connected_at, heard_at } = self.converse(event_loop, changes.clone()).await;
            self.outbox.disconnected();
            // Said in another life of the agent's state; it says it again when connected.
            event_loop.clean();
            event_loop.pending.clear();
            if let Some(at) = connected_at {
                self.inbox.disconnected(heard_at);
                back_off = if at.elapsed() < SETTLED_AFTER { back_off } else { BackOff::default() };
            }
            let pause = back_off.next_pause();
            self.complain(&error, pause);
            sleep(pause).await;
        }
    }

    /// Polls one connection from its attempt to its end.
    async fn converse(&self, event_loop: &mut EventLoop, changes: watch::Receiver<u64>) -> Ended {
        let mut source_gone = pin!(source::gone(&self.settings.host, self.settings.port, changes));
        let mut connected_at = None;
        let mut heard_at = Instant::now();
        let error = loop {
            let polled = tokio::select! {
                polled = event_loop.poll() => polled,
                address = &mut source_gone, if connected_at.is_some() => break EndError::SourceGone(address),
            };
            match polled {
                Ok(event) => {
                    if let Event::Incoming(packet) = &event {
                        heard_at = Instant::now();
                        connected_at =
                            connected_at.or(matches!(packet, Packet::ConnAck(_)).then_some(heard_at));
                    }
                    self.heard(event);
                    self.outbox.flush();
                }
                Err(error) => break error.into(),
            }
        };
        Ended { error, connected_at, heard_at }
    }

    /// Numbers the next connection. A broker may publish the Last Will of a connection after the birth
    /// of the one that took its place: the lower number tells.
    fn renew(&self, event_loop: &mut EventLoop) {
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let now_ms = u64::try_from(now_ms).unwrap_or(u64::MAX);
        let number = now_ms.max(self.number.load(Relaxed).saturating_add(1));
        self.number.store(number, Relaxed);
        event_loop.mqtt_options.set_last_will(LastWill::new(
            Uplink::Status.topic(&self.settings.node),
            presence(false, number),
            QoS::AtLeastOnce,
            true,
        ));
    }

    fn presence(&self, online: bool) -> Vec<u8> {
        presence(online, self.number.load(Relaxed))
    }

    fn complain(&self, error: &EndError, pause: Duration) {
        let SessionSettings { host, port, .. } = &self.settings;
        tracing::warn!(%host, port, %error, pause_ms = pause.as_millis(), "no session with the controller");
    }

    fn heard(&self, event: Event) {
        match event {
            Event::Incoming(Packet::ConnAck(_)) => self.connected(),
            Event::Incoming(Packet::SubAck(answer)) => check_subscription(&answer),
            Event::Incoming(Packet::Publish(message)) => self.inbox.take_in(&message.topic, &message.payload),
            _ => {}
        }
    }

    /// The broker keeps nothing of us: subscribe, say that we are here, ask for the rest.
    fn connected(&self) {
        tracing::info!(host = %self.settings.host, "session with the controller");
        let filters = node_filters(&self.settings.node).into_iter();
        let filters = filters.map(|filter| SubscribeFilter::new(filter, QoS::AtLeastOnce));
        if self.client.try_subscribe_many(filters).is_err() {
            tracing::error!("cannot subscribe: the send queue of a new connection is full");
        }
        self.outbox.connected(self.presence(true));
        self.inbox.connected();
    }

    /// Says that we go, which a Last Will does not tell from a crash.
    async fn say_goodbye(&self, event_loop: &mut EventLoop) {
        if !self.outbox.is_connected() {
            return;
        }
        self.outbox.connected(self.presence(false));
        self.outbox.flush();
        if self.client.try_disconnect().is_err() {
            return;
        }
        while let Ok(event) = event_loop.poll().await {
            if event == Event::Outgoing(Outgoing::Disconnect) {
                return;
            }
        }
    }
}

fn check_subscription(answer: &SubAck) {
    if answer.return_codes.contains(&SubscribeReasonCode::Failure) {
        tracing::error!(
            "the broker refuses our own topics: check its access list and our certificate's name"
        );
    }
}
