//! Builds the signature of a content from the hashes of its tokens.

use super::{
    BUCKET_SHIFT, FORMAT, SHINGLE_BITS, SHINGLE_TOKENS, Signature, SignatureKind, TOKENISER_VERSION, set,
};
use crate::ContentHash;
use crate::sketch::sketch;
use crate::{stable_hash64, stable_hash128};

/// The dummy token, which is the hash of the single byte 0. No token consists of that byte.
///
/// A text is padded with k - 1 dummy tokens at the end, so that n tokens give n shingles.
const DUMMY: u64 = 0xc44b_dff4_074e_ecdb;

/// Multiplier of the polynomial over the tokens of a shingle: 2^64 / golden ratio, odd.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Builds signatures from token hashes. A builder reuses its buffers from one signature to the next.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    shingles: Vec<u64>,
    bytes: Vec<u8>,
}

impl Builder {
    /// Creates a builder with empty buffers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Builds a signature of [`SignatureKind::Shingles`] with [`SHINGLE_TOKENS`] tokens per shingle.
    ///
    /// `tokens` are the hashes of a content's tokens ([`stable_hash64`] of each), in text order. Tokens after
    /// the first 2^32 - 1 are ignored; input limits keep real contents far below that.
    pub fn build(&mut self, tokens: &[u64]) -> Signature {
        self.build_of(SHINGLE_TOKENS as u32, tokens)
    }

    /// Like [`build`](Self::build), but with `words` tokens per shingle.
    ///
    /// If `words` is outside [`SHINGLE_TOKENS_RANGE`](super::SHINGLE_TOKENS_RANGE), the nearest number in
    /// that range is used.
    pub fn build_of(&mut self, words: u32, tokens: &[u64]) -> Signature {
        let count = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        let tokens = &tokens[..count as usize];
        let content = self.content(tokens);
        shingles_of(words, tokens, &mut self.shingles);
        self.begin(SignatureKind::Shingles, content, (count, self.shingles.len() as u32));
        self.bytes.extend(sketch(&self.shingles));
        set::pack(&self.shingles, &mut self.bytes);
        self.finish()
    }

    /// Builds a signature of any other kind, for a content with this number of tokens and this size.
    ///
    /// The set of the signature holds the low 40 bits of `hashes`. `hashes` is left reduced to these bits,
    /// sorted, and without duplicates.
    ///
    /// # Panics
    /// If the payload is longer than 2^32 - 1 bytes.
    pub fn with_payload(
        &mut self,
        kind: SignatureKind,
        content: ContentHash,
        (tokens, size): (u32, u32),
        payload: &[u8],
        hashes: &mut Vec<u64>,
    ) -> Signature {
        hashes.iter_mut().for_each(|hash| *hash &= (1 << SHINGLE_BITS) - 1);
        hashes.sort_unstable();
        hashes.dedup();
        self.begin(kind, content.0, (tokens, size));
        let bytes = u32::try_from(payload.len()).expect("the payload of a signature is below 4 GiB");
        self.bytes.extend(bytes.to_le_bytes());
        self.bytes.extend((hashes.len() as u32).to_le_bytes());
        self.bytes.extend(payload);
        set::pack(hashes, &mut self.bytes);
        self.finish()
    }

    fn begin(&mut self, kind: SignatureKind, content: [u8; 16], (tokens, size): (u32, u32)) {
        self.bytes.clear();
        self.bytes.push(FORMAT);
        self.bytes.extend(TOKENISER_VERSION.to_le_bytes());
        self.bytes.push(kind as u8);
        self.bytes.extend(content);
        self.bytes.extend(tokens.to_le_bytes());
        self.bytes.extend(size.to_le_bytes());
    }

    fn finish(&mut self) -> Signature {
        self.bytes.extend(stable_hash64(&self.bytes).to_le_bytes());
        Signature(self.bytes.as_slice().into())
    }

    /// Hashes a sequence of tokens to the id of its content, without building a signature.
    #[must_use]
    pub fn content_of(&mut self, tokens: &[u64]) -> ContentHash {
        ContentHash(self.content(tokens))
    }

    /// Like [`content_of`](Self::content_of), but returns the bare bytes.
    pub(crate) fn content(&mut self, tokens: &[u64]) -> [u8; 16] {
        self.bytes.clear();
        self.bytes.resize(size_of_val(tokens), 0);
        for (bytes, token) in self.bytes.chunks_exact_mut(8).zip(tokens) {
            bytes.copy_from_slice(&token.to_le_bytes());
        }
        stable_hash128(&self.bytes).to_be_bytes()
    }
}

