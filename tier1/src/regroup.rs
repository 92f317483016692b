//! Recomputation of a group: which contents are linked by chains of pairs.
//!
//! Linked are two contents for which `Policy::linked` holds: the same relation that tier 2
//! answers by, so that a group does not depend on which of the two found it. Candidates come from
//! common bands; the decision is exact.
//!
//! A giant group must not cost the square of its size, so its contents are first dealt out to *stars*: a
//! center and all that are linked to it and to no center before it. Two stars are linked when a content of one is
//! linked to a content of the other. Each content is compared with the center of the other star, and with its other
//! contents only where that leaves a doubt: Jaccard distance is a metric, so x is not linked to z in the star of b if
//! d(x, b) - d(b, z) >= 1 - tau. Under a policy whose measure is no metric, it is compared with all that share a key with it, until
//! two stars are linked. However many keys two contents share, they are compared once for it.
//!
//! Signatures are read when they are needed and kept up to a limit, so memory beside it grows by the
//! keys and the parity bitmap of a content only ([`shared_keys`]). A pair that the bitmaps reject is not read.

mod shared_keys;

use std::collections::HashMap;
use std::sync::Arc;

use doppel_model::pairwise::{Comparison, Key, Policy};
use doppel_model::parity;
use doppel_model::signature::Signature;
use doppel_model::{Tau, UnionFind};
use shared_keys::SharedKeys;

/// Bytes of signatures kept at a time.
const KEPT_MAX: usize = 256 << 20;

/// Reads the signature of a content by its number; none when no page has it any more.
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
    let kept = Kept { read, signatures: HashMap::new(), bytes: 0, limit };
    let mut stars = Stars::new(policy, count, kept)?;
    stars.deal(first)?;
    stars.link()?;
    Ok(stars.components(first))
}

/// The cover of the contents 0 to `count`, which come in the winner order: by content the first before it that is kept and
/// near it, with the comparison; none for one that is kept, or cannot be had.
///
/// It is how stars are dealt out: each content goes to the first center that it is near.
pub(crate) fn cover<E>(
    policy: Policy,
    count: usize,
    read: &mut Read<'_, E>,
) -> Result<Vec<Option<(usize, Comparison)>>, E> {
    let kept = Kept { read, signatures: HashMap::new(), bytes: 0, limit: KEPT_MAX };
    let mut stars = Stars::new(policy, count, kept)?;
    let mut cover = vec![None; count];
    stars.deal_each(0, &mut |center, number, comparison| cover[number] = Some((center, *comparison)))?;
    Ok(cover)
}

/// Distances are in so many parts of one.
const PARTS: u64 = 1 << 24;

/// A content's place in a star.
#[derive(Debug, Clone, Copy)]
struct Ray {
    center: usize,
    /// At least its distance to the center.
    distance: u64,
}

/// Takes a center, a content that is dealt to it, and how they compare.
type Dealt<'d> = dyn FnMut(usize, usize, &Comparison) + 'd;

struct Stars<'r, E> {
    policy: Policy,
    kept: Kept<'r, E>,
    /// None for a content that cannot be had.
    rays: Vec<Option<Ray>>,
    /// Of every content, or of none for one that cannot be had: its shingles and their bitmap.
    bitmaps: Vec<(u32, Box<[u64]>)>,
    /// The contents that have a key. While stars are dealt, those without one are wanted; afterwards all of them are sorted by center
    /// and from the farthest to the nearest.
    keys: SharedKeys,
    /// The centers whose stars are linked.
    linked: UnionFind,
}

