//! What each character is in the [form](super::form) of words: a letter or digit, a mark, or what separates words. Almost all characters
//! are read from a table, so text that is in this form, or differs from it in case alone, never goes through the normaliser.
//!
//! A character is *regular* if its form depends on nothing before it, and then it may only depend on marks behind it. What is *irregular*
//! changes with the characters around it: a mark that composes with a letter, a jamo, a soft hyphen.

use std::sync::LazyLock;

use icu_normalizer::properties::{
    CanonicalCombiningClassMap, CanonicalCombiningClassMapBorrowed, CanonicalComposition,
    CanonicalDecomposition, Decomposed,
};
use icu_properties::props::{Alphabetic, ChangesWhenNfkcCasefolded, GeneralCategory, GeneralCategoryGroup};
use icu_properties::{CodePointMapData, CodePointSetData};

use super::form::{Form, TATWEEL};

/// The end of the table of the first blocks, after Kana and Bopomofo.
const TABLE_END: usize = 0x3130;

/// Where Han begins, with its radicals.
const HAN: usize = 0x2e80;

/// The half-width and full-width forms.
const WIDTHS: std::ops::Range<usize> = 0xff00..0xfff0;

const CLASSES: CanonicalCombiningClassMapBorrowed<'static> = CanonicalCombiningClassMap::new();

/// What a character is in the form of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It separates words, and so does its form.
    Separator,
    /// A letter or digit, with its form.
    Letter(char),
    /// A regular character whose form is several characters: [`Letters::several`] has them.
    Several(u16),
    /// A combining mark that is its own form wherever it stands.
    Mark(char),
    /// A combining mark that is its own form behind regular characters and marks of no greater combining class.
    Ordered,
    /// The form depends on the characters around.
    Irregular,
}

/// A character that is its own form but for its case, and of a script with spaces.
pub(super) enum Plain {
    /// A letter or digit: its form in UTF-8, and how many of these bytes that has.
    Letter([u8; 3], usize),
    /// Anything that separates words.
    Separator,
}

/// What a character of a text in its form is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// A letter or a digit.
    Letter,
    /// A combining mark.
    Mark,
    /// Anything else.
    Other,
}

impl Kind {
    /// Whether the form depends on nothing before the character.
    #[inline]
    pub(super) fn is_regular(self) -> bool {
        !matches!(self, Self::Ordered | Self::Irregular)
    }
}

/// Entries that are no letter. No letter has one of these codes.
const SEPARATOR: u16 = 0;
const MARK: u16 = 0xfffd;
const ORDERED: u16 = 0xfffe;
const IRREGULAR: u16 = 0xffff;

/// Code points of surrogates, which are no characters: entries from here on count the forms of several characters.
const SEVERAL: std::ops::Range<u16> = 0xd800..0xe000;

struct Table {
    first: Box<[u16]>,
    widths: Box<[u16]>,
    several: Vec<Box<str>>,
    /// Characters that compose with one before them, in ascending order.
    composing: Vec<char>,
}

static TABLE: LazyLock<Table> = LazyLock::new(Table::new);

impl Table {
    fn new() -> Self {
        let mut table = Self {
            first: Box::default(),
            widths: Box::default(),
            several: Vec::new(),
            composing: composing(),
        };
        let mut form = Form::default();
        let mut entries = |codes: std::ops::Range<usize>| {
            codes
                .map(|code| char::from_u32(code as u32).map_or(SEPARATOR, |c| table.entry(c, &mut form)))
                .collect()
        };
        let first = entries(0..TABLE_END);
        let widths = entries(WIDTHS);
        (table.first, table.widths) = (first, widths);
        table
    }

    fn entry(&mut self, c: char, form: &mut Form) -> u16 {
        match self.kind(c, form) {
            Kind::Separator => SEPARATOR,
            Kind::Letter(letter) => u16::try_from(u32::from(letter)).unwrap_or(IRREGULAR),
            Kind::Several(_) => {
                let entry = SEVERAL.start + self.several.len() as u16;
                self.several.push(form.fold(c.encode_utf8(&mut [0; 4])).into());
                if SEVERAL.contains(&entry) { entry } else { IRREGULAR }
            }
            Kind::Mark(_) => MARK,
            Kind::Ordered => ORDERED,
            Kind::Irregular => IRREGULAR,
        }
    }

