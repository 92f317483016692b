//! Normalises text: the *form* of a text is a single spelling that all texts with equal content share.
//!
//! There are three forms. Words have the form that [`Form::fold`] makes. Code ([`compose`]) and lines
//! ([`normalise_line`]) have forms that keep case.
//!
//! The form of words follows toNFKC_Casefold of Unicode. It is NFC(casefold(NFKD(text))) without
//! default-ignorable characters and without Arabic tatweel. Except for tatweel, it equals the identifier
//! caseless form of the Unicode Standard (D146), NFKC(casefold(NFKC(casefold(NFD(text))))), applied to the
//! NFKD of the text. A test compares the two.
//!
//! Applied to the text itself, D146 gives the same result, with one exception. If a half-width voiced mark
//! follows a Greek iota subscript, D146 distinguishes NFC from NFKC, and the form of words does not.
//!
//! Invariants: the NFC, NFD, NFKC and NFKD of a text have the same form of words, and the form of a form is
//! itself. Memory is linear in the text.

use std::borrow::Cow;

use icu_casemap::{CaseMapper, CaseMapperBorrowed};
use icu_normalizer::{
    ComposingNormalizer, ComposingNormalizerBorrowed, DecomposingNormalizer, DecomposingNormalizerBorrowed,
};
use icu_properties::CodePointSetData;
use icu_properties::props::DefaultIgnorableCodePoint;

const NFC: ComposingNormalizerBorrowed<'static> = ComposingNormalizer::new_nfc();
const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizer::new_nfkc();
const NFKD: DecomposingNormalizerBorrowed<'static> = DecomposingNormalizer::new_nfkd();
const CASE: CaseMapperBorrowed<'static> = CaseMapper::new();

/// Arabic character that only lengthens the line between two letters, for decoration.
pub(crate) const TATWEEL: char = '\u{640}';

/// Makes the form of words, with buffers that are reused.
#[derive(Debug, Clone, Default)]
pub(crate) struct Form {
    decomposed: String,
    visible: String,
    composed: String,
}

impl Form {
    /// Returns the form of `text` from which words are cut: NFC(casefold(NFKD(text))) without invisible
    /// characters and Arabic tatweel.
    pub(crate) fn fold(&mut self, text: &str) -> &str {
        if text.is_ascii() {
            self.composed.clear();
            self.composed.push_str(text);
            self.composed.make_ascii_lowercase();
            return &self.composed;
        }
        self.decomposed.clear();
        // Writing to a string cannot fail.
        let _ = NFKD.normalize_to(text, &mut self.decomposed);
        let folded = CASE.fold_string(&self.decomposed);
        self.visible.clear();
        self.visible.extend(folded.chars().filter(|c| !is_ignorable(*c) && *c != TATWEEL));
        self.composed.clear();
        let _ = NFC.normalize_to(&self.visible, &mut self.composed);
        &self.composed
    }
}

#[cfg(test)]
impl Form {
    /// Returns the total capacity of the buffers in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.decomposed.capacity() + self.visible.capacity() + self.composed.capacity()
    }
}

/// Returns the form of code: NFC without default-ignorable characters, such as soft hyphens and zero-width
/// spaces. Texts that look equal become equal.
#[must_use]
pub fn compose(text: &str) -> Cow<'_, str> {
    normalise_visible(text, &NFC)
}

/// Returns the form of lines: NFKC without default-ignorable characters.
pub(crate) fn normalise_line(text: &str) -> Cow<'_, str> {
    normalise_visible(text, &NFKC)
}

fn normalise_visible<'t>(text: &'t str, form: &ComposingNormalizerBorrowed<'static>) -> Cow<'t, str> {
    if text.is_ascii() {
        return text.into();
    }
    if !text.chars().any(is_ignorable) {
        return form.normalize(text);
    }
    let visible = |text: &str| text.chars().filter(|c| !is_ignorable(*c)).collect::<String>();
    form.normalize(&visible(text)).into_owned().into()
}

