//! Reads signatures that are stored one after another without separators. The head of each signature gives
//! its length.

use std::io::{self, ErrorKind, Read};

use super::{FORMAT, KIND, PAYLOAD, Signature, SignatureError, SignatureKind, layout};

impl Signature {
    /// Reads the next signature. Returns `None` at the end of the input.
    ///
    /// # Errors
    /// If the input fails, ends within a signature, or contains an invalid signature.
    pub fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let invalid = |error| io::Error::new(ErrorKind::InvalidData, error);
        let mut bytes = Vec::new();
        if input.by_ref().take(PAYLOAD as u64).read_to_end(&mut bytes)? == 0 {
            return Ok(None);
        }
        if bytes[0] != FORMAT {
            return Err(invalid(SignatureError::Format(bytes[0])));
        }
        if bytes.len() == PAYLOAD {
            let kind =
                SignatureKind::of(bytes[KIND]).ok_or_else(|| invalid(SignatureError::Kind(bytes[KIND])))?;
            // The length in the head is untrusted. `read_to_end` grows the buffer only as far as the input
            // has data.
            let rest = layout(kind, &bytes).bytes.saturating_sub(PAYLOAD as u64);
            input.by_ref().take(rest).read_to_end(&mut bytes)?;
        }
        Self::from_bytes(&bytes).map(Some).map_err(invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::Builder;

    #[test]
    fn a_sequence_is_read_and_damage_is_refused() {
        let mut builder = Builder::new();
        let signatures: Vec<Signature> =
            (0..9u64).map(|n| builder.build(&(0..n * n).collect::<Vec<u64>>())).collect();
        let bytes: Vec<u8> = signatures.iter().flat_map(|one| one.as_bytes().to_vec()).collect();
        let read = |bytes: &[u8]| {
            let mut input = bytes;
            std::iter::from_fn(|| Signature::read(&mut input).transpose()).collect::<io::Result<Vec<_>>>()
        };
        assert_eq!(read(&bytes).unwrap(), signatures);
        let mut ends = vec![0];
        signatures.iter().for_each(|one| ends.push(ends[ends.len() - 1] + one.as_bytes().len()));
        for length in 0..bytes.len() {
            assert_eq!(read(&bytes[..length]).is_ok(), ends.contains(&length), "{length}");
            let mut damaged = bytes.clone();
            damaged[length] ^= 1;
            assert!(read(&damaged).is_err(), "{length}");
        }
    }
}
