//! The tokeniser: characters to token hashes, streaming.
//!
//! A token is a maximal run of alphanumeric characters ([`char::is_alphanumeric`]), each lower-cased
//! by [`char::to_lowercase`], with no other normalisation. Runs of scripts without spaces
//! ([`Class`]), split where the class changes, give overlapping bigrams instead; a single such
//! character is itself a token. What this says is [`TOKENISER_VERSION`](super::TOKENISER_VERSION); any
//! change of it needs a new version.
//!
//! The text may come in pieces cut anywhere, even inside a character; only [`Tokeniser::separate`]
//! ends a word. Nothing is allocated per token.

use super::script::Class;
use crate::model::stable_hash64;

/// Bytes of text kept for telling the language.
const SAMPLE_BYTES: usize = 320;

/// Turns one page after the other into token hashes.
#[derive(Debug, Default)]
pub(super) struct Tokeniser {
    hashes: Vec<u64>,
    /// The open word, lower-cased: what there is of it if it is spaced, else its last character.
    word: Vec<u8>,
    class: Class,
    /// Whether the open run of a script without spaces has given a bigram.
    paired: bool,
    /// First bytes of a character cut by the end of a piece.
    cut: Vec<u8>,
    /// The first tokens, separated by spaces.
    sample: String,
}

impl Tokeniser {
    /// Forgets the page before.
    pub(super) fn clear(&mut self) {
        self.hashes.clear();
        self.word.clear();
        self.cut.clear();
        self.sample.clear();
        self.class = Class::Spaced;
        self.paired = false;
    }

    /// The hashes of the tokens so far, an open word not counted.
    pub(super) fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// The beginning of the text: tokens, separated by spaces.
    pub(super) fn sample(&self) -> &str {
        &self.sample
    }

    /// Takes the next piece of UTF-8. Bytes that are no UTF-8 separate.
    pub(super) fn push(&mut self, mut piece: &[u8]) {
        while !self.cut.is_empty() {
            let Some((&next, rest)) = piece.split_first() else { return };
            if next & 0xc0 != 0x80 {
                self.cut.clear();
                self.separate();
                break;
            }
            piece = rest;
            self.cut.push(next);
            let complete = std::str::from_utf8(&self.cut).ok().and_then(|s| s.chars().next());
            if let Some(c) = complete {
                self.cut.clear();
                self.char(c);
            } else if self.cut.len() >= 4 {
                self.cut.clear();
                self.separate();
            }
        }
        for chunk in piece.utf8_chunks() {
            for c in chunk.valid().chars() {
                self.char(c);
            }
            if chunk.invalid().is_empty() {
                continue;
            }
            let at_end = chunk.invalid().as_ptr_range().end == piece.as_ptr_range().end;
            if at_end {
                self.cut.extend_from_slice(chunk.invalid());
            } else {
                self.separate();
            }
        }
    }

    fn char(&mut self, c: char) {
        if !c.is_alphanumeric() {
            return self.separate();
        }
        let class = Class::of(c);
        if class != self.class {
            self.separate();
            self.class = class;
        }
        if class == Class::Spaced {
            let mut buffer = [0; 4];
            for lower in c.to_lowercase() {
                self.word.extend_from_slice(lower.encode_utf8(&mut buffer).as_bytes());
            }
            return;
        }
        let previous = self.word.len();
        let mut buffer = [0; 4];
        self.word.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
        if previous > 0 {
            self.emit();
            self.paired = true;
            self.word.drain(..previous);
        }
    }

    /// Ends the open word, if any: a tag, or the end of the text.
    pub(super) fn separate(&mut self) {
        if !self.word.is_empty() {
            if !self.paired {
                self.emit();
            }
            self.word.clear();
        }
        self.class = Class::Spaced;
        self.paired = false;
    }

    fn emit(&mut self) {
        self.hashes.push(stable_hash64(&self.word));
        if self.sample.len() < SAMPLE_BYTES {
            self.sample.push_str(&String::from_utf8_lossy(&self.word));
            self.sample.push(' ');
        }
    }
}
