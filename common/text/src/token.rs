//! The tokeniser: text to token hashes.
//!
//! A token is a maximal run of alphanumeric characters ([`char::is_alphanumeric`]), each lower-cased
//! by [`char::to_lowercase`], with no other normalisation. Runs of scripts without spaces
//! ([`Class`]), split where the class changes, give overlapping bigrams instead; a single such
//! character is itself a token. A token is known by its [`stable_hash64`].
//!
//! Any change of these rules needs a new [`TOKENISER_VERSION`](super::TOKENISER_VERSION). The standard library's
//! version of Unicode defines the letters; a newer version only adds some.

use super::letter::{Letters, Lower};
use super::script::Class;
use doppel_model::{StableHasher64, stable_hash64};

/// The number of bytes that are examined together.
const BLOCK: usize = 64;

/// Turns texts into token hashes. It reuses its buffers.
#[derive(Debug, Clone, Default)]
pub(super) struct Tokeniser {
    hashes: Vec<u64>,
    word: Vec<u8>,
}

/// Takes the tokens of a text, one after another.
pub(super) trait Tokens {
    /// Takes the next token, in lower case.
    fn token(&mut self, token: &[u8]);
}

impl Tokens for Vec<u64> {
    #[inline]
    fn token(&mut self, token: &[u8]) {
        self.push(stable_hash64(token));
    }
}

/// Hashes, and whatever else takes each token with its hash.
struct And<'t, F>(&'t mut Vec<u64>, F);

impl<F: FnMut(&[u8], u64)> Tokens for And<'_, F> {
    fn token(&mut self, token: &[u8]) {
        let hash = stable_hash64(token);
        self.0.push(hash);
        (self.1)(token, hash);
    }
}

/// All tokens as one hash.
#[derive(Default)]
struct Whole {
    hasher: StableHasher64,
    is_any: bool,
}

impl Tokens for Whole {
    fn token(&mut self, token: &[u8]) {
        self.hasher.update(&stable_hash64(token).to_le_bytes());
        self.is_any = true;
    }
}

impl Tokeniser {
    /// The hashes of the tokens of `text`. Its ASCII letters are changed to lower case in place. Bytes that are not
    /// UTF-8 separate tokens.
    pub(super) fn tokens(&mut self, text: &mut [u8]) -> &[u64] {
        self.hashes.clear();
        Reader { tokens: &mut self.hashes, word: &mut self.word }.read(text);
        &self.hashes
    }

    /// The same; `each` is given every token, in lower case, with its hash.
    pub(super) fn tokens_and(&mut self, text: &mut [u8], each: impl FnMut(&[u8], u64)) -> &[u64] {
        self.hashes.clear();
        Reader { tokens: &mut And(&mut self.hashes, each), word: &mut self.word }.read(text);
        &self.hashes
    }

    /// The hash of all tokens of `text` together, without room for each; none where there are none.
    pub(super) fn hash(&mut self, text: &mut [u8]) -> Option<u64> {
        let mut whole = Whole::default();
        Reader { tokens: &mut whole, word: &mut self.word }.read(text);
        whole.is_any.then(|| whole.hasher.finish())
    }

    /// The tokens that were found last.
    pub(super) fn found(&self) -> &[u64] {
        &self.hashes
    }
}

/// Reads one text.
struct Reader<'t, T> {
    tokens: &'t mut T,
    word: &'t mut Vec<u8>,
}

