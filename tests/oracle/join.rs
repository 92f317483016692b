//! All pairs of sets with a Jaccard coefficient of tau or more, exactly.
//!
//! Prefix filter (Chaudhuri, Ganti, Kaushik: "A Primitive Operator for Similarity Joins in Data
//! Cleaning", ICDE 2006): with the elements in one order, the rarest first, two sets that share at
//! least m elements meet in their first `len - m + 1`. Every pair that meets is counted in full.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::Tau;

/// Pairs of set indices `(a, b)`, `a < b`.
#[derive(Default)]
pub(crate) struct Similar {
    /// Pairs with J > tau.
    pub(crate) above: Vec<(usize, usize)>,
    /// Pairs with J = tau.
    pub(crate) at: Vec<(usize, usize)>,
}

/// Joins sets of ascending, distinct elements with themselves. Empty sets are like nothing.
pub(crate) fn similar(sets: &[&[u32]], tau: Tau) -> Similar {
    let mut frequency: HashMap<u32, u32> = HashMap::new();
    for element in sets.iter().flat_map(|set| set.iter()) {
        *frequency.entry(*element).or_default() += 1;
    }
    let mut index: HashMap<u32, Vec<usize>> = HashMap::new();
    let mut similar = Similar::default();
    let mut met_by = vec![usize::MAX; sets.len()];
    for (b, set) in sets.iter().enumerate() {
        let mut rarest_first: Vec<(u32, u32)> = set.iter().map(|e| (frequency[e], *e)).collect();
        rarest_first.sort_unstable();
        let prefix = match set.len() {
            0 => 0,
            len => len - tau.least_shared(len) + 1,
        };
        for (_, element) in &rarest_first[..prefix] {
            let meets = index.entry(*element).or_default();
            for a in meets.iter().copied() {
                if met_by[a] == b {
                    continue;
                }
                met_by[a] = b;
                match tau.against(shared(sets[a], set), sets[a].len(), set.len()) {
                    Ordering::Greater => similar.above.push((a, b)),
                    Ordering::Equal => similar.at.push((a, b)),
                    Ordering::Less => {}
                }
            }
            meets.push(b);
        }
    }
    similar
}

/// Number of elements that two ascending sets share.
pub(crate) fn shared(a: &[u32], b: &[u32]) -> usize {
    let (mut i, mut j, mut count) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            Ordering::Less => i += 1,
            Ordering::Greater => j += 1,
            Ordering::Equal => {
                i += 1;
                j += 1;
                count += 1;
            }
        }
    }
    count
}
