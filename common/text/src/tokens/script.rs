//! Classifies letters by script: scripts with spaces between words, and six classes of scripts without
//! spaces. The tokeniser cuts runs of the latter into bigrams.

use unicode_script::{Script, UnicodeScript};

/// Script class of a letter. The tokeniser splits a run of letters where the class changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Class {
    /// Any script with spaces between words. A run of such letters is a single token.
    #[default]
    Spaced,
    Han,
    /// Hiragana and Katakana, with the marks that they share.
    Kana,
    Thai,
    Lao,
    Khmer,
    Myanmar,
}

/// First character of the Thai block, which is the first block of a script without spaces. Letters that
/// belong to many scripts, such as the modifier apostrophe, come before it and do not count as Thai.
const FIRST: char = '\u{e00}';

impl Class {
    /// Returns the class of an alphanumeric character by its Unicode script extensions (UAX 24). The
    /// prolonged sound mark is therefore Kana, and full-width digits are [`Spaced`](Self::Spaced).
    pub(crate) fn of(c: char) -> Self {
        match c {
            ..FIRST | '\u{10a0}'..'\u{1780}' | '\u{1e00}'..'\u{2e80}' | '\u{ac00}'..='\u{d7a3}' => {
                Self::Spaced
            }
            '\u{4e00}'..'\u{a000}' => Self::Han,
            '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{30fc}' => Self::Kana,
            FIRST..'\u{e80}' => Self::Thai,
            '\u{e80}'..'\u{f00}' => Self::Lao,
            '\u{1000}'..'\u{10a0}' => Self::Myanmar,
            '\u{1780}'..'\u{1800}' => Self::Khmer,
            _ => Self::from_tables(c),
        }
    }

    fn from_tables(c: char) -> Self {
        let scripts = c.script_extension();
        if scripts.is_common() || scripts.is_inherited() {
            return Self::Spaced;
        }
        [
            (Script::Han, Self::Han),
            (Script::Hiragana, Self::Kana),
            (Script::Katakana, Self::Kana),
            (Script::Thai, Self::Thai),
            (Script::Lao, Self::Lao),
            (Script::Khmer, Self::Khmer),
            (Script::Myanmar, Self::Myanmar),
        ]
        .into_iter()
        .find_map(|(script, class)| scripts.contains_script(script).then_some(class))
        .unwrap_or(Self::Spaced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_path_agrees_with_the_unicode_tables() {
        for c in (FIRST..=char::MAX).filter(|c| c.is_alphanumeric()) {
            assert_eq!(Class::of(c), Class::from_tables(c), "{c:?}");
        }
    }

    #[test]
    fn characters_have_the_class_of_their_script() {
        for (c, class) in [
            ('a', Class::Spaced),
            ('한', Class::Spaced),
            ('1', Class::Spaced),
            ('漢', Class::Han),
            ('々', Class::Han),
            ('ひ', Class::Kana),
            ('カ', Class::Kana),
            ('ー', Class::Kana),
            ('ｰ', Class::Kana),
            ('ก', Class::Thai),
            ('ກ', Class::Lao),
            ('ក', Class::Khmer),
            ('က', Class::Myanmar),
        ] {
            assert_eq!(Class::of(c), class, "{c}");
        }
    }
}
