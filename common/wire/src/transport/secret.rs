//! The secret that the processes of a cluster share.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use subtle::ConstantTimeEq;

/// Minimum and maximum length of a secret in bytes.
const BYTES: std::ops::RangeInclusive<usize> = 32..=512;

/// The secret of a cluster. Its `Debug` output does not reveal it.
#[derive(Clone)]
pub struct Secret(Arc<str>);

/// Why a secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("cannot read the cluster secret in {}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The text is not a valid secret.
    #[error("a cluster secret has {} to {} visible ASCII characters, without spaces", BYTES.start(), BYTES.end())]
    Unusable,
}

impl Secret {
    /// Creates a secret from 32 to 512 visible ASCII characters.
    ///
    /// # Errors
    /// If the text has another form.
    pub fn new(text: &str) -> Result<Self, SecretError> {
        if BYTES.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Self(text.into()))
        } else {
            Err(SecretError::Unusable)
        }
    }

    /// Reads a secret from a file, ignoring white space around it.
    ///
    /// # Errors
    /// If the file cannot be read, or its text is not a valid secret.
    pub fn read(path: &Path) -> Result<Self, SecretError> {
        let text =
            fs::read_to_string(path).map_err(|source| SecretError::Io { path: path.to_owned(), source })?;
        Self::new(text.trim())
    }

    /// Compares in a time that does not depend on where the two secrets differ.
    pub(crate) fn matches(&self, other: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(other).into()
    }

    /// Returns a fingerprint that distinguishes secrets: 64 bits of a hash. A secret of 256 random bits
    /// cannot be derived from it.
    #[must_use]
    pub fn mark(&self) -> String {
        format!("{:016x}", doppel_model::stable_hash64(self.0.as_bytes()))
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_long_enough_and_is_not_shown() {
        let text = "0123456789abcdef0123456789abcdef";
        let secret = Secret::new(text).unwrap();
        assert!(secret.matches(text.as_bytes()));
        assert!(
            !secret.matches(b"0123456789abcdef0123456789abcdeX")
                && !secret.matches(b"")
                && !secret.matches(&[0; 600])
        );
        assert_eq!(format!("{secret:?}"), "Secret");
        let other = Secret::new("0123456789abcdef0123456789abcdeX").unwrap();
        assert!(secret.mark() == secret.clone().mark() && secret.mark() != other.mark());
        for bad in
            ["", "short", "0123456789abcdef 0123456789abcdef", &"x".repeat(513), "ä".repeat(32).as_str()]
        {
            assert!(Secret::new(bad).is_err(), "{bad}");
        }
    }
}
