use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn signature_of(words: &[u16]) -> Signature {
    let tokens: Vec<u64> = words.iter().map(|w| stable_hash64(&w.to_le_bytes())).collect();
    Builder::new().build(&tokens)
}

/// Words from a small vocabulary, so that sets overlap.
fn words() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(0..6u16, 0..200)
}

proptest! {
    #[test]
    fn bytes_round_trip(words in words()) {
        let signature = signature_of(&words);
        let again = Signature::from_bytes(signature.as_bytes()).unwrap();
        prop_assert_eq!(&again, &signature);
        prop_assert_eq!(again.tokens() as usize, words.len());
        prop_assert_eq!(again.set().len(), again.size() as usize);
    }

    #[test]
    fn shared_counts_the_intersection_of_the_sets(a in words(), b in words()) {
        let (a, b) = (signature_of(&a), signature_of(&b));
        let sets: [BTreeSet<u64>; 2] = [a.set().collect(), b.set().collect()];
        prop_assert_eq!(a.shared_with(&b) as usize, sets[0].intersection(&sets[1]).count());
        prop_assert_eq!(a.shared_with(&b), b.shared_with(&a));
        prop_assert_eq!(a.shared_with(&a), a.size());
    }

    #[test]
    fn sets_of_any_sizes_are_merged(
        a in prop::collection::btree_set(0..40u64, 0..30),
        b in prop::collection::btree_set(0..40u64, 0..30),
        high in 0..1u64 << 34,
    ) {
        let hashes = |set: &BTreeSet<u64>| set.iter().map(|x| high << 6 | x).collect::<Vec<_>>();
        let packed = |set: &BTreeSet<u64>| {
            let mut bytes = Vec::new();
            set::pack(&hashes(set), &mut bytes);
            bytes.extend([0xff; CHECKSUM_BYTES]);
            bytes
        };
        prop_assert_eq!(set::entries(&packed(&a), a.len()).collect::<Vec<_>>(), hashes(&a));
        let shared = set::shared(&packed(&a), a.len(), &packed(&b), b.len());
        prop_assert_eq!(shared as usize, a.intersection(&b).count());
    }

    #[test]
    fn a_signature_with_a_damaged_byte_is_refused(words in words(), at in any::<prop::sample::Index>(), flip in 1..=255u8) {
        let mut bytes = signature_of(&words).as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert!(Signature::from_bytes(&bytes).is_err());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Signature::from_bytes(&bytes);
    }

    #[test]
    fn truncated_or_padded_bytes_are_refused(words in words(), cut in 1..100usize) {
        let signature = signature_of(&words);
        let bytes = signature.as_bytes();
        prop_assert!(Signature::from_bytes(&bytes[..bytes.len() - cut.min(bytes.len())]).is_err());
        let mut longer = bytes.to_vec();
        longer.resize(bytes.len() + cut, 0);
        prop_assert!(Signature::from_bytes(&longer).is_err());
    }
}

/// Changes a field of a valid signature and recomputes the checksum, so that only this field is wrong.
fn forged(words: &[u16], forge: impl FnOnce(&mut Vec<u8>)) -> Result<Signature, SignatureError> {
    let mut bytes = signature_of(words).as_bytes().to_vec();
    bytes.truncate(bytes.len() - CHECKSUM_BYTES);
    forge(&mut bytes);
    let checksum = stable_hash64(&bytes);
    bytes.extend(checksum.to_le_bytes());
    Signature::from_bytes(&bytes)
}

#[test]
fn each_field_is_checked_when_the_checksum_is_right() {
    let words = [1, 2, 3, 4, 5, 6];
    assert!(forged(&words, |_| ()).is_ok());
    assert_eq!(forged(&words, |b| b[0] = 0), Err(SignatureError::Format(0)));
    assert_eq!(forged(&words, |b| b[1] = 9), Err(SignatureError::Tokeniser(9)));
    assert_eq!(forged(&words, |b| b[3] = 4), Err(SignatureError::Kind(4)));
    assert_eq!(forged(&words, |b| b[TOKENS] = 5), Err(SignatureError::Counts { tokens: 5, size: 6 }));
    assert_eq!(forged(&words, |b| b[SIZE] = 5), Err(SignatureError::Length { expected: 125, actual: 130 }));
    assert_eq!(
        forged(&words, |b| b.copy_within(SHINGLE_SET..SHINGLE_SET + 5, SHINGLE_SET + 5)),
        Err(SignatureError::Order(1))
    );
    assert_eq!(forged(&[], |b| b[TOKENS] = 1), Err(SignatureError::Counts { tokens: 1, size: 0 }));
}
