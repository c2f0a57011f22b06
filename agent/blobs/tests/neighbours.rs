//! Two nodes of a cluster, a registry between them, and strangers.

#[path = "pulls/registry.rs"]
mod registry;
#[path = "pulls/site.rs"]
mod site;

use edgeloom_blobs::{Counts, Digest, Grants, Neighbours, Proxy, Sources, Store};
use edgeloom_common::ids::NodeId;
use edgeloom_common::join::node_name;
use edgeloom_common::units::Bytes as Size;
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use registry::Registry;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use site::{blob, bytes, layer, manifest};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

const BUDGET: Size = Size(4 << 20);

struct Cluster(CertifiedIssuer<'static, KeyPair>);

struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Cluster {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Both sides of a node's TLS, with a certificate of this cluster.
    fn tls(&self, node: &str) -> Tls {
        let key = KeyPair::generate().unwrap();
        let name = node_name(&node.parse().unwrap());
        let mut params = CertificateParams::new(vec![name]).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let chain = vec![params.signed_by(&key, &self.0).unwrap().der().clone()];
        let key = || PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let roots = Arc::new(roots);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(Arc::clone(&roots))
            .with_client_auth_cert(chain.clone(), key())
            .unwrap();
        let asks = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider)).build().unwrap();
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(asks)
            .with_single_cert(chain, key())
            .unwrap();
        Tls { client: Arc::new(client), server: Arc::new(server) }
    }
}

struct Node {
    name: NodeId,
    proxy: Proxy,
    sources: Sources,
    neighbours: Neighbours,
    serves: SocketAddr,
    folder: tempfile::TempDir,
}

impl Node {
    async fn new(name: &str, tls: Tls) -> Self {
        let (pulls, asked) = (
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
        );
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), BUDGET).unwrap();
        let sources = Sources::new(name.parse().unwrap(), Some(tls.client));
        let proxy = Proxy::new(store.clone(), sources.clone(), pulls.local_addr().unwrap());
        let neighbours = Neighbours::new(store, tls.server);
        let serves = asked.local_addr().unwrap();
        tokio::spawn(proxy.clone().serve(pulls));
        tokio::spawn(neighbours.clone().serve(asked));
        Self { name: name.parse().unwrap(), proxy, sources, neighbours, serves, folder }
    }

    /// Asks this one first from now on.
    fn knows(&self, other: &Self) {
        self.sources.set(BTreeMap::from([(other.name.clone(), other.serves)]));
    }

    fn grants(&self, other: &Self, images: &[Digest]) {
        let images: BTreeSet<Digest> = images.iter().copied().collect();
        self.neighbours.grant(Grants::from([(other.name.clone(), images)]));
    }

    /// What Docker does for an image of one layer; where its bytes came from.
    async fn pull(&self, registry: &Registry, image: &Image) -> Option<Counts> {
        let ticket = self.proxy.admit(site::upstream(registry, None));
        assert_eq!(bytes(manifest(&ticket, &image.manifest).await).await.unwrap(), image.text);
        let data = bytes(blob(&ticket, &image.layer, None).await).await.ok()?;
        (data == image.data).then(|| ticket.counts())
    }
}

struct Image {
    manifest: Digest,
    text: String,
    layer: Digest,
    data: Vec<u8>,
}

fn image(registry: &Registry, length: u32) -> Image {
    image_on(registry, None, length)
}

