//! The session against a real broker (Mosquitto, from Debian) with mutual TLS.

use edgeloom_agent::config::IdentityFiles;
use edgeloom_agent::session::{Credentials, SessionSettings, run};
use edgeloom_agent::wire::{Down, Up};
use edgeloom_common::desired::{DesiredState, Pool, Version};
use edgeloom_common::report::{Inventory, Observed, Status};
use edgeloom_common::samples;
use edgeloom_common::topics::{PACKET_MAX, Uplink, command, desired};
use edgeloom_common::units::MilliCores;
use edgeloom_prepare::lab_allowed;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rumqttc::{AsyncClient, Event, EventLoop, MqttOptions, Packet, Publish, QoS, Transport};
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// A wait longer than this is a failure; nothing is measured with it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether tests with the broker run; it is told to stay root, which reads the private folder.
#[track_caller]
fn lab() -> bool {
    lab_allowed(&["mosquitto"])
}

/// A broker with a certificate authority of its own.
struct Broker {
    dir: TempDir,
    port: u16,
    child: Option<Child>,
}

impl Broker {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        write_certificates(dir.path());
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let at = dir.path().display();
        let config = format!(
            "user root\npersistence false\nlistener {port} 127.0.0.1\nrequire_certificate true\n\
             use_identity_as_username true\ncafile {at}/ca.pem\ncertfile {at}/broker.pem\nkeyfile {at}/broker.key\n"
        );
        fs::write(dir.path().join("mosquitto.conf"), config).unwrap();
        let mut broker = Self { dir, port, child: None };
        broker.run();
        broker
    }

    fn run(&mut self) {
        let child = Command::new("mosquitto")
            .arg("-c")
            .arg(self.dir.path().join("mosquitto.conf"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("lab() has prepared mosquitto");
        self.child = Some(child);
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    fn settings(&self, node: &str) -> SessionSettings {
        SessionSettings {
            node: node.parse().unwrap(),
            host: "127.0.0.1".to_owned(),
            port: self.port,
            credentials: Credentials::Files(IdentityFiles {
                ca: self.dir.path().join("ca.pem"),
                certificate: self.dir.path().join("node.pem"),
                key: self.dir.path().join("node.key"),
            }),
        }
    }

    /// The other side: subscribed to all that nodes say.
    fn controller(&self) -> Controller {
        let read = |name: &str| fs::read(self.dir.path().join(name)).unwrap();
        let mut options = MqttOptions::new("controller", "127.0.0.1", self.port);
        let identity = Some((read("node.pem"), read("node.key")));
        options.set_transport(Transport::tls(read("ca.pem"), identity, None));
        options.set_max_packet_size(PACKET_MAX, PACKET_MAX);
        let (client, events) = AsyncClient::new(options, 64);
        Controller { client, events }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop();
    }
}

fn write_certificates(dir: &Path) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    fs::write(dir.join("ca.pem"), authority.pem()).unwrap();
    for (name, common_name) in [("broker", "broker"), ("node", "n1")] {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        fs::write(dir.join(format!("{name}.pem")), certificate.pem()).unwrap();
        fs::write(dir.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}

struct Controller {
    client: AsyncClient,
    events: EventLoop,
}

impl Controller {
    /// Polls until `wanted` accepts a message; the broker may be away meanwhile.
    async fn wait_for<T>(&mut self, mut wanted: impl FnMut(&Publish) -> Option<T>) -> T {
        let search = async {
            loop {
                match self.events.poll().await {
                    Ok(Event::Incoming(Packet::ConnAck(_))) => {
                        self.client.try_subscribe("edgeloom/v1/#", QoS::AtLeastOnce).unwrap();
                    }
                    Ok(Event::Incoming(Packet::Publish(message))) => {
                        if let Some(found) = wanted(&message) {
                            return found;
                        }
                    }
                    Ok(_) => {}
                    Err(_) => sleep(Duration::from_millis(100)).await,
                }
            }
        };
        timeout(PATIENCE, search).await.expect("the message comes")
    }

    /// Returns the number of the session.
    async fn wait_for_presence(&mut self, online: bool) -> u64 {
        let topic = Uplink::Status.topic(&"n1".parse().unwrap());
        let status = |message: &Publish| {
            let status: Status = serde_json::from_slice(&message.payload).ok()?;
            (message.topic == topic && status.online == online).then_some(status)
        };
        self.wait_for(status).await.session
    }

    /// Says something to the node and polls until it has left.
    async fn say(&mut self, topic: &str, retain: bool, payload: Vec<u8>) {
        self.client.try_publish(topic, QoS::AtLeastOnce, retain, payload).unwrap();
        let acknowledged = async {
            while !matches!(self.events.poll().await.unwrap(), Event::Incoming(Packet::PubAck(_))) {}
        };
        timeout(PATIENCE, acknowledged).await.expect("the broker takes it");
    }
}

/// A running session and its ends.
struct Node {
    up: mpsc::Sender<Up>,
    down: mpsc::Receiver<Down>,
    task: JoinHandle<()>,
}

impl Node {
    fn start(broker: &Broker) -> Self {
        let (up, up_end) = mpsc::channel(8);
        let (down_end, down) = mpsc::channel(1);
        let settings = broker.settings("n1");
        let (_, unchanging) = watch::channel(0);
        let task = tokio::spawn(async move { run(settings, up_end, down_end, unchanging).await });
        Self { up, down, task }
    }

    async fn next(&mut self) -> Down {
        timeout(PATIENCE, self.down.recv()).await.expect("something comes").expect("the session runs")
    }

    async fn next_generation(&mut self) -> u64 {
        loop {
            if let Down::Desired(received) = self.next().await {
                return received.document.generation;
            }
        }
    }
}

fn document(generation: u64) -> DesiredState {
    let network = Ipv4Addr::new(10, 77, 0, 0);
    let pool = Pool { network, prefix_len: 16, gateway: Ipv4Addr::new(10, 77, 0, 1) };
    let empty = DesiredState::empty("home".parse().unwrap(), "n1".parse().unwrap(), pool);
    DesiredState { generation, ..empty }
}

fn observed(generation: u64) -> Observed {
    samples::observed(Version { epoch: 0, generation }, Vec::new())
}

fn inventory(cores: u32) -> Inventory {
    Inventory { cpu: MilliCores(cores * 1000), ..samples::inventory("home") }
}

#[tokio::test]
async fn presence_is_said_and_the_last_will_says_when_the_node_died() {
    if !lab() {
        return;
    }
    let broker = Broker::start();
    let mut controller = broker.controller();
    let mut node = Node::start(&broker);
    assert!(matches!(node.next().await, Down::Connected));
    let first = controller.wait_for_presence(true).await;

    node.task.abort();
    assert_eq!(controller.wait_for_presence(false).await, first);

    let node = Node::start(&broker);
    let second = controller.wait_for_presence(true).await;
    assert!(first < second);
    drop(node.up);
    assert_eq!(controller.wait_for_presence(false).await, second);
    timeout(PATIENCE, node.task).await.expect("the session ends when the agent does").unwrap();
}

#[tokio::test]
async fn large_documents_pass_and_malformed_ones_are_ignored() {
    if !lab() {
        return;
    }
    let broker = Broker::start();
    let mut controller = broker.controller();
    let mut node = Node::start(&broker);
    controller.wait_for_presence(true).await;
    let topic = desired(&"n1".parse().unwrap());

    let mut large = serde_json::to_vec(&document(1)).unwrap();
    large.resize(300_000, b' ');
    controller.say(&topic, true, large).await;
    assert_eq!(node.next_generation().await, 1);

    for bad in [b"{".to_vec(), b"null".to_vec(), vec![0xff; 1000], vec![b'['; 100_000]] {
        controller.say(&topic, false, bad).await;
    }
    let logs = command(&"n1".parse().unwrap(), "logs", 17);
    controller.say(&logs, false, b"not a command".to_vec()).await;
    controller.say(&logs, false, br#"{"job":"j","task":"t","follow":true,"tail":5}"#.to_vec()).await;
    let asked = command(&"n1".parse().unwrap(), "document", 18);
    controller.say(&asked, false, b"{}".to_vec()).await;
    let heard = loop {
        match node.next().await {
            // That a document does not read is told, too.
            Down::Unread(_) => {}
            other => break other,
        }
    };
    match heard {
        Down::Logs(17, command) => assert_eq!((command.follow, command.tail), (true, Some(5))),
        other => panic!("unexpected {other:?}"),
    }
    assert!(matches!(node.next().await, Down::DocumentAsked));
}

#[tokio::test]
async fn a_broker_that_restarts_is_found_again_with_everything_said_anew() {
    if !lab() {
        return;
    }
    let mut broker = Broker::start();
    let mut controller = broker.controller();
    let mut node = Node::start(&broker);
    assert!(matches!(node.next().await, Down::Connected));
    let before = controller.wait_for_presence(true).await;

    broker.stop();
    // Said while nobody hears it: only the newest arrives.
    for cores in 1..=20 {
        node.up.send(Up::Inventory(Box::new(inventory(cores)))).await.unwrap();
    }
    assert!(matches!(node.next().await, Down::Disconnected(_)));
    broker.run();

    assert!(matches!(node.next().await, Down::Connected));
    let (status, topic) =
        [Uplink::Status, Uplink::Inventory].map(|kind| kind.topic(&"n1".parse().unwrap())).into();
    let (mut session, mut first) = (None, None);
    // A controller that is back later gets both from the broker, in any order.
    let both = |message: &Publish| {
        if message.topic == status {
            session = Some(serde_json::from_slice::<Status>(&message.payload).unwrap().session);
        } else if message.topic == topic {
            first.get_or_insert_with(|| serde_json::from_slice::<Inventory>(&message.payload).unwrap());
        }
        session.zip(first.clone())
    };
    let (session, inventory_heard) = controller.wait_for(both).await;
    assert!(before < session, "a Will of before is older than this birth");
    assert_eq!(inventory_heard, inventory(20));

    controller.say(&desired(&"n1".parse().unwrap()), true, serde_json::to_vec(&document(9)).unwrap()).await;
    assert_eq!(node.next_generation().await, 9);
}

#[tokio::test]
async fn a_busy_agent_does_not_hold_up_the_connection() {
    if !lab() {
        return;
    }
    let broker = Broker::start();
    let mut controller = broker.controller();
    let mut node = Node::start(&broker);
    controller.wait_for_presence(true).await;
    let topic = desired(&"n1".parse().unwrap());
    // Nobody takes from `node.down`, which has room for one.
    for generation in 1..=200 {
        controller.say(&topic, true, serde_json::to_vec(&document(generation)).unwrap()).await;
    }
    node.up.send(Up::Observed(observed(5))).await.unwrap();
    let observed_topic = Uplink::Observed.topic(&"n1".parse().unwrap());
    controller.wait_for(|message| (message.topic == observed_topic).then_some(())).await;
    let mut received = Vec::new();
    while received.last() != Some(&200) {
        received.push(node.next_generation().await);
    }
    assert!(received.len() <= 4, "older documents give way: {received:?}");
}
