//! The two programs as they are installed: the daemon by its configuration file, the command line
//! against its API.

#[path = "daemon/images.rs"]
mod images;
#[path = "daemon/secrets.rs"]
mod secrets;
#[path = "daemon/usage.rs"]
mod usage;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rumqttc::{Client, Connection, Event, MqttOptions, Packet, QoS, TlsConfiguration, Transport};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

const DAEMON: &str = env!("CARGO_BIN_EXE_edgeloom-controller");
const COMMAND_LINE: &str = env!("CARGO_BIN_EXE_edgeloom");

/// Signs certificates by common name.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(&self, common_name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        (params.signed_by(&key, &self.0).unwrap(), key)
    }

    /// Writes authority, certificate and key as the configuration names them.
    fn write(&self, folder: &Path) {
        let (certificate, key) = self.sign("controller");
        std::fs::write(folder.join("ca.pem"), self.0.pem()).unwrap();
        std::fs::write(folder.join("controller.pem"), certificate.pem()).unwrap();
        std::fs::write(folder.join("controller.key"), key.serialize_pem()).unwrap();
    }
}

fn write_config(folder: &Path, more: &str) -> std::path::PathBuf {
    let path = |name: &str| folder.join(name).display().to_string();
    let (state, ca, certificate, key) =
        (path("state"), path("ca.pem"), path("controller.pem"), path("controller.key"));
    let text = format!(
        "cluster = \"test\"\nstate_dir = {state:?}\n[http]\nlisten = \"127.0.0.1:0\"\ninsecure = true\n\
         [mqtt]\nlisten = \"127.0.0.1:0\"\nca = {ca:?}\ncertificate = {certificate:?}\nkey = {key:?}\n\
         [pool]\nnetwork = \"10.77.0.0/16\"\n{more}"
    );
    let file = folder.join("controller.toml");
    std::fs::write(&file, text).unwrap();
    file
}

struct Daemon {
    child: Child,
    server: String,
    mqtt: SocketAddr,
    authority: Authority,
    log: Arc<Mutex<String>>,
    folder: TempDir,
}

impl Daemon {
    fn start() -> Self {
        Self::configured("", "info")
    }

    /// Starts one on free ports with more lines of configuration; its log says which.
    fn configured(more: &str, level: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new();
        authority.write(folder.path());
        let config = write_config(folder.path(), more);
        let mut child = Command::new(DAEMON)
            .args(["run", "--config"])
            .arg(config)
            .env("EDGELOOM_LOG", level)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let (server, mqtt) = loop {
            let mut line = String::new();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "the daemon ended before it was up");
            let entry: serde_json::Value = serde_json::from_str(&line).unwrap();
            let address = |key: &str| entry["fields"][key].as_str();
            if let (Some(http), Some(mqtt)) = (address("http"), address("mqtt")) {
                break (format!("http://{http}"), mqtt.parse().unwrap());
            }
        };
        let text = Arc::new(Mutex::new(String::new()));
        let written = Arc::clone(&text);
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                written.lock().unwrap().push_str(&line);
            }
        });
        Self { child, server, mqtt, authority, log: text, folder }
    }

    /// A client as the agent of `node` is.
    fn agent(&self, node: &str) -> (Client, Connection) {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.authority.0.der().clone()).unwrap();
        let (certificate, key) = self.authority.sign(node);
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let mut options = MqttOptions::new(node, "localhost", self.mqtt.port());
        options.set_transport(Transport::Tls(TlsConfiguration::Rustls(Arc::new(tls))));
        Client::new(options, 8)
    }

    fn edgeloom(&self, arguments: &[&str], input: &str) -> Output {
        edgeloom(&self.server, arguments, input)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn edgeloom(server: &str, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(COMMAND_LINE)
        .args(arguments)
        .env("EDGELOOM_SERVER", server)
        .env("EDGELOOM_CONTEXT", "/does/not/exist")
        .env_remove("EDGELOOM_TOKEN")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads no input may have ended already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn an_empty_cluster_is_shown_and_the_daemon_stops_when_asked() {
    let mut daemon = Daemon::start();
    let jobs = daemon.edgeloom(&["jobs", "-o", "json"], "");
    assert_eq!(jobs.status.code(), Some(0), "{}", errors(&jobs));
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&jobs.stdout).unwrap()["jobs"],
        serde_json::json!([])
    );
    let nodes = daemon.edgeloom(&["nodes"], "");
    assert!(String::from_utf8(nodes.stdout).unwrap().starts_with("NODE"));
    let pid = daemon.child.id().to_string();
    assert!(Command::new("sh").args(["-c", "kill -TERM \"$0\"", &pid]).status().unwrap().success());
    assert_eq!(daemon.child.wait().unwrap().code(), Some(0));
}

