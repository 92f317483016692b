//! Classifies characters by their role in the [form](super::form) of words: letter or digit, combining mark,
//! or separator.
//!
//! The normaliser is slow. A table therefore covers almost all characters, and text that is already in this
//! form, or differs from it only in case, never goes through the normaliser.
//!
//! A character is *regular* if its form does not depend on the characters before it. Its form may then depend
//! only on marks after it. The form of an *irregular* character depends on its neighbours. Examples are a
//! mark that composes with a letter, a Hangul jamo, and a soft hyphen.

use std::sync::LazyLock;

use icu_normalizer::properties::{
    CanonicalCombiningClassMap, CanonicalCombiningClassMapBorrowed, CanonicalComposition,
    CanonicalDecomposition, Decomposed,
};
use icu_properties::props::{Alphabetic, ChangesWhenNfkcCasefolded, GeneralCategory, GeneralCategoryGroup};
use icu_properties::{CodePointMapData, CodePointSetData};

use super::form::{Form, TATWEEL};

/// End of the code points that `Table::first_blocks` covers: the end of Kana and Bopomofo.
const TABLE_END: usize = 0x3130;

/// First code point of Han, which is its first radical.
const HAN_START: usize = 0x2e80;

/// Code points of the half-width and full-width forms.
const WIDTH_FORMS: std::ops::Range<usize> = 0xff00..0xfff0;

const CLASSES: CanonicalCombiningClassMapBorrowed<'static> = CanonicalCombiningClassMap::new();

/// Role of a character in the form of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CharKind {
    /// Character that separates words, as its form does.
    Separator,
    /// Letter or digit, with its form.
    Letter(char),
    /// Regular character whose form is a sequence of characters, with the number that [`Letters::sequence`]
    /// takes.
    Sequence(u16),
    /// Combining mark that is its own form at any position.
    Mark(char),
    /// Combining mark that is its own form if it follows a regular character or marks of at most its own
    /// combining class.
    OrderedMark,
    /// Character whose form depends on its neighbours.
    Irregular,
}

/// Character of a script with spaces whose form differs from it only in case, or is a few ASCII letters.
pub(crate) enum PlainCharacter {
    /// Letter or digit: its form in UTF-8, in the first bytes of the array, and the number of these bytes.
    Letter([u8; 3], usize),
    /// Any character that separates words.
    Separator,
}

/// Category of a character in a text that is already normalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CharCategory {
    /// Letter or digit.
    Letter,
    /// Combining mark.
    Mark,
    /// Any character that is no letter, digit or mark.
    Other,
}

impl CharKind {
    /// Whether the form of the character is independent of the characters before it.
    #[inline]
    pub(crate) fn is_regular(self) -> bool {
        !matches!(self, Self::OrderedMark | Self::Irregular)
    }
}

/// Table entries of characters other than letters. No letter has these codes.
const SEPARATOR: u16 = 0;
const MARK: u16 = 0xfffd;
const ORDERED: u16 = 0xfffe;
const IRREGULAR: u16 = 0xffff;

/// Table entries of characters whose form is a sequence, in the order of `Table::sequences`. These are the
/// code points of surrogates, which no character has.
const SEQUENCES: std::ops::Range<u16> = 0xd800..0xe000;

/// Roles of the characters of two ranges, each with one entry per code point. An entry is the form of a
/// letter as a 16-bit code point, or a constant above.
struct Table {
    first_blocks: Box<[u16]>,
    width_forms: Box<[u16]>,
    sequences: Vec<Box<str>>,
    /// Characters that compose with a character before them, in ascending order.
    composing: Vec<char>,
}

static TABLE: LazyLock<Table> = LazyLock::new(Table::new);

impl Table {
    fn new() -> Self {
        let mut table = Self {
            first_blocks: Box::default(),
            width_forms: Box::default(),
            sequences: Vec::new(),
            composing: composing(),
        };
        let mut form = Form::default();
        let mut entries = |codes: std::ops::Range<usize>| {
            codes
                .map(|code| char::from_u32(code as u32).map_or(SEPARATOR, |c| table.entry(c, &mut form)))
                .collect()
        };
        let first_blocks = entries(0..TABLE_END);
        let width_forms = entries(WIDTH_FORMS);
        (table.first_blocks, table.width_forms) = (first_blocks, width_forms);
        table
    }

    fn entry(&mut self, c: char, form: &mut Form) -> u16 {
        match self.kind(c, form) {
            CharKind::Separator => SEPARATOR,
            CharKind::Letter(letter) => u16::try_from(u32::from(letter)).unwrap_or(IRREGULAR),
            CharKind::Sequence(_) => {
                let entry = SEQUENCES.start + self.sequences.len() as u16;
                self.sequences.push(form.fold(c.encode_utf8(&mut [0; 4])).into());
                if SEQUENCES.contains(&entry) { entry } else { IRREGULAR }
            }
            CharKind::Mark(_) => MARK,
            CharKind::OrderedMark => ORDERED,
            CharKind::Irregular => IRREGULAR,
        }
    }

