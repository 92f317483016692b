//! The tokeniser: text to token hashes.
//!
//! Tokens are cut from the [form](super::form) of a text, so equal texts have equal tokens however they are written. A token is a maximal
//! run of letters and digits, each with the combining marks behind it; a mark behind anything else separates. Runs of scripts without
//! spaces ([`Class`]), split where the class changes, give overlapping bigrams of letters with their marks instead; a single such letter is
//! itself a token. A token is known by its [`stable_hash64`].
//!
//! Any change of these rules needs a new [`TOKENISER_VERSION`](super::TOKENISER_VERSION). The tables of Unicode are those of ICU4X; a newer
//! version of them only adds characters.

use std::str::Chars;

use super::form::Form;
use super::letter::{Kind, Letters, Part, Plain, combining_class};
use super::script::Class;
use doppel_model::{StableHasher64, stable_hash64};

/// The number of bytes that are examined together.
const BLOCK: usize = 64;

/// The number of bytes of clusters that are put into their form together.
const TOGETHER: usize = 4 << 10;

/// Turns texts into token hashes. It reuses its buffers.
#[derive(Debug, Clone, Default)]
pub(super) struct Tokeniser {
    hashes: Vec<u64>,
    word: Vec<u8>,
    form: Form,
}

/// Takes the tokens of a text, one after another.
pub(super) trait Tokens {
    /// Takes the next token.
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
        Reader { tokens: &mut self.hashes, word: &mut self.word, form: &mut self.form }.read(text);
        &self.hashes
    }

    /// The same; `each` is given every token with its hash.
    pub(super) fn visit_tokens(&mut self, text: &mut [u8], each: impl FnMut(&[u8], u64)) -> &[u64] {
        self.hashes.clear();
        Reader { tokens: &mut And(&mut self.hashes, each), word: &mut self.word, form: &mut self.form }
            .read(text);
        &self.hashes
    }

    /// The hash of all tokens of `text` together, without room for each; none where there are none.
    pub(super) fn hash(&mut self, text: &mut [u8]) -> Option<u64> {
        let mut whole = Whole::default();
        Reader { tokens: &mut whole, word: &mut self.word, form: &mut self.form }.read(text);
        whole.is_any.then(|| whole.hasher.finish())
    }

    /// The tokens that were found last.
    pub(super) fn last_tokens(&self) -> &[u64] {
        &self.hashes
    }
}

/// Reads one text.
struct Reader<'t, T> {
    tokens: &'t mut T,
    word: &'t mut Vec<u8>,
    form: &'t mut Form,
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
        let letters = Letters::new();
        let rest = self.plain(letters, segment);
        if rest < segment.len() {
            self.any(letters, &segment[rest..]);
        }
    }

    /// Reads words of letters that are their own form but for their case, up to the word in which there is anything else, as almost all are in
    /// European languages. Returns where that word begins.
    #[inline]
    fn plain(&mut self, letters: Letters, segment: &[u8]) -> usize {
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
                Plain::Separator => {
                    if !self.word.is_empty() {
                        self.tokens.token(self.word);
                        self.word.clear();
                    }
                    begin = at;
                }
                Plain::Letter(bytes, length) => self.word.extend_from_slice(&bytes[..length]),
            }
        }
        if !self.word.is_empty() {
            self.tokens.token(self.word);
            self.word.clear();
        }
        at
    }

    fn any(&mut self, letters: Letters, segment: &[u8]) {
        let mut run =
            Run { letters, tokens: &mut *self.tokens, word: &mut *self.word, class: Class::Spaced, last: 0 };
        for chunk in segment.utf8_chunks() {
            run.read(chunk.valid(), self.form);
            run.end();
        }
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

/// A run of letters, digits and marks being read.
struct Run<'a, T> {
    letters: Letters,
    tokens: &'a mut T,
    /// In the form of words: the open token in a script with spaces, otherwise the last letter of the run with its marks, or the last two.
    word: &'a mut Vec<u8>,
    class: Class,
    /// Where in the word the second letter begins; 0 where there is none.
    last: usize,
}