impl<'r, E> Stars<'r, E> {
    fn new(policy: Policy, count: usize, mut kept: Kept<'r, E>) -> Result<Self, E> {
        let mut keys: Vec<(Key, u32)> = Vec::new();
        let mut rays = Vec::with_capacity(count);
        let mut bitmaps = Vec::with_capacity(count);
        for number in 0..count {
            let signature = kept.get(number)?;
            // A star of its own, until it is dealt to another.
            rays.push(signature.as_ref().map(|_| Ray { center: number, distance: 0 }));
            let bitmap = |signature: &Arc<Signature>| {
                let mut bitmap = Vec::new();
                parity::append(signature, &mut bitmap);
                (signature.size(), bitmap.into())
            };
            bitmaps.push(signature.as_ref().map(bitmap).unwrap_or_default());
            if let Some(signature) = signature.filter(|signature| policy.comparable(signature)) {
                // A group has fewer contents than there are numbers.
                policy.keys(&signature, |key| keys.push((key, number as u32)));
            }
        }
        let keys = SharedKeys::of(keys);
        Ok(Self { policy, kept, rays, bitmaps, keys, linked: UnionFind::new(count) })
    }

    /// The signature of a content that may be linked to others.
    fn comparable(&mut self, number: usize) -> Result<Option<Arc<Signature>>, E> {
        let policy = self.policy;
        Ok(self.kept.get(number)?.filter(|signature| policy.comparable(signature)))
    }

    /// Whether the bitmaps of two contents leave room for similarity.
    fn may_be_similar(&self, a: usize, b: usize) -> bool {
        let ((a, a_bitmap), (b, b_bitmap)) = (&self.bitmaps[a], &self.bitmaps[b]);
        let shared_max = parity::shared_max(*a, *b, parity::differing(a_bitmap, b_bitmap));
        self.policy.admits(shared_max, *a, *b)
    }

    /// The keys of a content, each once.
    fn keys_of(&self, signature: &Signature) -> Vec<Key> {
        let mut keys = Vec::new();
        self.policy.keys(signature, |key| keys.push(key));
        keys
    }

    /// Deals the contents out to stars, beginning with that of `first`.
    fn deal(&mut self, first: usize) -> Result<(), E> {
        self.deal_each(first, &mut |_, _, _| ())?;
        let rays = &self.rays;
        self.keys.sort_contents_by(|number| {
            rays[number as usize].map(|ray| (ray.center, std::cmp::Reverse(ray.distance)))
        });
        Ok(())
    }

    /// The same without sorting the keys, which are of no more use. Gives every content but the centers with its center.
    fn deal_each(&mut self, first: usize, each: &mut Dealt<'_>) -> Result<(), E> {
        let mut dealt = vec![false; self.rays.len()];
        // By content, the last center that it was a candidate of.
        let mut met = vec![None; self.rays.len()];
        let mut candidates: Vec<usize> = Vec::new();
        for center in std::iter::once(first).chain(0..self.rays.len()) {
            if dealt.get(center).is_none_or(|dealt| *dealt) {
                continue;
            }
            dealt[center] = true;
            let Some(signature) = self.comparable(center)? else { continue };
            candidates.clear();
            for key in self.keys_of(&signature) {
                let Some(at) = self.keys.find(key) else { continue };
                for &number in self.keys.still_wanted(at, |number| !dealt[number as usize]) {
                    let number = number as usize;
                    if met[number] != Some(center) {
                        met[number] = Some(center);
                        candidates.push(number);
                    }
                }
            }
            candidates.sort_unstable();
            candidates.retain(|number| self.may_be_similar(center, *number));
            for &number in &candidates {
                let Some(candidate) = self.kept.get(number)? else { continue };
                // It has a band in common already.
                let comparison = self.policy.compare(&signature, &candidate);
                if comparison.similar {
                    dealt[number] = true;
                    self.rays[number] =
                        Some(Ray { center, distance: comparison.similarity.distance(PARTS).1 });
                    each(center, number, &comparison);
                }
            }
        }
        Ok(())
    }