    /// Classifies a character without the table.
    fn kind(&self, c: char, form: &mut Form) -> CharKind {
        if !has_other_form(c) {
            let (is_starter, is_mark) = (CLASSES.get_u8(c) == 0, is_mark(c));
            return match (self.is_composing(c), is_starter, is_mark) {
                (false, true, true) => CharKind::Mark(c),
                (false, false, true) => CharKind::OrderedMark,
                (false, true, false) if is_letter(c) => CharKind::Letter(c),
                (false, true, false) => CharKind::Separator,
                _ => CharKind::Irregular,
            };
        }
        if CLASSES.get_u8(c) > 0 {
            return CharKind::Irregular;
        }
        let form = form.fold(c.encode_utf8(&mut [0; 4]));
        let mut own = form.chars();
        let (first, second) = (own.next(), own.next());
        let Some(first) = first.filter(|first| CLASSES.get_u8(*first) == 0 && !self.is_composing(*first))
        else {
            return CharKind::Irregular;
        };
        match second {
            None if is_letter(first) => CharKind::Letter(first),
            None if is_mark(first) => CharKind::Irregular,
            _ if form.chars().all(|c| !is_letter(c) && !is_mark(c)) => CharKind::Separator,
            _ => CharKind::Sequence(0),
        }
    }

    fn is_composing(&self, c: char) -> bool {
        self.composing.binary_search(&c).is_ok()
    }
}

/// Whether the form of the character differs from the character itself.
fn has_other_form(c: char) -> bool {
    c == TATWEEL || CodePointSetData::new::<ChangesWhenNfkcCasefolded>().contains(c)
}

/// Returns all characters that may compose with a character before them, in ascending order. They are:
///
/// - the second characters of canonical decompositions that NFC composes again,
/// - vowel and final jamo,
/// - characters whose decomposition begins with such a character.
fn composing() -> Vec<char> {
    let (decomposition, composition) = (CanonicalDecomposition::new(), CanonicalComposition::new());
    // No character beyond the second plane composes. Hangul syllables are composed by an algorithm, and
    // unified ideographs have no decomposition.
    let is_algorithmic = |c: &char| matches!(c, '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}');
    let decomposed = |c| match decomposition.decompose(c) {
        Decomposed::Default => None,
        parts => Some((c, parts)),
    };
    let decomposed: Vec<(char, Decomposed)> =
        ('\0'..'\u{20000}').filter(|c| !is_algorithmic(c)).filter_map(decomposed).collect();
    let second = |(_, parts): &(char, Decomposed)| match *parts {
        Decomposed::Expansion(first, second) => composition.compose(first, second).map(|_| second),
        Decomposed::Default | Decomposed::Singleton(_) => None,
    };
    let jamo = ('\u{1161}'..='\u{1175}').chain('\u{11a8}'..='\u{11c2}');
    let mut composing: Vec<char> = decomposed.iter().filter_map(second).chain(jamo).collect();
    composing.sort_unstable();
    composing.dedup();
    let begins = |&(c, _): &(char, Decomposed)| {
        let mut first = c;
        while let Decomposed::Expansion(next, _) | Decomposed::Singleton(next) =
            decomposition.decompose(first)
        {
            first = next;
        }
        composing.binary_search(&first).is_ok().then_some(c)
    };
    let others: Vec<char> = decomposed.iter().filter_map(begins).collect();
    composing.extend(others);
    composing.sort_unstable();
    composing.dedup();
    composing
}

/// Whether the character is a letter or a digit.
fn is_letter(c: char) -> bool {
    let category = CodePointMapData::<GeneralCategory>::new().get(c);
    GeneralCategoryGroup::Letter.contains(category)
        || GeneralCategoryGroup::Number.contains(category)
        // Letters in black circles and squares, which do not decompose into plain letters.
        || category == GeneralCategory::OtherSymbol && CodePointSetData::new::<Alphabetic>().contains(c)
}

/// Whether the character is a combining mark: general category Mn, Mc or Me.
fn is_mark(c: char) -> bool {
    GeneralCategoryGroup::Mark.contains(CodePointMapData::<GeneralCategory>::new().get(c))
}

/// Returns the canonical combining class, by which NFC sorts the marks after a letter.
pub(crate) fn combining_class(c: char) -> u8 {
    CLASSES.get_u8(c)
}

