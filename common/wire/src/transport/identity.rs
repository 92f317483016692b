//! The identity of a process in its cluster.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::transport::secret::Secret;

/// Maximum length of a node's name in bytes.
const NAME_BYTES_MAX: usize = 63;

/// Name of a node, unique in its cluster: 1 to 63 of the characters `a-z`, `0-9` and `-`, as in a host name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeName(Arc<str>);

/// A text is not a valid name of a node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a valid node name: use 1 to {NAME_BYTES_MAX} of a-z, 0-9 and -, such as index-1")]
pub struct InvalidNodeName(String);

impl NodeName {
    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NodeName {
    type Err = InvalidNodeName;

    fn from_str(text: &str) -> Result<Self, InvalidNodeName> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidNodeName(text.chars().take(80).collect()))
        }
    }
}

impl TryFrom<String> for NodeName {
    type Error = InvalidNodeName;

    fn try_from(text: String) -> Result<Self, InvalidNodeName> {
        text.parse()
    }
}

impl From<NodeName> for String {
    fn from(name: NodeName) -> Self {
        name.0.as_ref().to_owned()
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The identity of a process in a cluster.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Random id of the cluster, unique among all clusters.
    pub cluster: Arc<str>,
    /// Name of the process.
    pub node: NodeName,
    /// Secret that only the processes of the cluster know.
    pub secret: Secret,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_hosts() {
        for good in ["a", "index-1", "0", &"x".repeat(63)] {
            assert_eq!(good.parse::<NodeName>().unwrap().as_str(), good);
        }
        for bad in ["", "A", "a_b", "a.b", "a b", "ä", &"x".repeat(64)] {
            assert!(bad.parse::<NodeName>().is_err(), "{bad}");
        }
    }
}
