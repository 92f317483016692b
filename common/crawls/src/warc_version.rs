//! The version of WARC with which a record begins.

use super::error::{HeadError, Reason};

/// The first bytes of every record of WARC.
pub(super) const MAGIC: &[u8] = b"WARC/";

/// The drafts before WARC 1.0 that are read.
const DRAFTS: [&[u8]; 2] = [b"WARC/0.17", b"WARC/0.18"];

/// The number of bytes in which the version of a record is found, with what follows it.
pub(super) const VERSION_BYTES: usize = 16;

/// Whether a record of WARC begins here, of whatever version. `bytes` are [`VERSION_BYTES`], or all that is left.
pub(super) fn begins_here(bytes: &[u8]) -> bool {
    version(bytes).is_some()
}

/// The version with which a record begins, such as `WARC/1.0`.
pub(super) fn version(bytes: &[u8]) -> Option<&[u8]> {
    let digits = version_digits(bytes)?;
    let ends = bytes.get(MAGIC.len() + digits).is_some_and(u8::is_ascii_whitespace);
    (digits > 0 && ends).then(|| &bytes[..MAGIC.len() + digits])
}

/// Whether these are the first bytes of a record that is cut off before the end of its version. Nothing follows them.
pub(super) fn is_cut(bytes: &[u8]) -> bool {
    MAGIC.starts_with(bytes)
        || version_digits(bytes).is_some_and(|digits| MAGIC.len() + digits == bytes.len())
}

fn version_digits(bytes: &[u8]) -> Option<usize> {
    let number = bytes.strip_prefix(MAGIC)?;
    Some(number.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count())
}

/// Checks that a record begins here, and is of a version that is read.
pub(super) fn check_version(bytes: &[u8]) -> Result<(), HeadError> {
    let Some(version) = version(bytes) else { return Err(HeadError::Version(shown(bytes))) };
    let is_read = version.starts_with(b"WARC/1.") || DRAFTS.contains(&version);
    match is_read {
        true => Ok(()),
        false if has_two_numbers(version) => Err(HeadError::OtherVersion(shown(version))),
        false => Err(HeadError::Version(shown(version))),
    }
}

/// Whether a version is written as all versions are, with one dot between two numbers. Others are damaged.
fn has_two_numbers(version: &[u8]) -> bool {
    let mut numbers = version[MAGIC.len()..].split(|byte| *byte == b'.');
    numbers.by_ref().take(2).filter(|number| !number.is_empty()).count() == 2 && numbers.next().is_none()
}

/// Whether a record is of one of the drafts before WARC 1.0, in whose files values of fields are broken by line ends.
pub(super) fn is_draft(bytes: &[u8]) -> bool {
    version(bytes).is_some_and(|version| DRAFTS.contains(&version))
}

/// Checks that the first record of a file is of a version that is read: one message is enough for all. What is no record of WARC is
/// told by who reads it.
pub(super) fn check_first(beginning: &[u8]) -> Result<(), Reason> {
    // Drafts before 0.12 have a version in small letters, and fields behind it on the same line.
    if beginning.get(..MAGIC.len()).is_some_and(|magic| magic == b"warc/") {
        let version = beginning.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        return Err(HeadError::OtherVersion(shown(version)).into());
    }
    match check_version(beginning) {
        Err(error @ HeadError::OtherVersion(_)) => Err(error.into()),
        _ => Ok(()),
    }
}

/// The first line of `bytes`, shortened for a message.
pub(super) fn shown(bytes: &[u8]) -> String {
    let line = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(&line[..line.len().min(60)]).trim().to_owned()
}
