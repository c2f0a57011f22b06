//! What a stage is told by its environment.
//!
//! `EDGELOOM_TASK` (its name), `EDGELOOM_LISTEN` (address for upstreams), `EDGELOOM_INPUTS` (their names),
//! `EDGELOOM_OUT_<TASK>` and `EDGELOOM_BYTES_<TASK>` (address and bytes an item of each downstream),
//! `EDGELOOM_WORK_NS` (reference-core nanoseconds an item), `EDGELOOM_RATE` (items a second, of a source).
//! By the job's own document: `WORK_NOISE` (0.2: each item's work is up to a fifth more or less).

use crate::frame::HEADER_BYTES;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The one variable that is not Edgeloom's.
const NOISE: &str = "WORK_NOISE";

/// A stage's part in the pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub task: String,
    /// Where upstreams connect; none for a stage without inputs.
    pub listen: Option<SocketAddr>,
    /// Names of the upstream tasks; empty: this stage makes the items.
    pub inputs: Vec<String>,
    pub outputs: Vec<Output>,
    /// Reference-core nanoseconds an item.
    pub work_ns: u64,
    /// Largest deviation of an item's work from `work_ns`, as a part of it; 0 to 1.
    pub work_noise: f64,
    /// Items a second that a stage without inputs makes at most.
    pub rate_per_s: Option<f64>,
}

/// One downstream task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The task as the environment spells it, for messages.
    pub name: String,
    pub address: SocketAddr,
    /// Bytes an item on the connection, header included.
    pub item_bytes: u32,
}

/// Why the environment describes no stage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    #[error("{key} is not set")]
    Missing { key: String },
    #[error("{key}={value:?} does not read")]
    Unreadable { key: String, value: String },
    #[error("{key}={value:?} is out of range")]
    Range { key: String, value: String },
}

type Variables = BTreeMap<String, String>;

impl Settings {
    /// Reads a stage from environment variables; foreign ones are passed over.
    ///
    /// # Errors
    /// The first variable that is missing or does not read.
    pub fn read(variables: impl Iterator<Item = (OsString, OsString)>) -> Result<Self, SettingError> {
        let variables: Variables = variables
            .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(key, _)| key.starts_with("EDGELOOM_") || key == NOISE)
            .collect();
        let inputs: Vec<String> = variables
            .get("EDGELOOM_INPUTS")
            .map(|names| names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned))
            .map(Iterator::collect)
            .unwrap_or_default();
        let listen = match inputs.is_empty() {
            true => None,
            false => Some(required(&variables, "EDGELOOM_LISTEN")?),
        };
        Ok(Self {
            task: required(&variables, "EDGELOOM_TASK")?,
            listen,
            inputs,
            outputs: outputs(&variables)?,
            work_ns: optional(&variables, "EDGELOOM_WORK_NS")?.unwrap_or(0),
            work_noise: within(&variables, NOISE, 0.0..=1.0)?.unwrap_or(0.0),
            rate_per_s: within(&variables, "EDGELOOM_RATE", 1e-6..=1e6)?,
        })
    }
}

fn outputs(variables: &Variables) -> Result<Vec<Output>, SettingError> {
    let addresses = variables.keys().filter_map(|key| Some((key, key.strip_prefix("EDGELOOM_OUT_")?)));
    addresses
        .map(|(key, name)| {
            let bytes_key = format!("EDGELOOM_BYTES_{name}");
            let item_bytes: u32 = required(variables, &bytes_key)?;
            if item_bytes < HEADER_BYTES {
                return Err(SettingError::Range { key: bytes_key, value: item_bytes.to_string() });
            }
            Ok(Output { name: name.to_owned(), address: required(variables, key)?, item_bytes })
        })
        .collect()
}

/// A number that, where it is set, lies in `range`; what is no number lies in none.
fn within(variables: &Variables, key: &str, range: RangeInclusive<f64>) -> Result<Option<f64>, SettingError> {
    match optional::<f64>(variables, key)? {
        Some(value) if !range.contains(&value) => {
            Err(SettingError::Range { key: key.to_owned(), value: value.to_string() })
        }
        value => Ok(value),
    }
}

fn optional<T: FromStr>(variables: &Variables, key: &str) -> Result<Option<T>, SettingError> {
    let Some(value) = variables.get(key) else {
        return Ok(None);
    };
    let refuse = |_| SettingError::Unreadable { key: key.to_owned(), value: value.clone() };
    value.parse().map(Some).map_err(refuse)
}

fn required<T: FromStr>(variables: &Variables, key: &str) -> Result<T, SettingError> {
    optional(variables, key)?.ok_or_else(|| SettingError::Missing { key: key.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, SettingError> {
        Settings::read(pairs.iter().map(|(key, value)| (key.into(), value.into())))
    }

    #[test]
    fn a_stage_is_read_from_its_environment() {
        let settings = read(&[
            ("PATH", "/bin"),
            ("EDGELOOM_TASK", "detect"),
            ("EDGELOOM_LISTEN", "0.0.0.0:7000"),
            ("EDGELOOM_INPUTS", "source,decode"),
            ("EDGELOOM_OUT_RE_ID", "10.77.0.5:7000"),
            ("EDGELOOM_BYTES_RE_ID", "4000"),
            ("EDGELOOM_WORK_NS", "5000000"),
            ("WORK_NOISE", "0.2"),
        ]);
        let settings = settings.unwrap();
        assert_eq!(settings.inputs, ["source", "decode"]);
        assert_eq!(settings.outputs[0].address, "10.77.0.5:7000".parse().unwrap());
        assert_eq!((settings.outputs[0].item_bytes, settings.work_ns), (4000, 5_000_000));
        assert_eq!(settings.work_noise.to_string(), "0.2");
    }

    #[test]
    fn what_does_not_read_is_named() {
        let missing = |key: &str| Err(SettingError::Missing { key: key.to_owned() });
        assert_eq!(read(&[]), missing("EDGELOOM_TASK"));
        assert_eq!(read(&[("EDGELOOM_TASK", "a"), ("EDGELOOM_INPUTS", "b")]), missing("EDGELOOM_LISTEN"));
        let out = ("EDGELOOM_OUT_B", "10.0.0.1:7000");
        assert_eq!(read(&[("EDGELOOM_TASK", "a"), out]), missing("EDGELOOM_BYTES_B"));
        let short = read(&[("EDGELOOM_TASK", "a"), out, ("EDGELOOM_BYTES_B", "11")]);
        assert!(matches!(short, Err(SettingError::Range { .. })));
        for bad in ["0", "NaN", "-1", "inf"] {
            let refused = read(&[("EDGELOOM_TASK", "a"), ("EDGELOOM_RATE", bad)]);
            assert!(matches!(refused, Err(SettingError::Range { .. })), "{bad}");
        }
        let noisy = read(&[("EDGELOOM_TASK", "a"), ("WORK_NOISE", "1.5")]);
        assert!(matches!(noisy, Err(SettingError::Range { .. })));
    }
}
