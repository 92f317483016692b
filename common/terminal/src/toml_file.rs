//! Files of TOML that people write: they are bounded, and what is wrong in one is named with its line.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::de::DeserializeOwned;
use toml::Spanned;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TomlFileError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It is another kind of file, for sure.
    #[error("{} has more than {max} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most that is read.
        max: u64,
    },
    /// It says something that cannot be.
    #[error("{}, line {line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
}

/// What is wrong, and where in the text.
pub type Fault = (Range<usize>, String);

/// Reads a file of at most `max` bytes, and makes of its text what `make` says.
///
/// # Errors
/// When it cannot be read, is longer, or has a fault.
pub fn read<T>(
    path: &Path,
    max: u64,
    make: impl FnOnce(&str) -> Result<T, Fault>,
) -> Result<T, TomlFileError> {
    let file = File::open(path).map_err(|source| TomlFileError::Io { path: path.to_owned(), source })?;
    of_bytes(path, &bytes(path, max, file)?, make)
}

/// The bytes of a file that is open.
///
/// # Errors
/// When they cannot be read, or are more than `max`.
pub fn bytes(path: &Path, max: u64, from: impl Read) -> Result<Vec<u8>, TomlFileError> {
    let mut bytes = Vec::new();
    let read = from.take(max + 1).read_to_end(&mut bytes);
    read.map_err(|source| TomlFileError::Io { path: path.to_owned(), source })?;
    if bytes.len() as u64 > max {
        return Err(TomlFileError::TooLarge { path: path.to_owned(), max });
    }
    Ok(bytes)
}

/// What `make` makes of the text of a file.
///
/// # Errors
/// When it is no text, or has a fault.
pub fn of_bytes<T>(
    path: &Path,
    bytes: &[u8],
    make: impl FnOnce(&str) -> Result<T, Fault>,
) -> Result<T, TomlFileError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| (error.valid_up_to()..error.valid_up_to(), "is not UTF-8".to_owned()));
    text.and_then(make).map_err(|(span, reason)| {
        let line = line(bytes, span.start);
        TomlFileError::Line { path: path.to_owned(), line, reason }
    })
}

/// The value of a text, or what TOML says on one line.
///
/// # Errors
/// When it is not of this form.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    toml::from_str(text).map_err(|error| {
        let reason = error.message().trim().replace('\n', ", ");
        (error.span().unwrap_or_default(), reason)
    })
}

/// A value that is written as a text.
///
/// # Errors
/// When it is none; the fault is that of the value's type.
pub fn value<T: FromStr<Err: ToString>>(written: &Spanned<String>) -> Result<T, Fault> {
    written.get_ref().parse().map_err(|error: T::Err| (written.span(), error.to_string()))
}

/// The line in which a byte is, from 1.
pub fn line(bytes: &[u8], at: usize) -> usize {
    1 + bytes[..at.min(bytes.len())].iter().filter(|byte| **byte == b'\n').count()
}