impl<T: Tokens> Run<'_, T> {
    /// Reads text in clusters: a regular character with all behind it that is not. A cluster that is not in its form is put into it apart
    /// from the rest of the text, which it does not depend on.
    fn read(&mut self, text: &str, form: &mut Form) {
        let (mut regular, mut start) = (None, 0);
        let mut rest = text.chars();
        loop {
            let at = text.len() - rest.as_str().len();
            let Some(c) = rest.next() else { break };
            let kind = self.letters.kind(c);
            if kind.is_regular() {
                if let Some(before) = regular.replace(kind) {
                    self.regular(before);
                }
                start = at;
                continue;
            }
            if regular.is_none() {
                start = at;
            }
            let is_single = !matches!(regular.take(), Some(Kind::Several(_)));
            let in_form = self.end_of_cluster(&mut rest, c, kind, is_single);
            let cluster = &text[start..text.len() - rest.as_str().len()];
            if in_form {
                for c in cluster.chars() {
                    match self.letters.kind(c) {
                        Kind::Ordered => self.mark(c),
                        kind => self.regular(kind),
                    }
                }
            } else {
                form.fold(cluster).chars().for_each(|c| self.formed(c));
            }
        }
        if let Some(last) = regular {
            self.regular(last);
        }
    }

    /// Goes to the end of a cluster, whose first character that is not regular is `c`. Returns whether the cluster is in its form but for
    /// the case of its first letter. If it is not, further clusters that are not regular may belong to it, which saves time.
    fn end_of_cluster(&self, rest: &mut Chars<'_>, c: char, kind: Kind, is_single: bool) -> bool {
        let mut in_form = is_single && kind == Kind::Ordered;
        let mut class = combining_class(c);
        let length = rest.as_str().len();
        loop {
            let mut behind = rest.clone();
            let Some(c) = behind.next() else { break };
            let is_long = length - rest.as_str().len() > TOGETHER;
            match self.letters.kind(c) {
                Kind::Ordered => {
                    let before = std::mem::replace(&mut class, combining_class(c));
                    in_form &= before <= class;
                }
                Kind::Irregular if is_long && self.letters.is_regular(c) => break,
                Kind::Irregular => in_form = false,
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

    /// Takes a regular character that stands alone.
    #[inline]
    fn regular(&mut self, kind: Kind) {
        match kind {
            Kind::Letter(c) => self.letter(c),
            Kind::Mark(c) => self.mark(c),
            Kind::Several(at) => self.letters.several(at).chars().for_each(|c| self.formed(c)),
            Kind::Separator | Kind::Ordered | Kind::Irregular => self.end(),
        }
    }

    /// Takes a character of a text in its form.
    fn formed(&mut self, c: char) {
        match self.letters.part(c) {
            Part::Letter => self.letter(c),
            Part::Mark => self.mark(c),
            Part::Other => self.end(),
        }
    }

    #[inline]
    fn letter(&mut self, c: char) {
        let class = Class::of(c);
        if class != self.class {
            self.end();
            self.class = class;
        }
        if class != Class::Spaced && !self.word.is_empty() {
            if self.last > 0 {
                self.tokens.token(self.word);
                self.word.drain(..self.last);
            }
            self.last = self.word.len();
        }
        self.append(c);
    }

    /// A mark belongs to the letter before it, and to nothing where there is none.
    fn mark(&mut self, c: char) {
        if !self.word.is_empty() {
            self.append(c);
        }
    }

    #[inline]
    fn append(&mut self, c: char) {
        self.word.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    /// Ends the run, if one is open.
    fn end(&mut self) {
        if !self.word.is_empty() {
            self.tokens.token(self.word);
        }
        self.word.clear();
        self.class = Class::Spaced;
        self.last = 0;
    }
}

#[cfg(test)]
mod tests;