    /// Links stars.
    fn link(&mut self) -> Result<(), E> {
        // The least distance of two that are not linked, rounded up. Without a metric none is known.
        let apart = self.policy.metric().map_or(u64::MAX, |tau| {
            ((Tau::DENOMINATOR - tau.numerator()) * PARTS).div_ceil(Tau::DENOMINATOR)
        });
        let mut centers: HashMap<usize, u64> = HashMap::new();
        let keys = std::mem::take(&mut self.keys);
        let mut met = vec![None; self.rays.len()];
        for number in 0..self.rays.len() {
            let Some(signature) = self.comparable(number)? else { continue };
            // Its distance to other centers, at most.
            centers.clear();
            for key in self.keys_of(&signature) {
                let Some(at) = keys.find(key) else { continue };
                self.tie_by_key(number, &signature, keys.contents(at), apart, (&mut centers, &mut met))?;
            }
        }
        Ok(())
    }

    /// Links the star of a content to those of others that have a key in common with it. `met` has, by content, the last one that it was
    /// compared with, or need not be.
    fn tie_by_key(
        &mut self,
        number: usize,
        signature: &Signature,
        others: &[u32],
        apart: u64,
        (centers, met): (&mut HashMap<usize, u64>, &mut [Option<usize>]),
    ) -> Result<(), E> {
        let Some(own) = self.rays[number] else { return Ok(()) };
        let center_of = |rays: &[Option<Ray>], other: u32| rays[other as usize].map(|ray| ray.center);
        let mut rest = others;
        while let Some(&next) = rest.first() {
            let center = center_of(&self.rays, next);
            let length = rest.partition_point(|other| center_of(&self.rays, *other) <= center);
            let (star, others) = rest.split_at(length);
            rest = others;
            let Some(center) =
                center.filter(|center| self.linked.root(*center) != self.linked.root(own.center))
            else {
                continue;
            };
            let to_center = match centers.get(&center) {
                Some(distance) => *distance,
                // Without a metric nothing follows for the others.
                None if self.policy.metric().is_none() => 0,
                None => {
                    let comparison = match self.kept.get(center)? {
                        None => None,
                        Some(candidate) => {
                            let comparison = self.policy.compare(signature, &candidate);
                            if comparison.similar && self.policy.linked(signature, &candidate) {
                                self.linked.union(own.center, center);
                                continue;
                            }
                            Some(comparison)
                        }
                    };
                    // Gone, or similar, but without a common band: nothing follows for the others.
                    let at_most = comparison
                        .filter(|comparison| !comparison.similar)
                        .map_or(0, |comparison| comparison.similarity.distance(PARTS).0);
                    centers.insert(center, at_most);
                    at_most
                }
            };
            for &other in star {
                let other = other as usize;
                let far = self.rays[other].map_or(0, |ray| ray.distance);
                if to_center.saturating_sub(far) >= apart {
                    // The nearer ones are as far from it.
                    break;
                }
                // Of two contents the one with the lesser number was compared with the other one.
                if other < number || met[other] == Some(number) || !self.may_be_similar(number, other) {
                    continue;
                }
                met[other] = Some(number);
                let Some(candidate) = self.kept.get(other)? else { continue };
                if self.policy.similar(signature, &candidate) {
                    self.linked.union(own.center, center);
                    break;
                }
            }
        }
        Ok(())
    }

    /// The components, that of `first` first, then by size and number.
    fn components(mut self, first: usize) -> Vec<Vec<usize>> {
        let mut by_root: HashMap<usize, Vec<usize>> = HashMap::new();
        for number in 0..self.rays.len() {
            if let Some(ray) = self.rays[number] {
                let root = self.linked.root(ray.center);
                by_root.entry(root).or_default().push(number);
            }
        }
        let mut components: Vec<Vec<usize>> = by_root.into_values().collect();
        let is_first = |component: &[usize]| component.binary_search(&first).is_ok();
        components.sort_by(|a, b| {
            let order = |c: &[usize]| (std::cmp::Reverse(is_first(c)), std::cmp::Reverse(c.len()));
            order(a).cmp(&order(b)).then_with(|| a.cmp(b))
        });
        components
    }
}

#[cfg(test)]
mod tests;
