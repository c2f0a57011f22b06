//! A broker with certificates of its own, and clients as agents are.

use edgeloom_bus::{Bus, Config, Incoming};
use edgeloom_common::ids::NodeId;
use edgeloom_identity::{Files, Revoked, server_config};
use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType, SerialNumber,
};
use rumqttc::{
    AsyncClient, Event, EventLoop, LastWill, MqttOptions, Packet, QoS, TlsConfiguration, Transport,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long a test waits for what has to happen; far above what it takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Of every certificate here: a test that revokes has one client.
const SERIAL: [u8; 4] = [0x41, 0x02, 0x03, 0x04];

/// An authority that signs certificates by common name.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "edgeloom test authority");
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(&self, common_name: &str, cluster: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.serial_number = Some(SerialNumber::from_slice(&SERIAL));
        let uri = format!("edgeloom://{cluster}/node/{common_name}").replace(' ', "-");
        params.subject_alt_names.push(SanType::URI(Ia5String::try_from(uri).unwrap()));
        (params.signed_by(&key, &self.0).unwrap(), key)
    }
}

/// A running broker.
pub(crate) struct Fixture {
    pub(crate) bus: Bus,
    pub(crate) authority: Authority,
    revoked: watch::Sender<Revoked>,
    _tls: watch::Sender<Arc<rustls::ServerConfig>>,
    _files: tempfile::TempDir,
}

pub(crate) fn broker() -> Fixture {
    let files = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let (certificate, key) = authority.sign("controller", "test");
    let write = |name: &str, text: String| {
        let path = files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let tls = server_config(&Files {
        ca: write("ca.pem", authority.0.pem()),
        certificate: write("controller.pem", certificate.pem()),
        key: write("controller.key", key.serialize_pem()),
    });
    let (tls_sender, tls) = watch::channel(tls.unwrap());
    let (revoked_sender, revoked) = watch::channel(Revoked::default());
    let listen = "127.0.0.1:0".parse().unwrap();
    let bus = edgeloom_bus::start(Config { listen, cluster: "test".parse().unwrap(), tls, revoked }).unwrap();
    Fixture { bus, authority, revoked: revoked_sender, _tls: tls_sender, _files: files }
}

/// How a client introduces itself.
pub(crate) struct Introduction<'a> {
    pub(crate) signed_by: Option<&'a Authority>,
    pub(crate) common_name: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) will: Option<LastWill>,
    /// The cluster that the certificate is for.
    pub(crate) cluster: &'a str,
}

impl Fixture {
    /// A client as the agent of `node` is.
    pub(crate) fn client(&self, node: &str) -> (AsyncClient, EventLoop) {
        self.client_with(Introduction {
            signed_by: Some(&self.authority),
            common_name: node,
            client_id: node,
            will: None,
            cluster: "test",
        })
    }

    pub(crate) fn client_with(&self, introduction: Introduction<'_>) -> (AsyncClient, EventLoop) {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.authority.0.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let tls = match introduction.signed_by {
            None => tls.with_no_client_auth(),
            Some(authority) => {
                let (certificate, key) = authority.sign(introduction.common_name, introduction.cluster);
                let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
                tls.with_client_auth_cert(vec![certificate.der().clone()], key).unwrap()
            }
        };
        let mut options = MqttOptions::new(introduction.client_id, "localhost", self.bus.address.port());
        options.set_keep_alive(Duration::from_secs(10));
        options.set_max_packet_size(8 * 1024 * 1024, 8 * 1024 * 1024);
        options.set_transport(Transport::Tls(TlsConfiguration::Rustls(Arc::new(tls))));
        if let Some(will) = introduction.will {
            options.set_last_will(will);
        }
        AsyncClient::new(options, 64)
    }

    /// Revokes the certificate of every client.
    pub(crate) fn revoke(&self) {
        let serial = SERIAL.iter().map(|byte| format!("{byte:02x}")).collect();
        self.revoked.send_replace(Arc::new([serial].into()));
    }

    /// The next message that the controller gets.
    pub(crate) async fn incoming(&mut self) -> (NodeId, Incoming) {
        tokio::time::timeout(PATIENCE, self.bus.incoming.recv()).await.unwrap().unwrap()
    }
}

/// Polls until a packet is what the test waits for; an error of the connection is the answer too.
pub(crate) async fn until(
    events: &mut EventLoop,
    wanted: impl Fn(&Packet) -> bool,
) -> Result<Packet, rumqttc::ConnectionError> {
    let search = async {
        loop {
            if let Event::Incoming(packet) = events.poll().await?
                && wanted(&packet)
            {
                return Ok(packet);
            }
        }
    };
    tokio::time::timeout(PATIENCE, search).await.unwrap()
}

pub(crate) async fn connected(events: &mut EventLoop) {
    until(events, |packet| matches!(packet, Packet::ConnAck(_))).await.unwrap();
}

/// Subscribes and waits for the answer: true if granted.
pub(crate) async fn subscribe(client: &AsyncClient, events: &mut EventLoop, filter: &str) -> bool {
    client.subscribe(filter, QoS::AtLeastOnce).await.unwrap();
    let answer = until(events, |packet| matches!(packet, Packet::SubAck(_))).await.unwrap();
    let Packet::SubAck(answer) = answer else { unreachable!("filtered above") };
    answer.return_codes.iter().all(|code| matches!(code, rumqttc::SubscribeReasonCode::Success(_)))
}
