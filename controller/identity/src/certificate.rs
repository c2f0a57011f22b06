//! What certificates look like: names, uses, validity, serial numbers.

use crate::authority::AuthorityError;
use crate::peer;
use edgeloom_common::digest::hex;
use edgeloom_common::ids::{ClusterId, NodeId};
use edgeloom_common::join::{CONTROLLER_NAME, node_name};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose, SanType,
    SerialNumber, string::Ia5String,
};
use ring::rand::{SecureRandom, SystemRandom};
use std::net::IpAddr;
use time::OffsetDateTime;

const DAY_S: u64 = 24 * 3600;
/// A second authority begins at half of it.
pub(crate) const AUTHORITY_LIFETIME_S: u64 = 3650 * DAY_S;
/// Renewed at half of it, so a node may be away for half a year and come back by itself. A shorter life
/// would gain nothing: whoever verifies these certificates also knows what was revoked.
pub(crate) const NODE_LIFETIME_S: u64 = 365 * DAY_S;
/// Made anew, with its key, at every start and at half of it. It outlives every certificate of a node by
/// far, so a node whose clock is months ahead still takes it.
pub(crate) const SERVER_LIFETIME_S: u64 = 730 * DAY_S;
/// Certificates begin a day early: clocks of small machines differ.
const EARLY_S: u64 = DAY_S;

/// Random bytes from the operating system.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the kernel has random bytes once it has booted");
    bytes
}

/// From a day before `now_s` for `lifetime_s`, with a fresh serial number (RFC 5280: positive, 20 bytes at
/// most). Also says the number as text.
fn common(name: &str, now_s: u64, lifetime_s: u64) -> Result<(CertificateParams, String), AuthorityError> {
    let date = |seconds: u64| {
        let seconds = i64::try_from(seconds).map_err(|_| AuthorityError::Clock { now_s })?;
        OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| AuthorityError::Clock { now_s })
    };
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date(now_s.saturating_sub(EARLY_S))?;
    params.not_after = date(now_s + lifetime_s)?;
    let mut serial: [u8; 16] = random();
    // Positive, and with no leading zero, which an encoder would leave out.
    serial[0] = serial[0] & 0x7f | 0x40;
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    Ok((params, hex(&serial)))
}

pub(crate) fn authority(cluster: &ClusterId, now_s: u64) -> Result<CertificateParams, AuthorityError> {
    let (mut params, serial) = common("", now_s, AUTHORITY_LIFETIME_S)?;
    // The serial number tells two authorities of one cluster apart, as a chain is built by name.
    let name = format!("edgeloom {cluster} {}", &serial[..8]);
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

/// Certificate of a node, with its serial number.
pub(crate) fn node(
    cluster: &ClusterId,
    node: &NodeId,
    now_s: u64,
) -> Result<(CertificateParams, String), AuthorityError> {
    let (mut params, serial) = common(node.as_str(), now_s, NODE_LIFETIME_S)?;
    let uri = Ia5String::try_from(peer::uri(cluster, node)).expect("names are ASCII");
    let name = Ia5String::try_from(node_name(node)).expect("names are ASCII");
    params.subject_alt_names = vec![SanType::URI(uri), SanType::DnsName(name)];
    // To its neighbours a node is a server too.
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    Ok((params, serial))
}

/// Certificate of the controller, for all names and addresses that it is known under.
pub(crate) fn server(names: &[String], now_s: u64) -> Result<CertificateParams, AuthorityError> {
    let (mut params, _) = common("edgeloom controller", now_s, SERVER_LIFETIME_S)?;
    for name in names.iter().map(String::as_str).chain([CONTROLLER_NAME]) {
        let alternative = match name.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(
                Ia5String::try_from(name)
                    .map_err(|_| AuthorityError::ServerName { name: name.to_owned() })?,
            ),
        };
        params.subject_alt_names.push(alternative);
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}