    /// What a character is, without the table.
    fn kind(&self, c: char, form: &mut Form) -> Kind {
        if !is_changed(c) {
            let (is_starter, is_mark) = (CLASSES.get_u8(c) == 0, is_mark(c));
            return match (self.is_composing(c), is_starter, is_mark) {
                (false, true, true) => Kind::Mark(c),
                (false, false, true) => Kind::Ordered,
                (false, true, false) if is_letter(c) => Kind::Letter(c),
                (false, true, false) => Kind::Separator,
                _ => Kind::Irregular,
            };
        }
        if CLASSES.get_u8(c) > 0 {
            return Kind::Irregular;
        }
        let form = form.fold(c.encode_utf8(&mut [0; 4]));
        let mut own = form.chars();
        let (first, second) = (own.next(), own.next());
        let Some(first) = first.filter(|first| CLASSES.get_u8(*first) == 0 && !self.is_composing(*first))
        else {
            return Kind::Irregular;
        };
        match second {
            None if is_letter(first) => Kind::Letter(first),
            None if is_mark(first) => Kind::Irregular,
            _ if form.chars().all(|c| !is_letter(c) && !is_mark(c)) => Kind::Separator,
            _ => Kind::Several(0),
        }
    }

    fn is_composing(&self, c: char) -> bool {
        self.composing.binary_search(&c).is_ok()
    }
}

/// Whether the form of a character alone is another one than the character.
fn is_changed(c: char) -> bool {
    c == TATWEEL || CodePointSetData::new::<ChangesWhenNfkcCasefolded>().contains(c)
}

