//! Encoding of stored records.
//!
//! A value is `version (1 byte) | postcard body | low 4 bytes of XXH3 of both`. A wrong checksum or an
//! unknown version is an error; the decoder never guesses.

use doppel_model::stable_hash64;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::storage::store::StoreError;

/// Format version of all records. `CONTRIBUTING.md` lists the steps of a format change.
pub(crate) const VERSION: u8 = 13;

/// Encodes a record with its version and checksum.
///
/// # Errors
/// Fails if the record cannot be encoded. The caller must then fail the commit, because an empty row would
/// look like damage.
pub(crate) fn encode<T: Serialize>(record: &T) -> Result<Vec<u8>, StoreError> {
    postcard::to_extend(record, vec![VERSION])
        .map(seal)
        .map_err(|error| StoreError::Unencodable(error.to_string()))
}

/// Appends the checksum to a version and a body.
pub(crate) fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = stable_hash64(&bytes) as u32;
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// Decodes a record after checking its checksum and version.
///
/// # Errors
/// Fails if the bytes are damaged, have another version, or hold another kind of record.
pub(crate) fn decode<T: DeserializeOwned>(key: &[u8], bytes: &[u8]) -> Result<T, StoreError> {
    let body = body(key, bytes)?;
    postcard::from_bytes(body).map_err(|_| damaged(key, "not a record of this kind"))
}

/// Creates the error for a damaged row. The message shows the key in hexadecimal.
pub(crate) fn damaged(key: &[u8], reason: &'static str) -> StoreError {
    StoreError::Damaged { key: key.iter().map(|b| format!("{b:02x}")).collect(), reason }
}

/// Returns the body of a record, without version and checksum.
///
/// # Errors
/// Fails if the checksum is wrong or the version is not [`VERSION`].
pub(crate) fn body<'b>(key: &[u8], bytes: &'b [u8]) -> Result<&'b [u8], StoreError> {
    let damaged = |reason| damaged(key, reason);
    let (body, sum) = bytes.split_last_chunk::<4>().ok_or_else(|| damaged("shorter than its checksum"))?;
    if stable_hash64(body) as u32 != u32::from_le_bytes(*sum) {
        return Err(damaged("wrong checksum"));
    }
    let (&version, body) = body.split_first().ok_or_else(|| damaged("no version"))?;
    if version != VERSION {
        return Err(StoreError::Version { found: version, expected: VERSION });
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::record::Meta;

    #[test]
    fn damage_is_detected() {
        let meta = Meta { groups_minted: 7, sent: vec![1, 2], ..Meta::default() };
        let bytes = encode(&meta).unwrap();
        assert_eq!(decode::<Meta>(b"k", &bytes).unwrap(), meta);
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert!(decode::<Meta>(b"k", &bad).is_err(), "byte {at}");
        }
        assert!(decode::<Meta>(b"k", &[]).is_err());
    }

    /// A record whose serialisation always fails.
    struct Unserialisable;

    impl Serialize for Unserialisable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no"))
        }
    }

    #[test]
    fn an_encoding_that_fails_is_an_error() {
        assert!(matches!(encode(&Unserialisable), Err(StoreError::Unencodable(_))));
    }
}
