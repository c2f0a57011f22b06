//! Who has not joined and has no token, and tries anyway.

use edgeloom_common::join::{CONTROLLER_NAME, Context};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// The first byte of the packet that accepts a client (MQTT 3.1.1, section 3.2).
pub(crate) const CONNACK: u8 = 0x20;
/// Client `node`, clean session, keep alive of 60 s (section 3.1).
const CONNECT: &[u8] = b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04node";

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn authorities(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().unwrap()
}

/// The status of a request for the nodes over TLS.
pub(crate) fn nodes_status(context: &Context, token: Option<&str>) -> u16 {
    let roots = authorities(&context.authorities);
    let roots = roots.iter().map(|found| Certificate::from_der(found).to_owned()).collect();
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(provider())
        .build();
    let config = Agent::config_builder().http_status_as_error(false).tls_config(tls).build();
    let request = Agent::from(config).get(format!("{}/v1/nodes", context.server));
    let request = match token {
        Some(token) => request.header("authorization", format!("Bearer {token}")),
        None => request,
    };
    request.call().unwrap().status().as_u16()
}

/// The same without TLS.
pub(crate) fn nodes_in_the_clear(address: &str) -> Result<u16, ureq::Error> {
    Ok(ureq::get(format!("http://{address}/v1/nodes")).call()?.status().as_u16())
}

/// What a client without certificate, or with one of its own making, gets to read.
pub(crate) fn session(broker: &str, trusted: &str, own: Option<&str>) -> io::Result<Vec<u8>> {
    let mut roots = RootCertStore::empty();
    authorities(trusted).into_iter().for_each(|authority| roots.add(authority).unwrap());
    let config =
        ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots);
    let config = match own {
        None => config.with_no_client_auth(),
        Some(name) => {
            let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
            let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
            config.with_client_auth_cert(vec![made.cert.der().clone()], key).unwrap()
        }
    };
    let name = ServerName::try_from(CONTROLLER_NAME).unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(client, TcpStream::connect(broker)?);
    stream.write_all(CONNECT)?;
    first_bytes(&mut stream)
}

/// What a client without TLS gets to read.
pub(crate) fn session_in_the_clear(broker: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(broker).unwrap();
    stream.write_all(CONNECT).unwrap();
    // A connection that is reset says nothing, as it should.
    first_bytes(&mut stream).unwrap_or_default()
}

fn first_bytes(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 64];
    let length = stream.read(&mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}
