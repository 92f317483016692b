use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::{ContentHash, Random, stable_hash64, stable_hash128};

fn hash_of(text: &[u64]) -> ContentHash {
    let bytes: Vec<u8> = text.iter().flat_map(|term| term.to_le_bytes()).collect();
    ContentHash(stable_hash128(&bytes).to_be_bytes())
}

fn with_texts(mut sample: TermSample, texts: &[Vec<u64>]) -> TermSample {
    for text in texts {
        sample.add(hash_of(text), &mut text.clone());
    }
    sample
}

fn learn(texts: &[Vec<u64>]) -> Tables {
    Tables::learn("imatch", &with_texts(TermSample::new(), texts))
}

fn texts() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let term = (0..40_u64).prop_map(|number| stable_hash64(&number.to_le_bytes()));
    prop::collection::vec(prop::collection::vec(term, 0..20), 0..30)
}

proptest! {
    #[test]
    fn weights_depend_only_on_the_number_of_contents_with_a_term(texts in texts()) {
        let tables = learn(&texts);
        let distinct: BTreeSet<&Vec<u64>> = texts.iter().filter(|text| !text.is_empty()).collect();
        let mut frequencies: BTreeMap<u64, u64> = BTreeMap::new();
        for text in &distinct {
            for term in text.iter().collect::<BTreeSet<_>>() {
                *frequencies.entry(*term).or_default() += 1;
            }
        }
        let contents = distinct.len() as u64;
        prop_assert_eq!(u64::from(tables.contents()), contents);
        prop_assert_eq!(tables.terms(), frequencies.values().filter(|count| **count > 1).count());
        for (term, count) in frequencies {
            prop_assert_eq!(tables.weight(term), log2(contents + 1, count));
        }
        // A term outside the sample weighs as much as a term in a single content.
        prop_assert_eq!(tables.weight(7), log2(contents.max(1) + 1, 1));
    }

    #[test]
    fn order_and_copies_of_contents_do_not_change_the_tables(
        texts in texts(), seed in any::<u64>(), limits in (1..12_usize, 20..200_usize, 5..25_usize),
    ) {
        let sample = || TermSample::with_limits(limits.0, limits.1, limits.2);
        let learn = |texts: &[Vec<u64>]| Tables::learn("imatch", &with_texts(sample(), texts));
        let mut others = [texts.clone(), texts.clone()].concat();
        Random::new(seed).shuffle(&mut others);
        let (tables, other) = (learn(&texts), learn(&others));
        prop_assert_eq!(&tables, &other);
        prop_assert_eq!(tables.hash(), other.hash());
    }

    #[test]
    fn a_sample_has_as_many_of_the_contents_with_the_smallest_hashes_as_fit(
        texts in texts(), contents in 1..12_usize, terms in 20..200_usize, most in 5..25_usize,
    ) {
        let sample = with_texts(TermSample::with_limits(contents, terms, most), &texts);
        let mut by_hash: BTreeMap<ContentHash, usize> = BTreeMap::new();
        for text in texts.iter().filter(|text| !text.is_empty()) {
            by_hash.insert(hash_of(text), text.iter().collect::<BTreeSet<_>>().len());
        }
        // Contents with too many terms are ignored.
        by_hash.retain(|_, distinct_terms| *distinct_terms <= most);
        let (mut fitting, mut sum) = (0, 0);
        for distinct_terms in by_hash.values() {
            sum += distinct_terms;
            if fitting == contents || sum > terms {
                break;
            }
            fitting += 1;
        }
        prop_assert_eq!(sample.contents(), fitting);
    }

    #[test]
    fn a_file_round_trips_and_any_change_is_refused(
        texts in texts(), at in any::<prop::sample::Index>(), flip in 1..=255_u8,
    ) {
        let tables = learn(&texts);
        let file = tables.to_file();
        let read = Tables::from_file(&file);
        prop_assert_eq!(read.as_ref(), Ok(&tables));
        prop_assert_eq!(read.unwrap().hash(), tables.hash());
        let mut changed = file.clone();
        changed[at.index(file.len())] ^= flip;
        prop_assert!(Tables::from_file(&changed).is_err());
        prop_assert!(Tables::from_file(&file[..at.index(file.len())]).is_err());
        prop_assert!(Tables::from_file(&[&file[..], &[flip]].concat()).is_err());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let with_magic = [b"doppel tables 1\n".as_slice(), &bytes].concat();
        let with_checksum = [&with_magic[..], &stable_hash64(&with_magic).to_le_bytes()].concat();
        for bytes in [&bytes[..], &with_magic, &with_checksum] {
            prop_assert!(Tables::from_file(bytes).is_err());
        }
    }
}

