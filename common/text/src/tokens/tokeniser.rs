//! The tokeniser: cuts a text into words and hashes them.
//!
//! The tokeniser normalises a text to its [form](super::form) first, so equal texts have equal tokens,
//! whatever their spelling. A token is a maximal run of letters and digits, each with the combining marks
//! after it. A mark after any other character separates tokens.
//!
//! Scripts without spaces ([`Class`]) have no word boundaries. A run of such a script yields overlapping
//! bigrams of letters with their marks, and a run of a single letter yields that letter. A run ends where the
//! class changes.
//!
//! Each token is represented by its [`stable_hash64`]. Any change of these rules needs a new
//! [`TOKENISER_VERSION`](crate::TOKENISER_VERSION). The Unicode tables come from ICU4X; a newer version of
//! the tables only adds characters.

use std::str::Chars;

use super::form::Form;
use super::letter::{CharCategory, CharKind, Letters, PlainCharacter, combining_class};
use super::script::Class;
use doppel_model::{StableHasher64, stable_hash64};

/// Number of bytes that [`classify`] examines together.
const BLOCK: usize = 64;

/// Maximum number of bytes of adjacent clusters that the normaliser takes together. Bounds its buffers.
const NORMALISED_BYTES: usize = 4 << 10;

/// Turns texts into token hashes, with buffers that are reused from text to text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tokeniser {
    hashes: Vec<u64>,
    word: Vec<u8>,
    form: Form,
}

/// Receiver of the tokens of a text, in text order.
pub(crate) trait TokenSink {
    /// Takes the next token.
    fn push_token(&mut self, token: &[u8]);
}

impl TokenSink for Vec<u64> {
    #[inline]
    fn push_token(&mut self, token: &[u8]) {
        self.push(stable_hash64(token));
    }
}

/// Collects the token hashes and also passes each token with its hash to a function.
struct ObservingSink<'t, F>(&'t mut Vec<u64>, F);

impl<F: FnMut(&[u8], u64)> TokenSink for ObservingSink<'_, F> {
    fn push_token(&mut self, token: &[u8]) {
        let hash = stable_hash64(token);
        self.0.push(hash);
        (self.1)(token, hash);
    }
}

/// Hashes all tokens of a text into a single hash.
#[derive(Default)]
struct TextHasher {
    hasher: StableHasher64,
    has_tokens: bool,
}

impl TokenSink for TextHasher {
    fn push_token(&mut self, token: &[u8]) {
        self.hasher.update(&stable_hash64(token).to_le_bytes());
        self.has_tokens = true;
    }
}

impl Tokeniser {
    /// Returns the hashes of the tokens of `text`, and changes its ASCII letters to lower case in place.
    /// Bytes that are not UTF-8 separate tokens.
    pub(crate) fn tokens(&mut self, text: &mut [u8]) -> &[u64] {
        self.hashes.clear();
        Reader { tokens: &mut self.hashes, word: &mut self.word, form: &mut self.form }.read(text);
        &self.hashes
    }

    /// Like [`tokens`](Self::tokens), but also passes every token with its hash to `each`.
    pub(crate) fn visit_tokens(&mut self, text: &mut [u8], each: impl FnMut(&[u8], u64)) -> &[u64] {
        self.hashes.clear();
        let mut sink = ObservingSink(&mut self.hashes, each);
        Reader { tokens: &mut sink, word: &mut self.word, form: &mut self.form }.read(text);
        &self.hashes
    }

    /// Returns a single hash of all tokens of `text`, without a buffer for them, or `None` if there are no
    /// tokens. Also changes ASCII letters to lower case.
    pub(crate) fn hash(&mut self, text: &mut [u8]) -> Option<u64> {
        let mut whole = TextHasher::default();
        Reader { tokens: &mut whole, word: &mut self.word, form: &mut self.form }.read(text);
        whole.has_tokens.then(|| whole.hasher.finish())
    }

    /// Returns the hashes that the last call of [`tokens`](Self::tokens) returned.
    pub(crate) fn last_tokens(&self) -> &[u64] {
        &self.hashes
    }
}

/// Reads a single text, and passes its tokens to `tokens`.
struct Reader<'t, T> {
    tokens: &'t mut T,
    word: &'t mut Vec<u8>,
    form: &'t mut Form,
}

