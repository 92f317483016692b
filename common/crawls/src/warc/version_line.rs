//! Parses and checks the version line with which a WARC record begins.
//!
//! Doppel reads WARC 1.x and the drafts 0.17 and 0.18. Other versions get an error that names the version;
//! anything else is not a WARC record.

use doppel_streams::{HeadError, Reason};

/// The first bytes of every WARC record.
pub(crate) const MAGIC: &[u8] = b"WARC/";

/// The drafts before WARC 1.0 that Doppel reads.
const DRAFTS: [&[u8]; 2] = [b"WARC/0.17", b"WARC/0.18"];

/// Number of bytes that suffice to recognise the version of a record and the byte behind it.
pub(crate) const VERSION_BYTES: usize = 16;

/// Whether `bytes` begin with a WARC record of any version. The caller passes [`VERSION_BYTES`] bytes, or all
/// remaining bytes.
pub(crate) fn is_record_start(bytes: &[u8]) -> bool {
    version(bytes).is_some()
}

/// Returns the version with which a record begins, such as `WARC/1.0`.
pub(crate) fn version(bytes: &[u8]) -> Option<&[u8]> {
    let digits = version_digits(bytes)?;
    let ends = bytes.get(MAGIC.len() + digits).is_some_and(u8::is_ascii_whitespace);
    (digits > 0 && ends).then(|| &bytes[..MAGIC.len() + digits])
}

/// Whether `bytes`, which are the last bytes of the data, may be a record that is cut off within its version.
pub(crate) fn is_partial_record_start(bytes: &[u8]) -> bool {
    MAGIC.starts_with(bytes)
        || version_digits(bytes).is_some_and(|digits| MAGIC.len() + digits == bytes.len())
}

fn version_digits(bytes: &[u8]) -> Option<usize> {
    let number = bytes.strip_prefix(MAGIC)?;
    Some(number.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count())
}

/// Checks that `bytes` begin with a record of a version that Doppel reads.
pub(crate) fn check_version(bytes: &[u8]) -> Result<(), HeadError> {
    let Some(version) = version(bytes) else { return Err(HeadError::Version(excerpt(bytes))) };
    let is_read = version.starts_with(b"WARC/1.") || DRAFTS.contains(&version);
    match is_read {
        true => Ok(()),
        false if has_two_numbers(version) => Err(HeadError::OtherVersion(excerpt(version))),
        false => Err(HeadError::Version(excerpt(version))),
    }
}

/// Whether a version consists of two numbers with one dot between them. Other versions are damaged.
fn has_two_numbers(version: &[u8]) -> bool {
    let mut numbers = version[MAGIC.len()..].split(|byte| *byte == b'.');
    numbers.by_ref().take(2).filter(|number| !number.is_empty()).count() == 2 && numbers.next().is_none()
}

/// Whether a record is a draft before WARC 1.0. In files of these drafts, line ends may break the values of
/// fields.
pub(crate) fn is_draft(bytes: &[u8]) -> bool {
    version(bytes).is_some_and(|version| DRAFTS.contains(&version))
}

/// Checks that Doppel reads the version of the first record of a file. A file of an unknown version then
/// gives one error instead of one per record. Ignores a file that does not begin with a WARC record; its
/// reader reports that.
pub(crate) fn check_first_record(beginning: &[u8]) -> Result<(), Reason> {
    // Drafts before 0.12 write the version in lower case, and fields behind it on the same line.
    if beginning.get(..MAGIC.len()).is_some_and(|magic| magic == b"warc/") {
        let version = beginning.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        return Err(HeadError::OtherVersion(excerpt(version)).into());
    }
    match check_version(beginning) {
        Err(error @ HeadError::OtherVersion(_)) => Err(error.into()),
        _ => Ok(()),
    }
}

/// First line of `bytes`, shortened for a message.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    let line = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(&line[..line.len().min(60)]).trim().to_owned()
}
