//! Real certificates, judged at times of the test's own.

use super::*;
use edgeloom_common::join::CONTROLLER_NAME;
use edgeloom_common::secret::Secret;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{ServerName, UnixTime};
use std::time::Duration;
use time::OffsetDateTime;

const DAY_S: u64 = 24 * 3600;
/// The last time that a controller told.
const GOOD_S: u64 = RELEASED_S + 100 * DAY_S;

fn date(seconds: u64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).unwrap()).unwrap()
}

struct Authority(CertifiedIssuer<'static, KeyPair>);

/// What a certificate says.
struct Leaf {
    name: &'static str,
    usage: ExtendedKeyUsagePurpose,
    from_s: u64,
    to_s: u64,
}

/// The controller's, as of the last time told.
const CONTROLLER: Leaf = Leaf {
    name: CONTROLLER_NAME,
    usage: ExtendedKeyUsagePurpose::ServerAuth,
    from_s: GOOD_S - DAY_S,
    to_s: GOOD_S + 60 * DAY_S,
};

impl Authority {
    fn new(from_s: u64) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        (params.not_before, params.not_after) = (date(from_s), date(from_s + 3650 * DAY_S));
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(&self, leaf: &Leaf) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![leaf.name.to_owned()]).unwrap();
        params.extended_key_usages = vec![leaf.usage.clone()];
        (params.not_before, params.not_after) = (date(leaf.from_s), date(leaf.to_s));
        (params.signed_by(&key, &self.0).unwrap(), key)
    }

    /// A node that trusts this authority.
    fn member(&self) -> Server<Arc<Live>> {
        let leaf = Leaf { name: "n1", usage: ExtendedKeyUsagePurpose::ClientAuth, ..CONTROLLER };
        let (certificate, key) = self.sign(&leaf);
        let membership = Membership {
            cluster: "home".parse().unwrap(),
            node: "n1".parse().unwrap(),
            host: "master".to_owned(),
            api_port: 7070,
            mqtt_port: 8883,
            certificate: certificate.pem(),
            key: Secret::from(key.serialize_pem()),
            authorities: self.0.pem(),
            good_s: GOOD_S,
        };
        let present = RwLock::new(Present::new(membership).unwrap());
        Server::controller(Arc::new(Live { state_dir: PathBuf::from("/does/not/exist"), present }))
    }
}

impl Server<Arc<Live>> {
    fn trusts(&self, server: &rcgen::Certificate, at_s: u64) -> bool {
        let now = UnixTime::since_unix_epoch(Duration::from_secs(at_s));
        let name = ServerName::try_from("10.0.0.7").unwrap();
        self.verify_server_cert(server.der(), &[], &name, &[], now).is_ok()
    }
}

#[test]
fn the_controller_is_known_at_any_address_and_nobody_else_is_taken_for_it() {
    let (ours, other) = (Authority::new(GOOD_S - 9 * DAY_S), Authority::new(GOOD_S - 9 * DAY_S));
    let member = ours.member();
    assert!(member.trusts(&ours.sign(&CONTROLLER).0, GOOD_S));
    assert!(!member.trusts(&other.sign(&CONTROLLER).0, GOOD_S), "another cluster's");
    let node = Leaf { usage: ExtendedKeyUsagePurpose::ClientAuth, ..CONTROLLER };
    assert!(!member.trusts(&ours.sign(&node).0, GOOD_S), "a node that plays the controller");
    let named = Leaf { name: "n2", ..CONTROLLER };
    assert!(!member.trusts(&ours.sign(&named).0, GOOD_S), "a server of another name");
}

#[test]
fn real_certificates_are_judged_as_the_clock_module_says() {
    let ours = Authority::new(GOOD_S - 9 * DAY_S);
    let member = ours.member();
    let present = ours.sign(&CONTROLLER).0;
    for wrong_s in [0, GOOD_S - 50 * DAY_S, GOOD_S + 20 * 365 * DAY_S] {
        assert!(member.trusts(&present, wrong_s), "{wrong_s}");
    }
    assert!(!member.trusts(&present, GOOD_S + 61 * DAY_S), "expired by a clock that may be right");
    let later = Leaf { from_s: GOOD_S + 30 * DAY_S, to_s: GOOD_S + 90 * DAY_S, ..CONTROLLER };
    assert!(member.trusts(&ours.sign(&later).0, 0), "made while this node was off");
    let earlier = Leaf { from_s: GOOD_S - 8 * DAY_S, to_s: GOOD_S - DAY_S, ..CONTROLLER };
    for any_s in [0, GOOD_S - 2 * DAY_S, GOOD_S, GOOD_S + 20 * 365 * DAY_S] {
        assert!(!member.trusts(&ours.sign(&earlier).0, any_s), "expired before the last time told: {any_s}");
    }
}