impl<T: Tokens> Reader<'_, T> {
    /// The text is cut into segments of ASCII letters, digits and bytes above ASCII; all other characters separate
    /// tokens. Almost all segments are pure ASCII, and each of these is one token.
    fn read(&mut self, text: &mut [u8]) {
        text.make_ascii_lowercase();
        let mut start = 0;
        let mut inside = 0;
        let mut above = 0;
        for (block, at) in text.chunks(BLOCK).zip((0..).step_by(BLOCK)) {
            let (segments, high) = classify(block);
            // One bit for each place where a segment begins or ends.
            let mut edges = segments ^ (segments << 1 | inside);
            while edges != 0 {
                let edge = edges.trailing_zeros();
                edges &= edges - 1;
                let edge_at = at + edge as usize;
                if inside == 0 {
                    start = edge_at;
                    above = 0;
                } else {
                    // Bytes of this block that belong to the segment, and those of earlier blocks.
                    let from = start.saturating_sub(at) as u32;
                    let mask = (1u64 << edge).wrapping_sub(1u64 << from);
                    self.segment(&text[start..edge_at], (above | high & mask) == 0);
                }
                inside ^= 1;
            }
            if inside == 1 {
                let from = start.saturating_sub(at) as u32;
                above |= high >> from;
            }
        }
        if inside == 1 {
            self.segment(&text[start..], above == 0);
        }
    }

    #[inline]
    fn segment(&mut self, segment: &[u8], ascii: bool) {
        if ascii {
            self.tokens.token(segment);
        } else {
            self.mixed(segment);
        }
    }

    /// Reads a segment with characters above ASCII.
    fn mixed(&mut self, segment: &[u8]) {
        let mut run = Run {
            letters: Letters::new(),
            tokens: &mut *self.tokens,
            word: &mut *self.word,
            class: Class::Spaced,
            paired: false,
        };
        for chunk in segment.utf8_chunks() {
            chunk.valid().chars().for_each(|c| run.push(c));
            if !chunk.invalid().is_empty() {
                run.end();
            }
        }
        run.end();
    }
}

/// Classifies bytes. Bit i of the first number says whether byte i is a lower-case ASCII letter, a digit or above
/// ASCII. Bit i of the second number says whether it is above ASCII. Bits past the end are clear.
#[inline]
fn classify(block: &[u8]) -> (u64, u64) {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    /// Sets the high bit of each byte that is at least `low`. All bytes are below 0x80.
    const fn at_least(bytes: u64, low: u8) -> u64 {
        bytes + ONES * (0x80 - low as u64)
    }
    /// Collects the high bits of the eight bytes.
    const fn gather(bytes: u64) -> u64 {
        ((bytes & HIGH) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
    }
    let mut padded = [0; BLOCK];
    let block: &[u8; BLOCK] = match block.first_chunk() {
        Some(whole) => whole,
        None => {
            padded[..block.len()].copy_from_slice(block);
            &padded
        }
    };
    let (mut segments, mut high) = (0, 0);
    for (word, shift) in block.chunks_exact(8).zip((0..).step_by(8)) {
        let bytes = u64::from_le_bytes(word.try_into().unwrap_or_default());
        let low = bytes & !HIGH;
        let letter = at_least(low, b'a') & !at_least(low, b'z' + 1);
        let digit = at_least(low, b'0') & !at_least(low, b'9' + 1);
        segments |= gather(letter | digit | bytes) << shift;
        high |= gather(bytes) << shift;
    }
    (segments, high)
}

/// A run of alphanumeric characters being read.
struct Run<'a, T> {
    letters: Letters,
    tokens: &'a mut T,
    /// In lower case: the open token in a script with spaces, otherwise the last character of the run.
    word: &'a mut Vec<u8>,
    class: Class,
    /// Whether the open run of a script without spaces has given a bigram.
    paired: bool,
}

impl<T: Tokens> Run<'_, T> {
    fn push(&mut self, c: char) {
        let Some(lower) = self.letters.lower(c) else { return self.end() };
        let class = Class::of(c);
        if class != self.class {
            self.end();
            self.class = class;
        }
        let previous = self.word.len();
        match lower {
            Lower::One(one) => self.append(one),
            Lower::All(all) => all.for_each(|one| self.append(one)),
        }
        if class != Class::Spaced && previous > 0 {
            self.tokens.token(self.word);
            self.paired = true;
            self.word.drain(..previous);
        }
    }

    fn append(&mut self, c: char) {
        self.word.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    /// Ends the run, if one is open.
    fn end(&mut self) {
        if !self.word.is_empty() && !self.paired {
            self.tokens.token(self.word);
        }
        self.word.clear();
        self.class = Class::Spaced;
        self.paired = false;
    }
}

#[cfg(test)]
mod tests;
