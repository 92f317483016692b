//! Any bytes as signatures, as they are and behind a right checksum: refused, or consistent in every
//! answer.

#![no_main]

use std::collections::BTreeSet;

use doppel_model::stable_hash64;
use doppel_model::pairwise::Policy;
use doppel_model::signature::{SignatureKind, Signature};
use libfuzzer_sys::fuzz_target;

/// Random bytes hardly ever carry their checksum, so they get it.
fn sealed(body: &[u8]) -> Vec<u8> {
    [body, &stable_hash64(body).to_le_bytes()].concat()
}

fuzz_target!(|pair: (&[u8], &[u8])| {
    drop(Signature::from_bytes(pair.0));
    let (Ok(a), Ok(b)) = (Signature::from_bytes(&sealed(pair.0)), Signature::from_bytes(&sealed(pair.1)))
    else {
        return;
    };
    assert!(a.kind() != SignatureKind::Shingles || a.set().len() == a.size() as usize);
    let set: BTreeSet<u64> = a.set().collect();
    let shared = b.set().filter(|hash| set.contains(hash)).count();
    assert_eq!(a.shared_with(&b) as usize, shared);
    for policy in Policy::all() {
        assert!(policy.compare(&a, &a).same_content);
        policy.keys(&a, |_| ());
        let (there, back) = (policy.compare(&a, &b), policy.compare(&b, &a));
        // The counts beside a content that both state may be any.
        if there.same_content {
            continue;
        }
        assert_eq!(there, back);
        assert_eq!(policy.similar(&a, &b), there.similar);
        assert!(!there.similar || policy.accepts(&a) && policy.accepts(&b));
    }
});
