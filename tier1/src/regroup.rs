//! Recomputation of a group: which members are tied by chains of pairs.
//!
//! Two contents are tied when they are linked (`Policy::linked`): the same relation that tier 2
//! answers by, so that a group does not depend on which of the two found it. Candidates come from
//! common bands; the decision is exact.

use std::collections::HashMap;

use doppel_common::pairwise::Policy;
use doppel_common::signature::Signature;

/// The connected components of `signatures`, each a list of indices in ascending order; the one with
/// `first` comes first, then by size and index.
#[must_use]
pub fn components<S: AsRef<Signature>>(policy: Policy, signatures: &[S], first: usize) -> Vec<Vec<usize>> {
    let cut = policy.bands();
    let mut bands: HashMap<(usize, u32), Vec<usize>> = HashMap::new();
    let mut contents: HashMap<_, Vec<usize>> = HashMap::new();
    for (index, signature) in signatures.iter().enumerate() {
        let signature = signature.as_ref();
        contents.entry(signature.content()).or_default().push(index);
        if policy.comparable(signature) {
            for (band, key) in cut.keys(signature.sketch()).enumerate() {
                bands.entry((band, key)).or_default().push(index);
            }
        }
    }
    let mut seen = vec![false; signatures.len()];
    let mut components = Vec::new();
    let order = std::iter::once(first).chain(0..signatures.len());
    for start in order.filter(|&index| index < signatures.len()) {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        let mut component = vec![start];
        let mut next = 0;
        while let Some(&at) = component.get(next) {
            next += 1;
            let signature = signatures[at].as_ref();
            let mut take = |candidates: &mut Vec<usize>, seen: &mut Vec<bool>| {
                candidates.retain(|&other| {
                    if seen[other] {
                        return false;
                    }
                    // A candidate has a band in common already, or the content.
                    let linked = policy.similar(signature, signatures[other].as_ref());
                    if linked {
                        seen[other] = true;
                        component.push(other);
                    }
                    !linked
                });
            };
            if let Some(same) = contents.get_mut(&signature.content()) {
                take(same, &mut seen);
            }
            if policy.comparable(signature) {
                for (band, key) in cut.keys(signature.sketch()).enumerate() {
                    if let Some(candidates) = bands.get_mut(&(band, key)) {
                        take(candidates, &mut seen);
                    }
                }
            }
        }
        component.sort_unstable();
        components.push(component);
    }
    if let Some((_, rest)) = components.split_first_mut() {
        rest.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    }
    components
}