/// Handle to the table of characters, which is built once for the process.
#[derive(Clone, Copy)]
pub(crate) struct Letters(&'static Table);

impl Letters {
    pub(crate) fn new() -> Self {
        Self(&TABLE)
    }

    /// Returns the role of `c` in any text. The role of a rare character may be `Irregular` although its form
    /// does not depend on the characters before it, because it would take long to compute the form.
    #[inline]
    pub(crate) fn kind(self, c: char) -> CharKind {
        match self.0.first_blocks.get(c as usize).copied() {
            Some(entry) => kind_of_entry(entry, c),
            // Unified ideographs and Hangul syllables are their own form.
            None if matches!(c, '\u{4e00}'..'\u{a000}' | '\u{ac00}'..='\u{d7a3}') => CharKind::Letter(c),
            None => self.kind_outside_table(c),
        }
    }

    fn kind_outside_table(self, c: char) -> CharKind {
        if WIDTH_FORMS.contains(&(c as usize)) {
            return kind_of_entry(self.0.width_forms[c as usize - WIDTH_FORMS.start], c);
        }
        // Irregular characters go through the normaliser later, which gives the right form.
        if has_other_form(c) { CharKind::Irregular } else { self.0.kind(c, &mut Form::default()) }
    }

    /// Whether the form of `c` is independent of the characters before it. Unlike [`kind`](Self::kind), this
    /// function is always exact, but slow.
    pub(crate) fn is_regular(self, c: char) -> bool {
        self.0.kind(c, &mut Form::default()).is_regular()
    }

    /// Reads the first character of `text` and returns its length in bytes with the character. `None` if it
    /// is not plain (see [`PlainCharacter`]), is not in the table, or is not valid UTF-8.
    #[inline]
    pub(crate) fn plain(self, text: &[u8]) -> Option<(usize, PlainCharacter)> {
        let (length, code) = match *text {
            [first @ 0xc2..=0xdf, second @ 0x80..=0xbf, ..] => {
                (2, usize::from(first & 0x1f) << 6 | usize::from(second & 0x3f))
            }
            // Three bytes: only U+1E00 up to Han, because scripts without spaces lie below and above.
            [first @ 0xe1..=0xe2, second @ 0x80..=0xbf, third @ 0x80..=0xbf, ..] => {
                let code = usize::from(first & 0xf) << 12
                    | usize::from(second & 0x3f) << 6
                    | usize::from(third & 0x3f);
                (3, Some(code).filter(|code| (0x1e00..HAN_START).contains(code))?)
            }
            _ => return None,
        };
        let plain = match self.0.first_blocks.get(code).copied()? {
            SEPARATOR => PlainCharacter::Separator,
            code @ 1..0x80 => PlainCharacter::Letter([code as u8, 0, 0], 1),
            code @ 0x80..0x800 => {
                PlainCharacter::Letter([0xc0 | (code >> 6) as u8, continuation_byte(code), 0], 2)
            }
            code @ 0x1e00..0x2e80 => PlainCharacter::Letter(
                [0xe0 | (code >> 12) as u8, continuation_byte(code >> 6), continuation_byte(code)],
                3,
            ),
            code if SEQUENCES.contains(&code) => {
                // For example the sharp s of German, whose form is two letters.
                let form = self.sequence(code - SEQUENCES.start).as_bytes();
                let is_short = form.len() <= 3 && form.iter().all(u8::is_ascii_alphanumeric);
                let mut bytes = [0; 3];
                bytes.get_mut(..form.len()).filter(|_| is_short)?.copy_from_slice(form);
                PlainCharacter::Letter(bytes, form.len())
            }
            _ => return None,
        };
        Some((length, plain))
    }

    /// Returns the category of `c` in a text that is already normalised, in whatever form.
    #[inline]
    pub(crate) fn category(self, c: char) -> CharCategory {
        match self.kind(c) {
            CharKind::Letter(own) if own == c => CharCategory::Letter,
            CharKind::Mark(_) | CharKind::OrderedMark => CharCategory::Mark,
            CharKind::Separator => CharCategory::Other,
            // The form of words differs from `c`, but the category is that of `c` itself.
            _ if is_mark(c) => CharCategory::Mark,
            _ if is_letter(c) => CharCategory::Letter,
            _ => CharCategory::Other,
        }
    }

    /// Returns the form of a character with the role [`CharKind::Sequence`].
    pub(crate) fn sequence(self, at: u16) -> &'static str {
        self.0.sequences.get(usize::from(at)).map_or("", |form| form)
    }
}

/// Returns a continuation byte of UTF-8 with the lowest six bits of `code`.
const fn continuation_byte(code: u16) -> u8 {
    0x80 | (code & 0x3f) as u8
}

#[inline]
fn kind_of_entry(entry: u16, c: char) -> CharKind {
    match entry {
        SEPARATOR => CharKind::Separator,
        MARK => CharKind::Mark(c),
        ORDERED => CharKind::OrderedMark,
        IRREGULAR => CharKind::Irregular,
        _ => match char::from_u32(entry.into()) {
            Some(letter) => CharKind::Letter(letter),
            None => CharKind::Sequence(entry - SEQUENCES.start),
        },
    }
}

#[cfg(test)]
mod tests;