/// Of one layer, on top of that of another image.
fn image_on(registry: &Registry, base: Option<&Image>, length: u32) -> Image {
    let data = layer(length);
    let layer = registry.hold(&data);
    let layers: Vec<String> = base
        .map(|base| base.layer)
        .into_iter()
        .chain([layer])
        .map(|it| format!(r#"{{"digest":"{it}"}}"#))
        .collect();
    let text =
        format!(r#"{{"schemaVersion":2,"config":{{"digest":"{layer}"}},"layers":[{}]}}"#, layers.join(","));
    Image { manifest: registry.hold(text.as_bytes()), text, layer, data }
}

/// An index that leads to this image alone.
fn index(registry: &Registry, image: &Image) -> (Digest, String) {
    let text = format!(r#"{{"schemaVersion":2,"manifests":[{{"digest":"{}"}}]}}"#, image.manifest);
    (registry.hold(text.as_bytes()), text)
}

fn all_from_registry(length: u64) -> Counts {
    Counts { registry: Size(length), ..Counts::default() }
}

fn all_from_neighbour(length: u64) -> Counts {
    Counts { neighbours: Size(length), ..Counts::default() }
}

/// The status of a node's answer when another one hands something over.
async fn put_to(
    tls: &Arc<ClientConfig>,
    address: SocketAddr,
    (from, to): (&str, &str),
    (path, body): (&str, &[u8]),
) -> u16 {
    let name = node_name(&to.parse().unwrap()).try_into().unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let stream = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::put(path).header("host", to).header("edgeloom-node", from);
    let request = request.body(Full::new(Bytes::copy_from_slice(body))).unwrap();
    sender.send_request(request).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn what_a_neighbour_has_and_may_give_does_not_cross_the_uplink_again() {
    let (cluster, registry) = (Cluster::new(), Registry::start().await);
    let (n1, n2) = (Node::new("n1", cluster.tls("n1")).await, Node::new("n2", cluster.tls("n2")).await);
    let (granted, other) = (image(&registry, 300_000), image(&registry, 200_000));
    for image in [&granted, &other] {
        let length = image.data.len() as u64;
        assert_eq!(n2.pull(&registry, image).await, Some(all_from_registry(length)));
    }
    n1.knows(&n2);
    n2.grants(&n1, &[granted.manifest]);
    assert_eq!(n1.pull(&registry, &granted).await, Some(all_from_neighbour(300_000)));
    assert_eq!(n1.pull(&registry, &other).await, Some(all_from_registry(200_000)), "not granted");
    assert_eq!(registry.sent(&granted.layer), 300_000);
}

#[tokio::test]
async fn a_base_layer_is_given_for_an_image_that_the_neighbour_never_had() {
    let (cluster, registry) = (Cluster::new(), Registry::start().await);
    let (n1, n2) = (Node::new("n1", cluster.tls("n1")).await, Node::new("n2", cluster.tls("n2")).await);
    let base = image(&registry, 300_000);
    let above = image_on(&registry, Some(&base), 200_000);
    let (index, index_text) = index(&registry, &above);
    n2.pull(&registry, &base).await.unwrap();
    n1.knows(&n2);
    // The grant names what the job names: an index, as a rule.
    n2.grants(&n1, &[index]);
    let ticket = n1.proxy.admit(site::upstream(&registry, None));
    assert_eq!(bytes(manifest(&ticket, &index).await).await.unwrap(), index_text);
    assert_eq!(bytes(manifest(&ticket, &above.manifest).await).await.unwrap(), above.text);
    for image in [&base, &above] {
        assert_eq!(bytes(blob(&ticket, &image.layer, None).await).await.unwrap(), image.data);
    }
    let counts = Counts { registry: Size(200_000), neighbours: Size(300_000), ..Counts::default() };
    assert_eq!(ticket.counts(), counts);
    assert_eq!(registry.sent(&base.layer), 300_000, "once over the uplink");
}

#[tokio::test]
async fn a_manifest_is_taken_only_for_an_image_that_is_granted_to_who_hands_it_over() {
    let (cluster, registry) = (Cluster::new(), Registry::start().await);
    let (n1, n2) = (cluster.tls("n1"), Node::new("n2", cluster.tls("n2")).await);
    let held = image(&registry, 100_000);
    n2.pull(&registry, &held).await.unwrap();
    let (granted, other) = (image_on(&registry, Some(&held), 10), image_on(&registry, Some(&held), 20));
    let large = vec![b' '; 100_000];
    n2.neighbours.grant(Grants::from([(
        "n1".parse().unwrap(),
        BTreeSet::from([granted.manifest, Digest::of(&large)]),
    )]));
    let put = async |digest: &Digest, text: &[u8]| {
        put_to(&n1.client, n2.serves, ("n1", "n2"), (&format!("/manifests/{digest}"), text)).await
    };
    assert_eq!(put(&other.manifest, other.text.as_bytes()).await, 403, "not granted");
    assert_eq!(put(&granted.manifest, other.text.as_bytes()).await, 403, "another digest");
    assert_eq!(put(&Digest::of(&large), &large).await, 403, "larger than any manifest");
    assert_eq!(put(&granted.manifest, granted.text.as_bytes()).await, 201);
}

#[tokio::test]
async fn neither_a_stranger_nor_another_node_gets_what_is_granted_to_one() {
    let (cluster, registry) = (Cluster::new(), Registry::start().await);
    let n2 = Node::new("n2", cluster.tls("n2")).await;
    let image = image(&registry, 100_000);
    n2.pull(&registry, &image).await.unwrap();
    let stranger = Node::new("n1", Cluster::new().tls("n1")).await;
    let impostor = Node::new("n1", cluster.tls("n3")).await;
    let other = Node::new("n4", cluster.tls("n4")).await;
    n2.grants(&stranger, &[image.manifest]);
    for node in [stranger, impostor, other] {
        node.knows(&n2);
        assert_eq!(node.pull(&registry, &image).await, Some(all_from_registry(100_000)), "{}", node.name);
    }
}

#[tokio::test]
async fn a_neighbour_that_lacks_it_or_is_gone_costs_a_question() {
    let (cluster, registry) = (Cluster::new(), Registry::start().await);
    let (n1, n2) = (Node::new("n1", cluster.tls("n1")).await, Node::new("n2", cluster.tls("n2")).await);
    let image_of_n1 = image(&registry, 100_000);
    n1.knows(&n2);
    n2.grants(&n1, &[image_of_n1.manifest]);
    assert_eq!(n1.pull(&registry, &image_of_n1).await, Some(all_from_registry(100_000)));
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    n1.sources.set(BTreeMap::from([(n2.name.clone(), nobody)]));
    let image = image(&registry, 50_000);
    assert_eq!(n1.pull(&registry, &image).await, Some(all_from_registry(50_000)));
}

#[tokio::test]
async fn wrong_bytes_of_a_neighbour_fail_one_pull_and_the_next_one_asks_the_registry() {
    let (cluster, registry) = (Cluster::new(), Registry::start().await);
    let (n1, n2) = (Node::new("n1", cluster.tls("n1")).await, Node::new("n2", cluster.tls("n2")).await);
    let image = image(&registry, 100_000);
    n2.pull(&registry, &image).await.unwrap();
    // A card that lost what it was given.
    let hex = image.layer.to_string().split_off(7);
    std::fs::write(n2.folder.path().join("whole").join(hex), vec![0; 100_000]).unwrap();
    n1.knows(&n2);
    n2.grants(&n1, &[image.manifest]);
    assert_eq!(n1.pull(&registry, &image).await, None);
    assert_eq!(n1.pull(&registry, &image).await, Some(all_from_registry(100_000)));
}
