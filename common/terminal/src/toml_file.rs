//! Reads TOML files that people write. The size of a file is bounded, and every fault is reported with its
//! line.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::de::DeserializeOwned;
use toml::Spanned;

/// Why a TOML file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TomlFileError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is longer than the limit, so it cannot be of the expected kind.
    #[error("{} has more than {max} bytes", path.display())]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
        /// Maximum size in bytes.
        max: u64,
    },
    /// A line of the file is invalid.
    #[error("{}, line {line}: {reason}", path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, counted from 1.
        line: usize,
        /// Why the line is invalid.
        reason: String,
    },
}

/// A fault in a text: its byte range, and its description.
pub type TomlFault = (Range<usize>, String);

/// Reads a file of at most `max` bytes, and converts its text with `make`.
///
/// # Errors
/// If the file cannot be read, is longer, or has a fault.
pub fn read<T>(
    path: &Path,
    max: u64,
    make: impl FnOnce(&str) -> Result<T, TomlFault>,
) -> Result<T, TomlFileError> {
    let file = File::open(path).map_err(|source| TomlFileError::Io { path: path.to_owned(), source })?;
    of_bytes(path, &bytes(path, max, file)?, make)
}

/// Reads all bytes of an open file. `path` names the file in errors.
///
/// # Errors
/// If the file cannot be read, or has more than `max` bytes.
pub fn bytes(path: &Path, max: u64, from: impl Read) -> Result<Vec<u8>, TomlFileError> {
    let mut bytes = Vec::new();
    let read = from.take(max + 1).read_to_end(&mut bytes);
    read.map_err(|source| TomlFileError::Io { path: path.to_owned(), source })?;
    if bytes.len() as u64 > max {
        return Err(TomlFileError::TooLarge { path: path.to_owned(), max });
    }
    Ok(bytes)
}

/// Decodes the bytes of a file as UTF-8, and converts the text with `make`. `path` names the file in errors.
///
/// # Errors
/// If the bytes are not UTF-8, or the text has a fault.
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

/// Parses a text as TOML. The description of a fault is one line.
///
/// # Errors
/// If the text is not valid TOML of this type.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, TomlFault> {
    toml::from_str(text).map_err(|error| {
        let reason = error.message().trim().replace('\n', ", ");
        (error.span().unwrap_or_default(), reason)
    })
}

/// Parses a value that the file contains as a string.
///
/// # Errors
/// If `T` cannot be parsed from the string. The description is the error that the parser of `T` returns.
pub fn value<T: FromStr<Err: ToString>>(written: &Spanned<String>) -> Result<T, TomlFault> {
    written.get_ref().parse().map_err(|error: T::Err| (written.span(), error.to_string()))
}

/// Returns the number of the line that contains the byte at offset `at`. Lines are counted from 1.
pub fn line(bytes: &[u8], at: usize) -> usize {
    1 + bytes[..at.min(bytes.len())].iter().filter(|byte| **byte == b'\n').count()
}