/// All characters that compose with one before them: the second ones of canonical decompositions that are undone, jamo, and characters
/// that begin with one of these when they are decomposed.
fn composing() -> Vec<char> {
    let (decomposition, composition) = (CanonicalDecomposition::new(), CanonicalComposition::new());
    // Nothing beyond the second plane composes, Hangul syllables go by rule, and unified ideographs have no decomposition.
    let goes_by_rule = |c: &char| matches!(c, '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}');
    let decomposed = |c| match decomposition.decompose(c) {
        Decomposed::Default => None,
        parts => Some((c, parts)),
    };
    let decomposed: Vec<(char, Decomposed)> =
        ('\0'..'\u{20000}').filter(|c| !goes_by_rule(c)).filter_map(decomposed).collect();
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

/// Whether a character is a letter or a digit.
fn is_letter(c: char) -> bool {
    let category = CodePointMapData::<GeneralCategory>::new().get(c);
    GeneralCategoryGroup::Letter.contains(category)
        || GeneralCategoryGroup::Number.contains(category)
        // Letters in black circles and squares, which have no form of their own.
        || category == GeneralCategory::OtherSymbol && CodePointSetData::new::<Alphabetic>().contains(c)
}

/// Whether a character is a combining mark: Mn, Mc or Me.
fn is_mark(c: char) -> bool {
    GeneralCategoryGroup::Mark.contains(CodePointMapData::<GeneralCategory>::new().get(c))
}

/// The combining class, by which the marks behind a letter are sorted.
pub(super) fn combining_class(c: char) -> u8 {
    CLASSES.get_u8(c)
}

/// What characters are, from the table.
#[derive(Clone, Copy)]
pub(super) struct Letters(&'static Table);

impl Letters {
    pub(super) fn new() -> Self {
        Self(&TABLE)
    }

    /// What `c` is in a text.
    #[inline]
    pub(super) fn kind(self, c: char) -> Kind {
        match self.0.first.get(c as usize).copied() {
            Some(entry) => of_entry(entry, c),
            // Ideographs and Hangul syllables are their own form.
            None if matches!(c, '\u{4e00}'..'\u{a000}' | '\u{ac00}'..='\u{d7a3}') => Kind::Letter(c),
            None => self.beyond(c),
        }
    }

    fn beyond(self, c: char) -> Kind {
        if WIDTHS.contains(&(c as usize)) {
            return of_entry(self.0.widths[c as usize - WIDTHS.start], c);
        }
        // Making its form takes long. What is taken for irregular goes through the normaliser, and comes out right.
        if is_changed(c) { Kind::Irregular } else { self.0.kind(c, &mut Form::default()) }
    }

    /// Whether the form of `c` depends on something before it, also where it takes long to say so.
    pub(super) fn is_regular(self, c: char) -> bool {
        self.0.kind(c, &mut Form::default()).is_regular()
    }

    /// The first character of this text, and its bytes; none where it is not plain, takes long to tell, or is no character.
    #[inline]
    pub(super) fn plain(self, text: &[u8]) -> Option<(usize, Plain)> {
        let (length, code) = match *text {
            [first @ 0xc2..=0xdf, second @ 0x80..=0xbf, ..] => {
                (2, usize::from(first & 0x1f) << 6 | usize::from(second & 0x3f))
            }
            // From here on up to Han, but for the scripts without spaces among the first of these.
            [first @ 0xe1..=0xe2, second @ 0x80..=0xbf, third @ 0x80..=0xbf, ..] => {
                let code = usize::from(first & 0xf) << 12
                    | usize::from(second & 0x3f) << 6
                    | usize::from(third & 0x3f);
                (3, Some(code).filter(|code| (0x1e00..HAN).contains(code))?)
            }
            _ => return None,
        };
        let plain = match self.0.first.get(code).copied()? {
            SEPARATOR => Plain::Separator,
            code @ 1..0x80 => Plain::Letter([code as u8, 0, 0], 1),
            code @ 0x80..0x800 => Plain::Letter([0xc0 | (code >> 6) as u8, continued(code), 0], 2),
            code @ 0x1e00..0x2e80 => {
                Plain::Letter([0xe0 | (code >> 12) as u8, continued(code >> 6), continued(code)], 3)
            }
            code if SEVERAL.contains(&code) => {
                // Such as the two letters of the German sharp s.
                let form = self.several(code - SEVERAL.start).as_bytes();
                let is_short = form.len() <= 3 && form.iter().all(u8::is_ascii_alphanumeric);
                let mut bytes = [0; 3];
                bytes.get_mut(..form.len()).filter(|_| is_short)?.copy_from_slice(form);
                Plain::Letter(bytes, form.len())
            }
            _ => return None,
        };
        Some((length, plain))
    }

    /// What `c` is in a text that is in some form already.
    #[inline]
    pub(super) fn part(self, c: char) -> Part {
        match self.kind(c) {
            Kind::Letter(own) if own == c => Part::Letter,
            Kind::Mark(_) | Kind::Ordered => Part::Mark,
            Kind::Separator => Part::Other,
            // The form would be another one, but `c` is what it is.
            _ if is_mark(c) => Part::Mark,
            _ if is_letter(c) => Part::Letter,
            _ => Part::Other,
        }
    }

    /// The form of a character that is [`Kind::Several`].
    pub(super) fn several(self, at: u16) -> &'static str {
        self.0.several.get(usize::from(at)).map_or("", |form| form)
    }
}

/// A byte of UTF-8 behind the first one.
const fn continued(code: u16) -> u8 {
    0x80 | (code & 0x3f) as u8
}

#[inline]
fn of_entry(entry: u16, c: char) -> Kind {
    match entry {
        SEPARATOR => Kind::Separator,
        MARK => Kind::Mark(c),
        ORDERED => Kind::Ordered,
        IRREGULAR => Kind::Irregular,
        _ => match char::from_u32(entry.into()) {
            Some(letter) => Kind::Letter(letter),
            None => Kind::Several(entry - SEVERAL.start),
        },
    }
}

#[cfg(test)]
mod tests;