impl<T: TokenSink> Reader<'_, T> {
    /// Cuts the text into segments of ASCII letters, digits and bytes above ASCII. All other ASCII characters
    /// separate tokens. Almost all segments are pure ASCII, and such a segment is a single token.
    fn read(&mut self, text: &mut [u8]) {
        text.make_ascii_lowercase();
        let mut start = 0;
        let mut inside = 0;
        let mut above = 0;
        for (block, at) in text.chunks(BLOCK).zip((0..).step_by(BLOCK)) {
            let (segments, high) = classify(block);
            // A bit is set at each position where a segment begins or ends.
            let mut edges = segments ^ (segments << 1 | inside);
            while edges != 0 {
                let edge = edges.trailing_zeros();
                edges &= edges - 1;
                let edge_at = at + edge as usize;
                if inside == 0 {
                    start = edge_at;
                    above = 0;
                } else {
                    // `mask` selects the bytes of this block that belong to the segment; `above` has the
                    // earlier blocks.
                    let from = start.saturating_sub(at) as u32;
                    let mask = (1u64 << edge).wrapping_sub(1u64 << from);
                    self.read_segment(&text[start..edge_at], (above | high & mask) == 0);
                }
                inside ^= 1;
            }
            if inside == 1 {
                let from = start.saturating_sub(at) as u32;
                above |= high >> from;
            }
        }
        if inside == 1 {
            self.read_segment(&text[start..], above == 0);
        }
    }

    #[inline]
    fn read_segment(&mut self, segment: &[u8], ascii: bool) {
        if ascii {
            self.tokens.push_token(segment);
        } else {
            self.read_mixed(segment);
        }
    }

    /// Reads a segment with characters above ASCII.
    fn read_mixed(&mut self, segment: &[u8]) {
        let letters = Letters::new();
        let rest = self.read_plain(letters, segment);
        if rest < segment.len() {
            self.read_any(letters, &segment[rest..]);
        }
    }

    /// Reads words of plain characters (see [`PlainCharacter`]), as almost all words of European languages
    /// are. Stops at the first word with any other character and returns the position of that word. Returns
    /// the length of `segment` if there is no such word.
    #[inline]
    fn read_plain(&mut self, letters: Letters, segment: &[u8]) -> usize {
        self.word.clear();
        let (mut at, mut begin) = (0, 0);
        while let Some(&first) = segment.get(at) {
            if first < 0x80 {
                self.word.push(first);
                at += 1;
                continue;
            }
            let Some((length, plain)) = letters.plain(&segment[at..]) else {
                self.word.clear();
                return begin;
            };
            at += length;
            match plain {
                PlainCharacter::Separator => {
                    if !self.word.is_empty() {
                        self.tokens.push_token(self.word);
                        self.word.clear();
                    }
                    begin = at;
                }
                PlainCharacter::Letter(bytes, length) => self.word.extend_from_slice(&bytes[..length]),
            }
        }
        if !self.word.is_empty() {
            self.tokens.push_token(self.word);
            self.word.clear();
        }
        at
    }

    fn read_any(&mut self, letters: Letters, segment: &[u8]) {
        let (tokens, word) = (&mut *self.tokens, &mut *self.word);
        let mut run = Run { letters, tokens, word, class: Class::Spaced, second_at: 0 };
        for chunk in segment.utf8_chunks() {
            run.read(chunk.valid(), self.form);
            run.end();
        }
    }
}

/// Classifies up to 64 bytes. Bit i of the first number is set if byte i is a lower-case ASCII letter, a
/// digit or above ASCII. Bit i of the second number is set if byte i is above ASCII. Bits past the end are
/// clear.
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

/// The run of letters, digits and marks at the current position.
struct Run<'a, T> {
    letters: Letters,
    tokens: &'a mut T,
    /// Normalised text of the open token. In a script without spaces, the last one or two letters of the run,
    /// with their marks.
    word: &'a mut Vec<u8>,
    class: Class,
    /// Position of the second letter in `word`, in a script without spaces. 0 if there is no second letter.
    second_at: usize,
}