#[test]
fn refusals_have_lines_and_exit_codes() {
    let daemon = Daemon::start();
    let bad = "kind: Job\nname: x\nsource: { node: n1, item: 1KB, rate: 10 }\ntasks: {}\n";
    for (command, code) in [("plan", 255), ("run", 1)] {
        let output = daemon.edgeloom(&[command, "-"], bad);
        assert_eq!(output.status.code(), Some(code), "{}", errors(&output));
        assert!(errors(&output).contains("line 3: source.rate: "), "{}", errors(&output));
    }
    for command in ["job", "stop", "explain", "logs", "drain", "cordon", "uncordon"] {
        let output = daemon.edgeloom(&[command, "ghost"], "");
        assert_eq!(output.status.code(), Some(1));
        assert!(errors(&output).contains("ghost"), "{}", errors(&output));
    }
    let consolidation = daemon.edgeloom(&["plan", "--consolidate"], "");
    assert_eq!(consolidation.status.code(), Some(0), "{}", errors(&consolidation));
    for wrong in
        [&["plan"][..], &["plan", "-", "--consolidate"], &["plan", "-", "--apply"], &["drain", "No Node"]]
    {
        assert_eq!(daemon.edgeloom(wrong, "").status.code(), Some(64), "{wrong:?}");
    }
    let missing = daemon.edgeloom(&["run", "/does/not/exist.yaml"], "");
    assert!(errors(&missing).contains("/does/not/exist.yaml"));
}

#[test]
fn an_absent_controller_is_named_with_the_remedy() {
    let output = edgeloom("http://127.0.0.1:9", &["jobs"], "");
    assert_eq!(output.status.code(), Some(1));
    let text = errors(&output);
    assert!(text.contains("http://127.0.0.1:9") && text.contains("--server"), "{text}");
    assert!(errors(&edgeloom("ftp://x", &["jobs"], "")).contains("no https:// or http:// address"));
    assert_eq!(edgeloom("http://127.0.0.1:9", &["plan", "-"], "kind: Job").status.code(), Some(255));
    assert_eq!(edgeloom("http://127.0.0.1:9", &["jbos"], "").status.code(), Some(64));
}

#[test]
fn a_refused_configuration_ends_the_daemon_with_64() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("controller.toml");
    std::fs::write(&file, "cluster = \"Home!\"\nlisten = 1\n").unwrap();
    let output = Command::new(DAEMON).args(["run", "--config"]).arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    for field in ["cluster:", "state_dir:", "http:", "mqtt:", "pool:", "listen:"] {
        assert!(errors(&output).contains(field), "{field} in {}", errors(&output));
    }
}

#[test]
fn agents_see_the_controllers_presence_and_the_controller_sees_theirs() {
    let daemon = Daemon::start();
    let (client, mut connection) = daemon.agent("n1");
    client.subscribe("edgeloom/v1/controller/status", QoS::AtLeastOnce).unwrap();
    let born = br#"{"schema":1,"online":true,"session":1}"#;
    client.publish("edgeloom/v1/n1/status", QoS::AtLeastOnce, true, born.to_vec()).unwrap();
    let (mut seen, mut acknowledged) = (None, false);
    for event in connection.iter() {
        match event.unwrap() {
            Event::Incoming(Packet::Publish(publish)) => seen = Some(publish.payload),
            Event::Incoming(Packet::PubAck(_)) => acknowledged = true,
            _ => {}
        }
        if acknowledged && seen.is_some() {
            break;
        }
    }
    let presence: serde_json::Value = serde_json::from_slice(&seen.unwrap()).unwrap();
    assert_eq!(presence, serde_json::json!({ "schema": 1, "online": true, "session": 0 }));
    // The acknowledgement says that the message was handed on, not that it was looked at already.
    loop {
        let nodes = daemon.edgeloom(&["nodes", "-o", "json"], "");
        let nodes: serde_json::Value = serde_json::from_slice(&nodes.stdout).unwrap();
        if nodes["nodes"][0]["name"] == "n1" && nodes["nodes"][0]["online"] == true {
            break;
        }
    }
    let events = daemon.edgeloom(&["events"], "");
    let text = String::from_utf8(events.stdout).unwrap();
    assert!(text.starts_with("TIME") && text.contains("node-up  node n1 is online"), "{text}");
    let none = daemon.edgeloom(&["events", "--job", "ghost", "-o", "json"], "");
    let none: serde_json::Value = serde_json::from_slice(&none.stdout).unwrap();
    assert_eq!(none["events"], serde_json::json!([]));
}

