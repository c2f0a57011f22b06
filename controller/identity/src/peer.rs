//! Who a verified certificate says it is.

use edgeloom_common::digest::hex;
use edgeloom_common::ids::{ClusterId, NameError, NodeId};
use rustls::pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;

/// The beginning of the name that our authority writes into certificates of nodes.
const SCHEME: &str = "edgeloom://";

/// A node, by a certificate that the TLS handshake has verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub node: NodeId,
    /// Serial number of the certificate, hexadecimal.
    pub serial: String,
}

/// Why a certificate names no node of this cluster.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// The peer showed none.
    #[error("the client sent no certificate")]
    Missing,
    /// Not DER, or fields in it are not.
    #[error("the client's certificate does not read")]
    Unreadable,
    /// A node has one name.
    #[error("the client's certificate has {count} common names, one is needed")]
    CommonNames { count: usize },
    /// The common name does not fit a node.
    #[error("the certificate's common name is no node id: {0}")]
    Name(#[from] NameError),
    /// Issued for another cluster or node.
    #[error("the certificate is for {found}, here it would have to be {wanted}")]
    Foreign { found: String, wanted: String },
}

/// The name of a node beyond its cluster.
pub(crate) fn uri(cluster: &ClusterId, node: &NodeId) -> String {
    format!("{SCHEME}{cluster}/node/{node}")
}

impl Peer {
    /// Reads the first certificate of a verified chain: its common name is the node. Where it carries our
    /// own kind of name, that has to agree; certificates managed from outside may have none.
    pub fn of(chain: Option<&[CertificateDer<'_>]>, cluster: &ClusterId) -> Result<Self, PeerError> {
        let leaf = chain.and_then(<[_]>::first).ok_or(PeerError::Missing)?;
        let (_, certificate) =
            x509_parser::parse_x509_certificate(leaf).map_err(|_| PeerError::Unreadable)?;
        let names: Vec<_> = certificate.subject().iter_common_name().collect();
        let [name] = names.as_slice() else {
            return Err(PeerError::CommonNames { count: names.len() });
        };
        let node: NodeId = name.as_str().map_err(|_| PeerError::Unreadable)?.parse()?;
        let alternatives = certificate.subject_alternative_name().map_err(|_| PeerError::Unreadable)?;
        let alternatives = alternatives.iter().flat_map(|found| &found.value.general_names);
        let wanted = uri(cluster, &node);
        for alternative in alternatives {
            if let GeneralName::URI(found) = alternative
                && found.starts_with(SCHEME)
                && *found != wanted
            {
                return Err(PeerError::Foreign { found: (*found).to_owned(), wanted });
            }
        }
        Ok(Self { node, serial: hex(certificate.raw_serial()) })
    }
}