/// Whether a character is invisible (`Default_Ignorable_Code_Point`), such as soft hyphens, zero-width spaces
/// and joiners, and variation selectors.
#[inline]
pub(crate) fn is_ignorable(c: char) -> bool {
    c >= '\u{ad}' && CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization;

    use super::*;

    fn fold(text: &str) -> String {
        Form::default().fold(text).to_owned()
    }

    /// Form by the definition D146 of the Unicode Standard. Normalises with another library than the product.
    fn d146(text: &str) -> String {
        let twice = CASE.fold_string(&text.nfd().collect::<String>()).nfkc().collect::<String>();
        let folded = CASE.fold_string(&twice).nfkc().filter(|c| !is_ignorable(*c)).collect::<String>();
        folded.nfkc().collect()
    }

    #[test]
    fn the_form_of_every_character_follows_the_definition() {
        for c in ('\0'..=char::MAX).filter(|c| *c != TATWEEL) {
            let own = c.to_string();
            let folded = fold(&own);
            assert_eq!(folded.replace(TATWEEL, ""), d146(&own).replace(TATWEEL, ""), "{c:?}");
            assert_eq!(fold(&folded), folded, "{c:?}");
        }
    }

    #[test]
    fn examples_have_the_expected_forms() {
        for (text, form) in [
            ("Straße ẞ", "strasse ss"),
            ("ΟΔΌΣ ς", "οδόσ σ"),
            ("İI ı", "i\u{307}i ı"),
            ("ﬁﬂ ĳ Ǆ", "fifl ij dž"),
            ("Ｆｕｌｌ １２", "full 12"),
            ("x² ½ ① ℌ ™ №", "x2 1\u{2044}2 1 h tm no"),
            ("ｶﾞ ㌢", "ガ センチ"),
            ("\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}", "한글"),
            ("α\u{345}\u{301} ᾴ", "άι άι"),
            ("e\u{ad}\u{301} q\u{200d}\u{323}\u{307} \u{feff}a\u{fe0f}", "é q\u{323}\u{307} a"),
            ("عـــربي \u{fe8d}\u{fefb}", "عربي الا"),
            ("می\u{200c}خواهم", "میخواهم"),
            ("น้ำ", "น้\u{e4d}า"),
            ("ক\u{9c7}\u{9be} क़", "কো क\u{93c}"),
            ("ᏸ Ꭰ ꭰ", "Ᏸ Ꭰ Ꭰ"),
        ] {
            assert_eq!(fold(text), form, "{text:?}");
        }
    }

    #[test]
    fn code_and_lines_keep_their_case() {
        assert_eq!(compose("A\u{30a}\u{200b}ﬁ"), "Åﬁ");
        assert_eq!(normalise_line("A\u{30a}\u{200b}ﬁ"), "Åfi");
        assert_eq!((compose("plain"), normalise_line("plain")), ("plain".into(), "plain".into()));
        // NFKC turns the half-width filler into another invisible character.
        assert_eq!(normalise_line("a\u{ffa0}b"), "ab");
    }

    /// Letters with marks of several classes, and characters that the form decomposes, folds or removes.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            "[aeιαωςßİ\u{345}\u{37a}\u{301}\u{308}\u{323}\u{327}\u{338}=\u{ad}\u{200d}ᾴΐﬁ½Å각\u{1100}\u{1161}\u{11a8}か\u{3099}ｶﾞ]{0,12}",
            "\\PC{0,12}",
            prop::collection::vec(any::<char>(), 0..12).prop_map(|chars| chars.into_iter().collect()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        #[test]
        fn the_form_follows_the_definition_and_is_the_same_for_equal_texts(text in text()) {
            let form = fold(&text);
            prop_assert_eq!(&fold(&form), &form);
            if !text.nfkd().any(|c| c == TATWEEL) {
                prop_assert_eq!(&d146(&text.nfkd().collect::<String>()), &form);
                if !text.contains(['\u{ff9e}', '\u{ff9f}']) {
                    prop_assert_eq!(&d146(&text), &form);
                }
            }
            for other in [text.nfc().collect::<String>(), text.nfd().collect(), text.nfkc().collect(), text.nfkd().collect()] {
                prop_assert_eq!(&fold(&other), &form, "{:?}", other);
                prop_assert_eq!(normalise_line(&other), normalise_line(&text));
            }
            let decomposed = text.nfd().collect::<String>();
            prop_assert_eq!(compose(&decomposed), compose(&text));
        }
    }
}
