//! The hash that identifies a backup.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Hash of all blocks of a backup file, written as 16 hex digits. An increment names the backup that it
/// follows by this hash. The hash detects files that were mixed up or damaged, but not forged files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BackupHash(u64);

impl BackupHash {
    pub(super) fn new(hash: u64) -> Self {
        Self(hash)
    }
}

impl fmt::Display for BackupHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl From<BackupHash> for String {
    fn from(hash: BackupHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for BackupHash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let hash = u64::from_str_radix(&text, 16).ok().filter(|_| is_hex);
        hash.map(Self).ok_or("the hash of a backup must have 16 hex digits")
    }
}