/// Tells the controller of node n1 and waits until it is known, so that the state is not empty.
fn introduce_a_node(daemon: &Daemon) {
    let (client, mut connection) = daemon.agent("n1");
    let born = br#"{"schema":1,"online":true,"session":1}"#;
    client.publish("edgeloom/v1/n1/status", QoS::AtLeastOnce, true, born.to_vec()).unwrap();
    connection.iter().find(|event| matches!(event, Ok(Event::Incoming(Packet::PubAck(_))))).unwrap().unwrap();
    let known = || {
        let nodes = daemon.edgeloom(&["nodes", "-o", "json"], "");
        let nodes: serde_json::Value = serde_json::from_slice(&nodes.stdout).unwrap();
        nodes["nodes"][0]["name"] == "n1"
    };
    while !known() {}
}

#[test]
fn a_damaged_state_is_refused_with_65_then_repaired_and_replaced_by_an_export() {
    let mut daemon = Daemon::start();
    introduce_a_node(&daemon);
    let folder = daemon.folder.path().to_owned();
    let (config, document) = (folder.join("controller.toml"), folder.join("state.export"));
    let upkeep = |arguments: &[&str]| {
        let (verb, rest) = arguments.split_first().unwrap();
        Command::new(DAEMON).arg(verb).arg("--config").arg(&config).args(rest).output().unwrap()
    };
    let document = document.to_str().unwrap();
    let exported = upkeep(&["export", document]);
    assert_eq!(exported.status.code(), Some(0), "{}", errors(&exported));
    let second = upkeep(&["repair"]);
    assert!(errors(&second).contains("systemctl stop edgeloom-controller"), "{}", errors(&second));
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();

    std::fs::remove_dir_all(folder.join("state/store")).unwrap();
    for name in ["journal", "journal.copy"] {
        let file = folder.join("state").join(name);
        let mut content = std::fs::read(&file).unwrap();
        content[20] ^= 1;
        std::fs::write(&file, content).unwrap();
    }
    let refused = upkeep(&["run"]);
    assert_eq!(refused.status.code(), Some(65), "{}", errors(&refused));
    for part in ["record 1", "bytes 0 to", "repair --dry-run", "Nothing was changed"] {
        assert!(errors(&refused).contains(part), "{part} in {}", errors(&refused));
    }
    let repaired = upkeep(&["repair"]);
    assert_eq!(repaired.status.code(), Some(0), "{}", errors(&repaired));
    let said = |output: &Output| String::from_utf8(output.stdout.clone()).unwrap();
    assert!(said(&repaired).contains("record 1"), "{}", said(&repaired));
    assert!(said(&upkeep(&["repair"])).contains("nothing is lost"));

    let occupied = upkeep(&["import", document]);
    assert_eq!(occupied.status.code(), Some(1));
    assert!(errors(&occupied).contains("--replace"), "{}", errors(&occupied));
    let imported = upkeep(&["import", "--replace", document]);
    assert_eq!(imported.status.code(), Some(0), "{}", errors(&imported));
    let epoch = |output: &Output| {
        let said = said(output);
        let (_, behind) = said.rsplit_once("epoch ").unwrap();
        behind.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    // A repair leaves it to the start, which asks the nodes first.
    assert!(epoch(&repaired) < epoch(&imported));
}
