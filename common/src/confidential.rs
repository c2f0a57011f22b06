//! What only those get who need it: values of secrets, logins at registries.
//!
//! In: values, from those who make them. Out: the types that carry them to the nodes, and the views that
//! show everything but the value. Invariant: documents, jobs, events and views name secrets; the values
//! are in [`Confidential`] alone, which is in no document and is printed as nothing.

use crate::desired::DesiredState;
use crate::ids::{JobName, SecretName};
use crate::registry::RegistryHost;
use crate::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// The largest value, in bytes.
pub const VALUE_MAX: usize = 64 * 1024;
/// The most secrets and logins of a cluster.
pub const COUNT_MAX: usize = 256;
/// The most bytes of all values together: one node may need every one of them, and its document and they have
/// to fit into one packet ([`PACKET_MAX`](crate::topics::PACKET_MAX)).
pub const TOTAL_MAX: usize = 256 * 1024;
/// The longest user name or password of a login, in bytes: cloud registries give tokens of some thousands.
pub const LOGIN_TEXT_MAX: usize = 8 * 1024;

/// The bytes of a secret; as text, base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Secret", into = "Secret")]
pub struct Value(Secret);

/// Why a text carries no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    #[error("the value is empty")]
    Empty,
    #[error("the value has over {VALUE_MAX} bytes")]
    TooLong,
    /// Where is not said: the text is the secret.
    #[error("the value is no base64")]
    Encoding,
}

impl Value {
    /// A value of 1 to [`VALUE_MAX`] bytes.
    pub fn new(bytes: &[u8]) -> Result<Self, ValueError> {
        match bytes.len() {
            0 => Err(ValueError::Empty),
            1..=VALUE_MAX => Ok(Self(STANDARD.encode(bytes).into())),
            _ => Err(ValueError::TooLong),
        }
    }

    /// The bytes, where they are used.
    #[must_use]
    pub fn expose(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(STANDARD.decode(self.0.expose()).expect("a value is base64 since it was made"))
    }
}

impl TryFrom<Secret> for Value {
    type Error = ValueError;
    fn try_from(text: Secret) -> Result<Self, ValueError> {
        let bytes = STANDARD.decode(text.expose()).map_err(|_| ValueError::Encoding)?;
        Self::new(&Zeroizing::new(bytes))
    }
}

impl From<Value> for Secret {
    fn from(value: Value) -> Self {
        value.0
    }
}

/// Who we are at a registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    pub username: String,
    pub password: Secret,
}

/// Values for one node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confidential {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<SecretName, Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub logins: BTreeMap<RegistryHost, Login>,
}

impl Confidential {
    /// There is nothing to hide.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty() && self.logins.is_empty()
    }
}

/// What travels to a node: its document, and beside it the values that the document only names. Kept by nobody
/// as it is.
#[derive(Debug, Serialize)]
pub struct Delivery<'a> {
    #[serde(flatten)]
    pub document: &'a DesiredState,
    #[serde(skip_serializing_if = "Confidential::is_empty")]
    pub confidential: &'a Confidential,
}

/// The part of a delivery that is no document.
#[derive(Debug, Default, Deserialize)]
pub struct Enclosed {
    #[serde(default)]
    pub confidential: Confidential,
}

/// A secret in lists; never its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretView {
    pub name: SecretName,
    pub bytes: usize,
    /// When this value was given, in seconds since 1970.
    pub since_s: u64,
    #[serde(default)]
    pub used_by: Vec<JobName>,
}

/// `GET /v1/secrets`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretList {
    pub secrets: Vec<SecretView>,
}

/// A registry with a login, in lists; never its password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryView {
    pub registry: RegistryHost,
    pub username: String,
    /// When this login was given, in seconds since 1970.
    pub since_s: u64,
}

/// `GET /v1/registries`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryList {
    pub registries: Vec<RegistryView>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::Pool;
    use std::net::Ipv4Addr;

    #[test]
    fn a_value_is_any_bytes_within_bounds() {
        let bytes = [0, 255, b'\n', 7];
        let value = Value::new(&bytes).unwrap();
        let text = serde_json::to_string(&value).unwrap();
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(*read.expose(), bytes);
        assert_eq!(Value::new(&[]), Err(ValueError::Empty));
        assert!(Value::new(&[0; VALUE_MAX]).is_ok());
        assert_eq!(Value::new(&[0; VALUE_MAX + 1]), Err(ValueError::TooLong));
        let error = serde_json::from_str::<Value>("\"hunter2!\"").unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[test]
    fn whoever_knows_documents_only_reads_a_delivery_as_one() {
        let pool = Pool {
            network: Ipv4Addr::new(10, 77, 0, 0),
            prefix_len: 16,
            gateway: Ipv4Addr::new(10, 77, 0, 1),
        };
        let document = DesiredState::empty("home".parse().unwrap(), "n1".parse().unwrap(), pool);
        let name: SecretName = "password".parse().unwrap();
        let secrets = BTreeMap::from([(name, Value::new(b"hunter2").unwrap())]);
        let login = Login { username: "u".to_owned(), password: "hunter2".to_owned().into() };
        let logins = BTreeMap::from([("reg.lan".parse().unwrap(), login)]);
        let confidential = Confidential { secrets, logins };
        let delivery = Delivery { document: &document, confidential: &confidential };
        let text = serde_json::to_vec(&delivery).unwrap();
        assert_eq!(serde_json::from_slice::<DesiredState>(&text).unwrap(), document);
        assert_eq!(serde_json::from_slice::<Enclosed>(&text).unwrap().confidential, confidential);
        assert!(!format!("{delivery:?}").contains("hunter2"));
        let bare =
            serde_json::to_vec(&Delivery { document: &document, confidential: &Confidential::default() });
        assert_eq!(bare.unwrap(), serde_json::to_vec(&document).unwrap());
    }
}