impl<T: TokenSink> Run<'_, T> {
    /// Reads text cluster by cluster. A cluster is a regular character with the characters after it that are
    /// not regular. The form of a cluster does not depend on the rest of the text, so each cluster can be
    /// normalised separately.
    fn read(&mut self, text: &str, form: &mut Form) {
        let (mut regular, mut start) = (None, 0);
        let mut rest = text.chars();
        loop {
            let at = text.len() - rest.as_str().len();
            let Some(c) = rest.next() else { break };
            let kind = self.letters.kind(c);
            if kind.is_regular() {
                if let Some(before) = regular.replace(kind) {
                    self.push_regular(before);
                }
                start = at;
                continue;
            }
            if regular.is_none() {
                start = at;
            }
            let is_single = !matches!(regular.take(), Some(CharKind::Sequence(_)));
            let in_form = self.end_of_cluster(&mut rest, c, kind, is_single);
            let cluster = &text[start..text.len() - rest.as_str().len()];
            if in_form {
                for c in cluster.chars() {
                    match self.letters.kind(c) {
                        CharKind::OrderedMark => self.push_mark(c),
                        kind => self.push_regular(kind),
                    }
                }
            } else {
                form.fold(cluster).chars().for_each(|c| self.push_normalised(c));
            }
        }
        if let Some(last) = regular {
            self.push_regular(last);
        }
    }

    /// Advances `rest` to the end of the cluster, whose first character that is not regular is `c`. Returns
    /// whether the cluster needs no normalisation, except for the case of its first letter. If the cluster
    /// needs normalisation, the next clusters may be added to it, which saves time.
    fn end_of_cluster(&self, rest: &mut Chars<'_>, c: char, kind: CharKind, is_single: bool) -> bool {
        let mut in_form = is_single && kind == CharKind::OrderedMark;
        let mut class = combining_class(c);
        let length = rest.as_str().len();
        loop {
            let mut behind = rest.clone();
            let Some(c) = behind.next() else { break };
            let is_long = length - rest.as_str().len() > NORMALISED_BYTES;
            match self.letters.kind(c) {
                CharKind::OrderedMark => {
                    let before = std::mem::replace(&mut class, combining_class(c));
                    in_form &= before <= class;
                }
                CharKind::Irregular if is_long && self.letters.is_regular(c) => break,
                CharKind::Irregular => in_form = false,
                _ => {
                    let is_irregular = |c| !self.letters.kind(c).is_regular();
                    if in_form || is_long || !behind.clone().next().is_some_and(is_irregular) {
                        break;
                    }
                }
            }
            *rest = behind;
        }
        in_form
    }

    /// Adds a character to the open run, or ends the run if the character separates words. The character
    /// needs no normaliser.
    #[inline]
    fn push_regular(&mut self, kind: CharKind) {
        match kind {
            CharKind::Letter(c) => self.push_letter(c),
            CharKind::Mark(c) => self.push_mark(c),
            CharKind::Sequence(at) => self.letters.sequence(at).chars().for_each(|c| self.push_normalised(c)),
            CharKind::Separator | CharKind::OrderedMark | CharKind::Irregular => self.end(),
        }
    }

    /// Adds a character of normalised text to the open run, or ends the run if the character separates words.
    fn push_normalised(&mut self, c: char) {
        match self.letters.category(c) {
            CharCategory::Letter => self.push_letter(c),
            CharCategory::Mark => self.push_mark(c),
            CharCategory::Other => self.end(),
        }
    }

    #[inline]
    fn push_letter(&mut self, c: char) {
        let class = Class::of(c);
        if class != self.class {
            self.end();
            self.class = class;
        }
        if class != Class::Spaced && !self.word.is_empty() {
            if self.second_at > 0 {
                self.tokens.push_token(self.word);
                self.word.drain(..self.second_at);
            }
            self.second_at = self.word.len();
        }
        self.append(c);
    }

    /// Adds a mark to the letter before it. A mark without a letter is ignored.
    fn push_mark(&mut self, c: char) {
        if !self.word.is_empty() {
            self.append(c);
        }
    }

    #[inline]
    fn append(&mut self, c: char) {
        self.word.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    /// Ends the run, if a run is open.
    fn end(&mut self) {
        if !self.word.is_empty() {
            self.tokens.push_token(self.word);
        }
        self.word.clear();
        self.class = Class::Spaced;
        self.second_at = 0;
    }
}

#[cfg(test)]
mod tests;