/// Huge contents are ignored, whatever their hashes, so that other contents fit into the sample.
#[test]
fn a_few_huge_contents_do_not_empty_the_sample() {
    let huge = |first: u64, terms: u64| -> Vec<u64> { (0..terms).map(|term| first + term).collect() };
    let usual: Vec<Vec<u64>> = (0..200).map(|text| huge(100 * text, 150)).collect();
    let most = CONTENT_TERMS_MAX as u64;
    let all = |terms| {
        let huge = (0..20).map(|text| huge(1_000_000 * (1 + text), terms));
        usual.iter().cloned().chain(huge).collect::<Vec<_>>()
    };
    assert_eq!(learn(&all(most + 1)), learn(&usual));
    assert_eq!(learn(&all(most)).contents(), 220);
}

/// Changes the bytes of valid tables and recomputes the checksum, so that only this change is wrong.
fn forged(forge: impl FnOnce(&mut Vec<u8>)) -> Result<Tables, TablesError> {
    let texts: Vec<Vec<u64>> = (0..9).map(|text| (text..text + 5).collect()).collect();
    let mut bytes = learn(&texts).to_bytes();
    forge(&mut bytes);
    let checksum = stable_hash64(&bytes);
    Tables::from_file(&[&bytes[..], &checksum.to_le_bytes()].concat())
}

#[test]
fn the_error_says_what_is_wrong_with_a_file() {
    // Fields behind the magic: version of the terms, name, number of contents, seeds, number of terms.
    let (name, contents) = (16 + 2, 16 + 2 + 1 + 6);
    let terms = contents + 4 + 8 * (LEXICONS - 1) + 4;
    assert!(forged(|_| ()).is_ok());
    assert_eq!(forged(|bytes| bytes[0] = b'D'), Err(TablesError::Magic));
    assert_eq!(forged(|bytes| bytes[14] = b'9'), Err(TablesError::Version));
    assert_eq!(forged(|bytes| bytes[16] = 9), Err(TablesError::Terms(9)));
    assert!(matches!(forged(|bytes| bytes[name] = 200), Err(TablesError::Content(_))));
    assert!(matches!(forged(|bytes| bytes[name + 1] = 0xff), Err(TablesError::Content(_))));
    assert!(matches!(forged(|bytes| bytes[contents + 3] = 1), Err(TablesError::Content(_))));
    assert!(matches!(forged(|bytes| bytes[terms - 1] = 1), Err(TablesError::Content(_))));
    assert!(matches!(forged(|bytes| bytes[terms - 4] -= 1), Err(TablesError::Length(_))));
    assert!(matches!(forged(|bytes| bytes.push(0)), Err(TablesError::Length(_))));
    assert!(matches!(
        forged(|bytes| bytes.copy_within(terms..terms + 8, terms + 8)),
        Err(TablesError::Content(_))
    ));
    let set_last_weight = |bytes: &mut Vec<u8>, weight: u32| {
        let end = bytes.len();
        bytes[end - 4..].copy_from_slice(&weight.to_le_bytes());
    };
    for weight in [0, log2(10, 1)] {
        let result = forged(|bytes| set_last_weight(bytes, weight));
        assert!(matches!(result, Err(TablesError::Content(_))), "{weight}");
    }
    assert_eq!(Tables::from_file(b"doppel"), Err(TablesError::Magic));
}

#[test]
fn a_random_lexicon_has_two_thirds_of_all_terms_and_no_two_are_the_same() {
    let tables = learn(&[]);
    let has = |lexicon: usize| -> Vec<bool> {
        (0..3_000_u64).map(|term| tables.has(lexicon, stable_hash64(&term.to_le_bytes()))).collect()
    };
    assert!(has(0).iter().all(|has| *has));
    for lexicon in 1..LEXICONS {
        let terms = has(lexicon);
        let size = terms.iter().filter(|has| **has).count();
        assert!((1_900..2_100).contains(&size), "{size}");
        // Two independent lexicons agree on five of nine terms: both have the term, or neither has it.
        let agreeing = has(lexicon % 16 + 1).iter().zip(&terms).filter(|(a, b)| a == b).count();
        assert!((1_550..1_780).contains(&agreeing), "{agreeing}");
    }
    assert!(!has(LEXICONS).contains(&true));
}

#[test]
fn the_text_of_a_hash_round_trips_and_other_text_is_refused() {
    let hash = learn(&[]).hash();
    assert_eq!(hash.to_string().parse(), Ok(hash));
    assert_eq!(serde_json::from_str::<TablesHash>(&serde_json::to_string(&hash).unwrap()).unwrap(), hash);
    for wrong in ["", "12", "+1234567890123456789012345678901", &"g".repeat(32)] {
        assert!(wrong.parse::<TablesHash>().is_err(), "{wrong}");
    }
}
