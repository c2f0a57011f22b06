//! Lives of tokens and certificates, on a clock of the test's own.

use super::*;
use edgeloom_common::token::{Fingerprint, SECRET_LEN, secret_text};

const NOW_S: u64 = 1_800_000_000;
const LIFE_S: u64 = 365 * DAY_S;

fn node(name: &str) -> NodeId {
    name.parse().unwrap()
}

fn joining(uses: u32) -> TokenPurpose {
    TokenPurpose::Join { nodes: Vec::new(), uses, replace: false }
}

/// A token that was made at [`NOW_S`].
fn made(registry: &mut Registry, number: u8, purpose: TokenPurpose) -> JoinToken {
    let (id, secret) = (TokenId::new([number; 6]), secret_text([number; SECRET_LEN]));
    let request = TokenRequest { purpose, note: String::new(), lifetime_s: None };
    registry.add_token((id.clone(), &secret), request, NOW_S).unwrap();
    JoinToken { cluster: "home".parse().unwrap(), authority: Fingerprint([0; 32]), id, secret }
}

/// Admits a node and notes it.
fn joins(registry: &mut Registry, token: &JoinToken, name: &str, key: &str) -> Result<String, JoinError> {
    if let Some(before) = registry.admit(token, (&node(name), key), NOW_S)? {
        return Ok(before);
    }
    let certificate = format!("certificate of {name} for {key}");
    let (node, key) = (node(name), key.to_owned());
    registry.add_use(&token.id, Use { node, key, certificate: certificate.clone() });
    Ok(certificate)
}

fn certificate(name: &str, serial: &str, authority: &str, issued_s: u64) -> Certificate {
    Certificate {
        node: node(name),
        serial: serial.to_owned(),
        key: format!("key of {serial}"),
        authority: authority.to_owned(),
        issued_s,
        expires_s: issued_s + LIFE_S,
    }
}

#[test]
fn a_joining_token_lasts_an_hour_and_is_then_refused_as_expired() {
    let mut registry = Registry::default();
    let token = made(&mut registry, 1, joining(2));
    joins(&mut registry, &token, "n1", "k1").unwrap();
    assert!(registry.admit(&token, (&node("n1"), "k1"), NOW_S + 3599).unwrap().is_some());
    let late = registry.admit(&token, (&node("n2"), "k2"), NOW_S + 3660);
    assert!(matches!(late, Err(JoinError::Expired { ago_s: 60, .. })), "{late:?}");
    // Not even the node whose answer was lost.
    assert!(registry.admit(&token, (&node("n1"), "k1"), NOW_S + 3660).is_err());
}

#[test]
fn a_use_counts_by_node_and_key_and_is_told_again() {
    let mut registry = Registry::default();
    let token = made(&mut registry, 1, joining(2));
    for _ in 0..3 {
        assert_eq!(joins(&mut registry, &token, "n1", "k1").unwrap(), "certificate of n1 for k1");
    }
    joins(&mut registry, &token, "n2", "k2").unwrap();
    for (name, key) in [("n3", "k3"), ("n1", "another")] {
        let third = joins(&mut registry, &token, name, key);
        assert!(matches!(third, Err(JoinError::Used { uses: 2, .. })), "{third:?}");
    }
    assert_eq!(registry.tokens()[0].used_by, [node("n1"), node("n2")]);
}

#[test]
fn what_was_revoked_is_not_told_again() {
    let mut registry = Registry::default();
    let token = made(&mut registry, 1, joining(1));
    joins(&mut registry, &token, "n1", "key of 01").unwrap();
    registry.add_certificate(certificate("n1", "01", "a", NOW_S));
    registry.revoke(&node("n1"), NOW_S).unwrap();
    let again = joins(&mut registry, &token, "n1", "key of 01");
    assert!(matches!(again, Err(JoinError::Used { .. })), "{again:?}");
}

#[test]
fn a_wrong_secret_and_a_token_of_the_api_are_unknown() {
    let mut registry = Registry::default();
    let token = made(&mut registry, 1, joining(1));
    let guess = JoinToken { secret: secret_text([9; SECRET_LEN]), ..token.clone() };
    assert!(matches!(registry.admit(&guess, (&node("n1"), "k"), NOW_S), Err(JoinError::Unknown)));
    let api = made(&mut registry, 2, TokenPurpose::Api { scope: Scope::Admin });
    assert!(matches!(registry.admit(&api, (&node("n1"), "k"), NOW_S), Err(JoinError::Unknown)));
    let bearer = |token: &JoinToken| ApiToken { id: token.id.clone(), secret: token.secret.clone() };
    assert_eq!(registry.scope(&bearer(&api), NOW_S + 400 * DAY_S), Some(Scope::Admin));
    assert_eq!(registry.scope(&bearer(&token), NOW_S), None);
}

#[test]
fn a_name_is_free_again_when_its_certificate_is_over_or_revoked() {
    let mut registry = Registry::default();
    let token = made(&mut registry, 1, joining(9));
    registry.add_certificate(certificate("n1", "01", "a", NOW_S));
    let taken = registry.admit(&token, (&node("n1"), "new"), NOW_S);
    assert!(matches!(taken, Err(JoinError::NameTaken { .. })), "{taken:?}");
    let mut later = Registry::default();
    let token_later = made(&mut later, 1, joining(9));
    later.add_certificate(certificate("n1", "01", "a", NOW_S - LIFE_S));
    later.admit(&token_later, (&node("n1"), "new"), NOW_S).unwrap();
    registry.revoke(&node("n1"), NOW_S).unwrap();
    registry.admit(&token, (&node("n1"), "new"), NOW_S).unwrap();
}

#[test]
fn a_certificate_is_due_at_half_of_its_life_or_when_another_authority_signs() {
    let mut registry = Registry::default();
    registry.add_certificate(certificate("n1", "01", "a", NOW_S));
    assert!(!registry.is_due("01", "a", NOW_S + LIFE_S / 2 - 1));
    assert!(registry.is_due("01", "a", NOW_S + LIFE_S / 2));
    assert!(registry.is_due("01", "b", NOW_S));
    assert!(registry.is_due("never heard of", "a", NOW_S));
}

#[test]
fn an_older_certificate_counts_until_the_newer_one_is_shown_and_both_are_revoked() {
    let mut registry = Registry::default();
    registry.add_certificate(certificate("n1", "01", "a", NOW_S));
    registry.add_certificate(certificate("n1", "02", "b", NOW_S + 9));
    assert_eq!(registry.waiting("b", NOW_S), [node("n1")].into());
    assert!(!registry.confirm("01"), "the old one says nothing of the new one");
    assert!(registry.confirm("02") && !registry.confirm("02"));
    assert!(registry.waiting("b", NOW_S).is_empty());
    assert_eq!(registry.revoke(&node("n1"), NOW_S).unwrap(), ["01", "02"]);
    assert_eq!(registry.revoked(), ["01".to_owned(), "02".to_owned()].into());
    assert!(registry.is_revoked("01") && !registry.is_revoked("03"));
    assert!(matches!(registry.revoke(&node("n1"), NOW_S), Err(NoSuchNode::Unknown { .. })));
}

#[test]
fn what_is_past_any_use_is_forgotten() {
    let mut registry = Registry::default();
    made(&mut registry, 1, joining(1));
    registry.add_certificate(certificate("n1", "01", "a", NOW_S));
    registry.revoke(&node("n1"), NOW_S).unwrap();
    registry.add_certificate(certificate("n2", "02", "a", NOW_S + 2 * LIFE_S));
    assert!(registry.revoked().is_empty() && registry.tokens().is_empty());
}
