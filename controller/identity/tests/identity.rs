//! The handle on a real directory: what survives a restart, what is private, and a rotation to its end.

use edgeloom_common::join::{Context, JoinRequest, RenewRequest, Scope, TokenPurpose, TokenRequest};
use edgeloom_common::secret::Secret;
use edgeloom_identity::{
    Arrival, Carried, CarryError, Existing, Identity, OpenError, Peer, RenewError, RotateError, Settings,
    export, import,
};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn settings(directory: &Path) -> Settings {
    let (cluster, directory) = ("home".parse().unwrap(), directory.join("identity"));
    Settings { cluster, directory, names: vec!["127.0.0.1".to_owned(), "master.lan".to_owned()] }
}

fn request() -> String {
    let key = KeyPair::generate().unwrap();
    CertificateParams::default().serialize_request(&key).unwrap().pem().unwrap()
}

fn token(identity: &Identity, purpose: TokenPurpose) -> Secret {
    let request = TokenRequest { purpose, note: String::new(), lifetime_s: None };
    identity.create_token(request).unwrap().text
}

fn join(identity: &Identity, node: &str) -> (Peer, String) {
    let purpose = TokenPurpose::Join { nodes: Vec::new(), uses: 1, replace: false };
    let token = token(identity, purpose);
    let answer = identity.join(&JoinRequest { token, node: node.parse().unwrap(), request: request() }, 8883);
    let answer = answer.unwrap();
    (peer(identity, &answer.certificate), answer.authorities)
}

fn peer(identity: &Identity, pem: &str) -> Peer {
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    Peer::of(Some(&[certificate]), identity.cluster()).unwrap()
}

fn authorities(pem: &str) -> usize {
    pem.matches("BEGIN CERTIFICATE").count()
}

#[test]
fn everything_survives_a_restart_and_is_private() {
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path());
    let identity = Identity::open(settings.clone()).unwrap();
    assert!(matches!(Identity::open(settings.clone()), Err(OpenError::Lock(_))));
    let read = token(&identity, TokenPurpose::Api { scope: Scope::Read });
    let (peer, _) = join(&identity, "n1");
    assert_eq!(peer.node.as_str(), "n1");
    identity.revoke_node(&peer.node).unwrap();
    identity.refresh_context("https://127.0.0.1:7070".to_owned()).unwrap();
    drop(identity);

    let identity = Identity::open(settings.clone()).unwrap();
    assert_eq!(identity.scope(read.expose()), Some(Scope::Read));
    assert!(identity.revoked().borrow().contains(&peer.serial));
    assert!(matches!(identity.renewal(&peer), Err(RenewError::Revoked { .. })));
    let context: Context = serde_json::from_slice(&std::fs::read(identity.context_path()).unwrap()).unwrap();
    assert_eq!(identity.scope(context.token.expose()), Some(Scope::Admin));
    assert_eq!(context.server, "https://127.0.0.1:7070");
    drop(identity);

    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&settings.directory), 0o700);
    let mut texts = String::new();
    for file in std::fs::read_dir(&settings.directory).unwrap().map(|file| file.unwrap().path()) {
        assert!(file.ends_with("lock") || mode(&file) == 0o600, "{}", file.display());
        if !file.ends_with("admin.json") {
            texts.push_str(&std::fs::read_to_string(&file).unwrap());
        }
    }
    for secret in [&read, &context.token] {
        let secret = secret.expose().rsplit('.').next().unwrap();
        assert!(!texts.contains(secret), "only the hash of a token is kept");
    }
    let other = Settings { cluster: "away".parse().unwrap(), ..settings };
    assert!(matches!(Identity::open(other), Err(OpenError::Cluster { .. })));
}

#[test]
fn half_of_the_state_is_never_made_up_for() {
    for lost in ["registry", "authority"] {
        let directory = tempfile::tempdir().unwrap();
        let settings = settings(directory.path());
        join(&Identity::open(settings.clone()).unwrap(), "n1");
        std::fs::remove_file(settings.directory.join(lost)).unwrap();
        let opened = Identity::open(settings);
        let error = opened.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(lost) && error.contains("is missing"), "{error}");
    }
}