/// Replaces `out` by the distinct hashes of all shingles of `words` tokens, ascending.
///
/// Each length is a separate instance of [`shingles`], so that the compiler can unroll the loop over a
/// window.
fn shingles_of(words: u32, tokens: &[u64], out: &mut Vec<u64>) {
    match words {
        0..=3 => shingles::<3>(tokens, out),
        4 => shingles::<4>(tokens, out),
        5 => shingles::<SHINGLE_TOKENS>(tokens, out),
        6 => shingles::<6>(tokens, out),
        7 => shingles::<7>(tokens, out),
        8 => shingles::<8>(tokens, out),
        9 => shingles::<9>(tokens, out),
        10 => shingles::<10>(tokens, out),
        11 => shingles::<11>(tokens, out),
        12 => shingles::<12>(tokens, out),
        13.. => shingles::<13>(tokens, out),
    }
}

/// Replaces `out` by the distinct hashes of all shingles of `K` tokens, ascending. One shingle begins at each
/// token.
pub(crate) fn shingles<const K: usize>(tokens: &[u64], out: &mut Vec<u64>) {
    out.clear();
    out.extend(tokens.windows(K).map(hash));
    let last = tokens.len().saturating_sub(K - 1);
    for start in last..tokens.len() {
        let mut window = [DUMMY; K];
        window[..tokens.len() - start].copy_from_slice(&tokens[start..]);
        out.push(hash(&window));
    }
    out.sort_unstable();
    out.dedup();
}

/// Hashes one shingle. The top bits are the bucket of the first token, and the 28 bits below come from a
/// polynomial over all tokens.
///
/// Tokens are hashes already, so they need no mixing before the sum. The top bits of the final product depend
/// on all bits below them.
#[inline]
fn hash(window: &[u64]) -> u64 {
    let sum = window.iter().fold(0u64, |sum, token| sum.wrapping_mul(MULTIPLIER).wrapping_add(*token));
    let mixed = (sum ^ sum >> 32).wrapping_mul(MULTIPLIER);
    let bucket = window[0] >> (64 - (SHINGLE_BITS - BUCKET_SHIFT));
    bucket << BUCKET_SHIFT | mixed >> (64 - BUCKET_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dummy_is_the_hash_of_a_zero_byte() {
        assert_eq!(DUMMY, stable_hash64(b"\0"));
    }

    #[test]
    fn there_are_as_many_shingles_as_tokens() {
        for n in 0..12u64 {
            let tokens: Vec<u64> = (0..n).map(|i| stable_hash64(&i.to_le_bytes())).collect();
            let signature = Builder::new().build(&tokens);
            assert_eq!(u64::from(signature.tokens()), n);
            assert_eq!(u64::from(signature.size()), n);
        }
    }

    /// Computes the expected shingles in another way: from every window of the padded tokens.
    #[test]
    fn shingles_have_the_requested_number_of_tokens() {
        let tokens: Vec<u64> = (0..40u64).map(|i| stable_hash64(&(i % 23).to_le_bytes())).collect();
        for words in super::super::SHINGLE_TOKENS_RANGE {
            let mut padded = tokens.clone();
            padded.resize(tokens.len() + words as usize - 1, DUMMY);
            let mut expected: Vec<u64> = padded.windows(words as usize).map(hash).collect();
            expected.sort_unstable();
            expected.dedup();
            let signature = Builder::new().build_of(words, &tokens);
            assert!(signature.set().eq(expected), "{words}");
            assert_eq!(signature.content(), Builder::new().build(&tokens).content());
        }
        assert_eq!(Builder::new().build_of(5, &tokens), Builder::new().build(&tokens));
    }

    #[test]
    fn the_top_bits_are_the_bucket_of_the_first_word() {
        let tokens: Vec<u64> = (0..9u64).map(|i| stable_hash64(&i.to_le_bytes())).collect();
        let mut expected: Vec<u64> = tokens.iter().map(|t| t >> 52).collect();
        expected.sort_unstable();
        let buckets: Vec<u64> = Builder::new().build(&tokens).set().map(|h| h >> BUCKET_SHIFT).collect();
        assert_eq!(buckets, expected);
    }
}
