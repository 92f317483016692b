//! Recomputation of a group: which contents are tied by chains of pairs.
//!
//! Two contents are tied when they are linked (`Policy::linked`): the same relation that tier 2
//! answers by, so that a group does not depend on which of the two found it. Candidates come from
//! common bands; the decision is exact.
//!
//! Signatures are read when they are needed and kept up to a limit, so memory beside it grows by the
//! bands of a content only.

use std::collections::HashMap;
use std::sync::Arc;

use doppel_common::pairwise::Policy;
use doppel_common::signature::Signature;

/// Bytes of signatures kept at a time.
const KEPT_MAX: usize = 256 << 20;

/// Reads the signature of a content by its number; none when nobody has it any more.
type Read<'r, E> = dyn FnMut(usize) -> Result<Option<Arc<Signature>>, E> + 'r;

/// Signatures that were read.
struct Kept<'r, E> {
    read: &'r mut Read<'r, E>,
    signatures: HashMap<usize, Arc<Signature>>,
    bytes: usize,
    limit: usize,
}

impl<E> Kept<'_, E> {
    fn get(&mut self, number: usize) -> Result<Option<Arc<Signature>>, E> {
        if let Some(signature) = self.signatures.get(&number) {
            return Ok(Some(Arc::clone(signature)));
        }
        let Some(signature) = (self.read)(number)? else { return Ok(None) };
        if self.bytes > self.limit {
            self.signatures.clear();
            self.bytes = 0;
        }
        self.bytes += signature.as_bytes().len();
        self.signatures.insert(number, Arc::clone(&signature));
        Ok(Some(signature))
    }
}

/// The connected components of the contents 0 to `count`, each a list of their numbers in ascending order;
/// the one with `first` comes first, then by size and number. Contents that cannot be had are left out.
pub(crate) fn components<E>(
    policy: Policy,
    count: usize,
    first: usize,
    read: &mut Read<'_, E>,
) -> Result<Vec<Vec<usize>>, E> {
    components_within(policy, count, first, KEPT_MAX, read)
}

fn components_within<'r, E>(
    policy: Policy,
    count: usize,
    first: usize,
    limit: usize,
    read: &'r mut Read<'r, E>,
) -> Result<Vec<Vec<usize>>, E> {
    let cut = policy.bands();
    let mut kept = Kept { read, signatures: HashMap::new(), bytes: 0, limit };
    // Who is in no component yet, by band and key.
    let mut bands: HashMap<(usize, u32), Vec<usize>> = HashMap::new();
    let mut seen = vec![false; count];
    for (number, seen) in seen.iter_mut().enumerate() {
        match kept.get(number)? {
            Some(signature) if policy.comparable(&signature) => {
                for band in cut.keys(signature.sketch()).enumerate() {
                    bands.entry(band).or_default().push(number);
                }
            }
            Some(_) => {}
            None => *seen = true,
        }
    }
    let mut components = Vec::new();
    for start in std::iter::once(first).chain(0..count) {
        if seen.get(start).is_none_or(|seen| *seen) {
            continue;
        }
        seen[start] = true;
        let mut component = vec![start];
        let mut next = 0;
        while let Some(&at) = component.get(next) {
            next += 1;
            let Some(signature) = kept.get(at)?.filter(|signature| policy.comparable(signature)) else {
                continue;
            };
            for band in cut.keys(signature.sketch()).enumerate() {
                let Some(candidates) = bands.get_mut(&band) else { continue };
                let mut left = Vec::with_capacity(candidates.len());
                for &other in candidates.iter().filter(|other| !seen[**other]) {
                    left.push(other);
                    // A candidate has a band in common already.
                    if kept.get(other)?.is_some_and(|candidate| policy.similar(&signature, &candidate)) {
                        left.pop();
                        component.push(other);
                    }
                }
                component[next..].iter().for_each(|&other| seen[other] = true);
                *candidates = left;
            }
        }
        component.sort_unstable();
        components.push(component);
    }
    if let Some((_, rest)) = components.split_first_mut() {
        rest.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    }
    Ok(components)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use doppel_common::signature::Builder;

    use super::*;

    /// Chains: each content is its neighbour with two words in a hundred replaced.
    fn chains(chains: u64, length: u64) -> Vec<Arc<Signature>> {
        let mut builder = Builder::new();
        let mut signatures = Vec::new();
        for chain in 0..chains {
            for at in 0..length {
                let word = |i: u64| chain * 1_000_000 + if i < 2 * at { 1_000 + i } else { i };
                let tokens: Vec<u64> =
                    (0..100).map(|i| word(i).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
                signatures.push(Arc::new(builder.build(&tokens)));
            }
        }
        signatures
    }

    fn found(signatures: &[Option<Arc<Signature>>], first: usize, limit: usize) -> Vec<Vec<usize>> {
        let mut read = |number: usize| Ok::<_, Infallible>(signatures[number].clone());
        let Ok(components) = components_within(Policy::default(), signatures.len(), first, limit, &mut read);
        components
    }

    /// By the definition.
    fn expected(signatures: &[Option<Arc<Signature>>]) -> Vec<Vec<usize>> {
        let mut component: Vec<usize> = (0..signatures.len()).collect();
        for (i, a) in signatures.iter().enumerate() {
            for (j, b) in signatures.iter().enumerate().take(i) {
                let linked = a.as_ref().zip(b.as_ref()).is_some_and(|(a, b)| Policy::default().linked(a, b));
                if linked && component[i] != component[j] {
                    let (from, to) = (component[i], component[j]);
                    component.iter_mut().filter(|c| **c == from).for_each(|c| *c = to);
                }
            }
        }
        let of = |c: usize| {
            let component = &component;
            (0..signatures.len()).filter(move |i| component[*i] == c && signatures[*i].is_some())
        };
        let mut all: Vec<Vec<usize>> = (0..signatures.len()).map(|c| of(c).collect()).collect();
        all.retain(|component| !component.is_empty());
        all
    }

    #[test]
    fn components_are_those_of_the_definition_whatever_is_kept() {
        let mut signatures: Vec<_> = chains(3, 12).into_iter().map(Some).collect();
        // One chain is torn apart where a content has gone.
        signatures[16..20].fill(None);
        let mut expected = expected(&signatures);
        expected.sort();
        assert!(expected.len() > 3, "{expected:?}");
        for (limit, first) in [(usize::MAX, 0), (0, 30), (3_000, 17)] {
            let found = found(&signatures, first, limit);
            assert!(first == 17 || found[0].contains(&first));
            assert!(found[1..].is_sorted_by_key(|component| std::cmp::Reverse(component.len())));
            let mut found = found;
            found.sort();
            assert_eq!(found, expected);
        }
    }
}