#[test]
fn a_certificate_that_is_not_due_is_not_renewed() {
    let directory = tempfile::tempdir().unwrap();
    let identity = Identity::open(settings(directory.path())).unwrap();
    let (peer, _) = join(&identity, "n1");
    assert!(!identity.renewal(&peer).unwrap().due);
    let renewed = identity.renew(&peer, &RenewRequest { request: request() }, 8883);
    assert!(matches!(renewed, Err(RenewError::NotDue { .. })), "{renewed:?}");
}

#[test]
fn a_rotation_ends_when_every_node_has_shown_a_certificate_of_the_new_authority() {
    let directory = tempfile::tempdir().unwrap();
    let identity = Identity::open(settings(directory.path())).unwrap();
    let (first, bundle) = join(&identity, "n1");
    assert_eq!(authorities(&bundle), 1);
    let mut https = identity.https();
    https.mark_unchanged();
    let view = identity.rotate().unwrap();
    assert_eq!((view.authorities, view.nodes_waiting), (2, vec![first.node.clone()]));
    assert!(https.has_changed().unwrap(), "both authorities are trusted from the next connection on");
    identity.tick().unwrap();
    assert!(matches!(identity.rotate(), Err(RotateError::UnderWay { waiting: 1 })));

    assert!(identity.renewal(&first).unwrap().due);
    let answer = identity.renew(&first, &RenewRequest { request: request() }, 8883).unwrap();
    assert_eq!(authorities(&answer.authorities), 2);
    let second = peer(&identity, &answer.certificate);
    // The answer may have been lost: the first authority stays until the node shows that it was not.
    identity.tick().unwrap();
    assert!(matches!(identity.rotate(), Err(RotateError::UnderWay { waiting: 1 })));
    assert!(!identity.renewal(&second).unwrap().due);
    identity.tick().unwrap();
    let (_, bundle) = join(&identity, "n2");
    assert_eq!(authorities(&bundle), 1, "the first authority has gone");
    assert_ne!(bundle, answer.authorities);
    drop(identity);
    let identity = Identity::open(settings(directory.path())).unwrap();
    assert_eq!(authorities(&join(&identity, "n3").1), 1);
}

#[test]
fn what_is_carried_is_the_same_cluster_and_what_was_there_is_kept_aside() {
    let [from, to] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let (old, new) = (settings(from.path()), settings(to.path()));
    let identity = Identity::open(old.clone()).unwrap();
    let read = token(&identity, TokenPurpose::Api { scope: Scope::Read });
    let (peer, known) = join(&identity, "n1");
    // Also while its controller runs.
    let carry = || export(&old.directory).unwrap();
    let text = serde_json::to_string(&carry()).unwrap();
    assert!(!text.contains(read.expose()) && !format!("{:?}", carry()).contains("BEGIN"));
    let carried = || serde_json::from_str::<Carried>(&text).unwrap();

    drop(Identity::open(new.clone()).unwrap());
    let refused = import(&new, carried(), Existing::Refuse).unwrap_err();
    assert!(matches!(refused, CarryError::Occupied(_)), "{refused}");
    assert_eq!(import(&new, carried(), Existing::Replace).unwrap(), Arrival::Carried);
    assert!(new.directory.join("authority.before").exists());
    let copy = Identity::open(new.clone()).unwrap();
    assert_eq!(copy.scope(read.expose()), Some(Scope::Read));
    assert!(!copy.renewal(&peer).unwrap().due);
    assert_eq!(join(&copy, "n2").1, known, "nodes know it by the same authority");
    assert_eq!(copy.derived_keys(b"x"), identity.derived_keys(b"x"));
    assert_ne!(copy.derived_keys(b"x"), copy.derived_keys(b"y"));
    copy.revoke_node(&peer.node).unwrap();
    assert!(matches!(import(&new, carried(), Existing::Replace), Err(CarryError::Lock(_))));
    drop(copy);
    assert_eq!(import(&new, carried(), Existing::Replace).unwrap(), Arrival::Present);
    let copy = Identity::open(new.clone()).unwrap();
    assert!(copy.revoked().borrow().contains(&peer.serial), "what was revoked since stays revoked");

    let other = Settings { cluster: "away".parse().unwrap(), ..settings(from.path()) };
    assert!(matches!(import(&other, carried(), Existing::Replace), Err(CarryError::Cluster { .. })));
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(export(empty.path()), Err(CarryError::Nothing(_))));
}
