//! Names of nodes, jobs and tasks: checked once, at the edge, and then carried as types.
//!
//! A name is what DNS calls a label (RFC 1123): 1 to 63 of `a-z 0-9 -`, a letter or digit at both
//! ends. That makes it safe as a topic level, a container name, a host name and a file name.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The longest name, in characters (RFC 1123 label).
pub const NAME_MAX: usize = 63;

/// Why a text is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing was written.
    #[error("a name is empty")]
    Empty,
    /// Longer than a DNS label.
    #[error("name {name:?} has {len} characters, at most {NAME_MAX} are allowed")]
    TooLong { name: String, len: usize },
    /// A character outside `a-z 0-9 -`, or a hyphen at an end.
    #[error("name {name:?} may hold only a-z, 0-9 and '-', and starts and ends with a letter or digit")]
    Character { name: String },
}

fn check_name(text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    if text.len() > NAME_MAX {
        let name = text.chars().take(NAME_MAX).collect();
        return Err(NameError::TooLong { name, len: text.chars().count() });
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !text.chars().all(allowed) || text.starts_with('-') || text.ends_with('-') {
        return Err(NameError::Character { name: text.to_owned() });
    }
    Ok(())
}

/// A checked name type: the same rules for every kind of thing, but the kinds do not mix.
macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                check_name(text)?;
                Ok(Self(text.to_owned()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                check_name(&text)?;
                Ok(Self(text))
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

name_type! {
    /// A machine of the cluster.
    NodeId
}
name_type! {
    /// A job, unique in the cluster while it runs.
    JobName
}
name_type! {
    /// A task, unique in its job. `source` is reserved for the job's source.
    TaskName
}
name_type! {
    /// The cluster a document belongs to; agents refuse documents of another.
    ClusterId
}

name_type! {
    /// A volume of a task.
    VolumeName
}
name_type! {
    /// A secret that tasks are given as a file of this name.
    SecretName
}

impl TaskName {
    /// The reserved name of a job's source, as flows and reports call it.
    pub const SOURCE: &'static str = "source";

    /// The name under which a job's source appears among its tasks.
    #[must_use]
    pub fn source() -> Self {
        Self(Self::SOURCE.to_owned())
    }

    /// True of the reserved source name.
    #[must_use]
    pub fn is_source(&self) -> bool {
        self.0 == Self::SOURCE
    }
}

/// A data flow: one edge of a job's graph whose ends are on different nodes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FlowId {
    pub job: JobName,
    pub from: TaskName,
    pub to: TaskName,
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}->{}", self.job, self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_dns_label() {
        assert!("cam-1".parse::<NodeId>().is_ok());
        assert_eq!("".parse::<NodeId>(), Err(NameError::Empty));
        for bad in ["-a", "a-", "A", "a/b", "a+b", "#", "ä"] {
            assert!(matches!(bad.parse::<JobName>(), Err(NameError::Character { .. })), "{bad}");
        }
        let long = "a".repeat(64);
        assert!(matches!(long.parse::<TaskName>(), Err(NameError::TooLong { len: 64, .. })));
    }

    #[test]
    fn a_bad_name_is_refused_on_the_wire_too() {
        assert!(serde_json::from_str::<NodeId>("\"n1\"").is_ok());
        assert!(serde_json::from_str::<NodeId>("\"n1/#\"").is_err());
    }
}
