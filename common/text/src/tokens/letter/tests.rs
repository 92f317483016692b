use super::*;

/// Texts before a character that could change its form: letters that compose with many marks, marks, and a
/// jamo.
const BEFORE: [&str; 14] = [
    "",
    "\u{113c2}",
    "\u{16d67}",
    "a",
    "o\u{323}",
    "e\u{345}",
    "が",
    "か",
    "가",
    "\u{1100}",
    "ا",
    "ক\u{9c7}",
    "=",
    "\u{ad}",
];

#[test]
fn every_character_has_the_form_that_the_normaliser_gives_it() {
    let (letters, mut form) = (Letters::new(), Form::default());
    let mut counts = [0; 6];
    for c in ('\0'..'\u{34000}').chain('\u{e0000}'..'\u{e1000}') {
        let own = form.fold(c.encode_utf8(&mut [0; 4])).to_owned();
        let kind = letters.kind(c);
        counts[match kind {
            CharKind::Separator => {
                assert!(own.chars().all(|c| !is_letter(c) && !is_mark(c)), "{c:?}");
                0
            }
            CharKind::Letter(letter) => {
                assert!(own == letter.to_string() && is_letter(letter), "{c:?}");
                1
            }
            CharKind::Sequence(at) => {
                assert_eq!(letters.sequence(at), own, "{c:?}");
                2
            }
            CharKind::Mark(_) => {
                assert!(own == c.to_string() && is_mark(c) && combining_class(c) == 0, "{c:?}");
                3
            }
            CharKind::OrderedMark => {
                assert!(own == c.to_string() && is_mark(c) && combining_class(c) > 0, "{c:?}");
                4
            }
            CharKind::Irregular => 5,
        }] += 1;
        if kind.is_regular() {
            for before in BEFORE {
                let apart = form.fold(before).to_owned() + &own;
                assert_eq!(form.fold(&format!("{before}{c}")), apart, "{before:?} and {c:?}");
            }
        }
        if matches!(kind, CharKind::Separator | CharKind::Letter(_) | CharKind::Mark(_)) {
            // Marks of three combining classes that never compose.
            for mark in ['\u{5b0}', '\u{64e}', '\u{e48}'] {
                assert_eq!(letters.kind(mark), CharKind::OrderedMark);
                let form = form.fold(&format!("{c}{mark}")).to_owned();
                let is_same = form == format!("{own}{mark}");
                assert!(
                    is_same || kind == CharKind::Separator && !form.contains(is_letter),
                    "{c:?} {form:?}"
                );
            }
        }
        let category = if is_letter(c) {
            CharCategory::Letter
        } else if is_mark(c) {
            CharCategory::Mark
        } else {
            CharCategory::Other
        };
        assert_eq!(letters.category(c), category, "{c:?}");
    }
    println!("separators, letters, sequences, marks, ordered marks, irregular: {counts:?}");
    assert!(counts.iter().all(|count| *count > 200), "{counts:?}");
}

/// The alphanumeric characters of the standard library also include some marks.
#[test]
fn letters_are_the_alphanumeric_characters_of_the_standard_library_except_marks() {
    for c in ('\0'..=char::MAX).filter(|c| c.is_alphanumeric()) {
        assert!(is_letter(c) != is_mark(c), "{c:?}");
    }
    for c in ['٣', '५', 'Ⅷ', '²', '½', 'Ⓐ', '🅐', 'ª', 'ー', '々', '〇', 'ʼ', 'ا'] {
        assert!(is_letter(c), "{c:?}");
    }
    for c in ['_', '-', '·', '’', '👍', '©', '\u{301}', 'ি'] {
        assert!(!is_letter(c), "{c:?}");
    }
}
