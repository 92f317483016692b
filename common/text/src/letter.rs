//! Letters and digits above ASCII, and their lower case: [`char::is_alphanumeric`] and
//! [`char::to_lowercase`], read from a table where the standard library's own searches are slow.

use std::char::ToLowercase;
use std::sync::LazyLock;

/// The end of the table, after Kana and Bopomofo.
const TABLE_END: usize = 0x3130;

/// Marks a character that is not alphanumeric.
const NONE: u16 = 0;

/// Marks an alphanumeric character whose lower case does not fit into the table.
const OTHER: u16 = u16::MAX;

/// The lower case of each character below [`TABLE_END`] that is alphanumeric.
static TABLE: LazyLock<Box<[u16]>> = LazyLock::new(|| (0..TABLE_END as u32).map(entry).collect());

fn entry(code: u32) -> u16 {
    let Some(c) = char::from_u32(code).filter(|c| c.is_alphanumeric()) else { return NONE };
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => u16::try_from(u32::from(lower)).unwrap_or(OTHER),
        _ => OTHER,
    }
}

/// The lower case of a letter or digit.
pub(super) enum Lower {
    /// One character, the usual case.
    One(char),
    /// Several characters, or one that is not in the table.
    All(ToLowercase),
}

/// The lower case of letters and digits, from the table or the standard library.
#[derive(Debug, Clone, Copy)]
pub(super) struct Letters(&'static [u16]);

impl Letters {
    pub(super) fn new() -> Self {
        Self(&TABLE)
    }

    /// The lower case of `c`; none if it is not alphanumeric.
    #[inline]
    pub(super) fn lower(self, c: char) -> Option<Lower> {
        match self.0.get(c as usize).copied() {
            Some(NONE) => None,
            Some(OTHER) => Some(Lower::All(c.to_lowercase())),
            Some(code) => Some(Lower::One(char::from_u32(code.into()).unwrap_or(c))),
            // Ideographs and Hangul syllables have no case.
            None if matches!(c, '\u{4e00}'..'\u{a000}' | '\u{ac00}'..='\u{d7a3}') => Some(Lower::One(c)),
            None => c.is_alphanumeric().then(|| Lower::All(c.to_lowercase())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_as_the_standard_library_says() {
        let letters = Letters::new();
        for c in '\0'..=char::MAX {
            let lower: Option<String> = letters.lower(c).map(|lower| match lower {
                Lower::One(one) => one.to_string(),
                Lower::All(all) => all.collect(),
            });
            assert_eq!(lower, c.is_alphanumeric().then(|| c.to_lowercase().collect()), "{c:?}");
        }
    }
}
