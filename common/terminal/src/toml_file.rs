//! TOML files that people write. A file is bounded in size, and an error names the line of the fault.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::de::DeserializeOwned;
use toml::Spanned;

/// Error of a TOML file.
#[derive(Debug, thiserror::Error)]
pub enum TomlFileError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is longer than any file of its kind.
    #[error("{} has more than {max} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Limit in bytes.
        max: u64,
    },
    /// A line of the file is not valid.
    #[error("{}, line {line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Reason why the line is not valid.
        reason: String,
    },
}

/// A fault of a text: the range of its bytes and the reason.
pub type TomlFault = (Range<usize>, String);

/// Reads a file of at most `max` bytes, and converts its text with `make`.
///
/// # Errors
/// Fails if the file cannot be read, is longer, or has a fault.
pub fn read<T>(
    path: &Path,
    max: u64,
    make: impl FnOnce(&str) -> Result<T, TomlFault>,
) -> Result<T, TomlFileError> {
    let file = File::open(path).map_err(|source| TomlFileError::Io { path: path.to_owned(), source })?;
    of_bytes(path, &bytes(path, max, file)?, make)
}

/// Reads the bytes of an open file, at most `max`.
///
/// # Errors
/// Fails if the file cannot be read, or has more than `max` bytes.
pub fn bytes(path: &Path, max: u64, from: impl Read) -> Result<Vec<u8>, TomlFileError> {
    let mut bytes = Vec::new();
    let read = from.take(max + 1).read_to_end(&mut bytes);
    read.map_err(|source| TomlFileError::Io { path: path.to_owned(), source })?;
    if bytes.len() as u64 > max {
        return Err(TomlFileError::TooLarge { path: path.to_owned(), max });
    }
    Ok(bytes)
}

/// Converts the text of a file with `make`.
///
/// # Errors
/// Fails if the bytes are not UTF-8, or if the text has a fault.
pub fn of_bytes<T>(
    path: &Path,
    bytes: &[u8],
    make: impl FnOnce(&str) -> Result<T, TomlFault>,
) -> Result<T, TomlFileError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| (error.valid_up_to()..error.valid_up_to(), "is not UTF-8".to_owned()));
    text.and_then(make).map_err(|(span, reason)| {
        let line = line(bytes, span.start);
        TomlFileError::Line { path: path.to_owned(), line, reason }
    })
}

/// Parses a TOML text. The reason of a fault is one line.
///
/// # Errors
/// Fails if the text is not valid TOML, or does not have the fields of `T`.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, TomlFault> {
    toml::from_str(text).map_err(|error| {
        let reason = error.message().trim().replace('\n', ", ");
        (error.span().unwrap_or_default(), reason)
    })
}

/// Parses a value that the file writes as a string.
///
/// # Errors
/// Fails with the reason that the type of the value gives.
pub fn value<T: FromStr<Err: ToString>>(written: &Spanned<String>) -> Result<T, TomlFault> {
    written.get_ref().parse().map_err(|error: T::Err| (written.span(), error.to_string()))
}

/// Number of the line that contains the byte `at`, from 1.
pub fn line(bytes: &[u8], at: usize) -> usize {
    1 + bytes[..at.min(bytes.len())].iter().filter(|byte| **byte == b'\n').count()
}
