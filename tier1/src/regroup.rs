//! Recomputation of a group: finds the connected components of its contents under the link relation.
//!
//! Two contents are linked if `Policy::linked` holds. Tier 2 answers searches by the same relation, so a
//! group does not depend on which of the two found its pairs. Candidates are the contents that share a key;
//! the decision about a candidate is exact.
//!
//! The comparisons in a giant group must not grow with the square of its size. The contents are therefore
//! first assigned to *stars*. A star is a center and the contents that are linked to this center and to no
//! earlier center. Two stars are linked if a content of one star is linked to a content of the other star. A
//! content is first compared with the center of the other star. Comparisons with the other contents of that
//! star are often unnecessary, because Jaccard distance is a metric: x is not linked to z in the star of b if
//! d(x, b) - d(b, z) >= 1 - tau. If the measure of a policy is not a metric, a content is compared with all
//! contents that share a key with it, until the two stars are linked. Two contents are compared once, however
//! many keys they share.
//!
//! Signatures are read on demand and cached up to a limit. All other memory grows only with the keys and the
//! parity bitmaps of the contents ([`shared_keys`]). If the bitmaps reject a pair, its signatures are not
//! read.

mod cover;
mod shared_keys;

use std::sync::Arc;

use doppel_model::pairwise::{Comparison, Key, Policy, Similarity};
use doppel_model::parity;
use doppel_model::signature::Signature;
use doppel_model::{Tau, UnionFind};
use hashbrown::HashMap;

pub(crate) use cover::{CoveredContents, cover};
use shared_keys::SharedKeys;

/// Memory limit of the cached signatures, in bytes.
const CACHE_BYTES_MAX: usize = 256 << 20;

/// Reads the signature of a content by the content's number. Returns `None` if no page has the content any
/// more.
type SignatureReader<'r, E> = dyn FnMut(usize) -> Result<Option<Arc<Signature>>, E> + 'r;

/// A cache of signatures. It is emptied when it exceeds its limit.
struct CachedSignatures<'r, E> {
    read: &'r mut SignatureReader<'r, E>,
    /// Signatures by content number.
    signatures: HashMap<usize, Arc<Signature>>,
    /// Size of the cached signatures in bytes.
    bytes: usize,
    /// Maximum of `bytes`.
    limit: usize,
}

impl<E> CachedSignatures<'_, E> {
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

/// Returns the connected components of the contents 0 to `count - 1`. A component is a list of content
/// numbers in ascending order. The component of `first` comes first, then the components by descending size
/// and by number. Contents without a signature are left out.
///
/// # Errors
/// The errors of `read`.
pub(crate) fn components<E>(
    policy: Policy,
    count: usize,
    first: usize,
    read: &mut SignatureReader<'_, E>,
) -> Result<Vec<Vec<usize>>, E> {
    components_within(policy, count, first, CACHE_BYTES_MAX, read)
}

fn components_within<'r, E>(
    policy: Policy,
    count: usize,
    first: usize,
    limit: usize,
    read: &'r mut SignatureReader<'r, E>,
) -> Result<Vec<Vec<usize>>, E> {
    let cache = CachedSignatures { read, signatures: HashMap::new(), bytes: 0, limit };
    let mut stars = Stars::new(policy, count, cache)?;
    stars.assign(first)?;
    stars.link()?;
    Ok(stars.components(first))
}

/// Unit of distances: a distance of 1 is this number.
const PARTS: u64 = 1 << 24;

/// A content's membership in a star.
#[derive(Debug, Clone, Copy)]
struct Ray {
    /// Content number of the star's center.
    center: usize,
    /// Distance to the center, rounded up.
    distance: u64,
}

/// Callback for an assignment. Its arguments are the number of the center, the number of the content, and
/// their comparison.
type OnAssignment<'d> = dyn FnMut(usize, usize, &Comparison) + 'd;

/// The contents of a group, divided into stars.
struct Stars<'r, E> {
    policy: Policy,
    cache: CachedSignatures<'r, E>,
    /// Star of each content. `None` for a content without a signature.
    rays: Vec<Option<Ray>>,
    /// Number of shingles of each content, and their parity bitmap. Empty for a content without a signature.
    bitmaps: Vec<(u32, Box<[u64]>)>,
    /// Contents by key. During the assignment, contents without a star are the wanted ones. Afterwards the
    /// contents of each key are sorted by center, and for each center from the farthest to the nearest.
    keys: SharedKeys,
    /// Joins the centers of linked stars.
    linked: UnionFind,
}

impl<'r, E> Stars<'r, E> {
    /// Reads all signatures once. Makes each content a star of its own, and collects keys and bitmaps.
    fn new(policy: Policy, count: usize, mut cache: CachedSignatures<'r, E>) -> Result<Self, E> {
        let mut keys: Vec<(Key, u32)> = Vec::new();
        let mut rays = Vec::with_capacity(count);
        let mut bitmaps = Vec::with_capacity(count);
        for number in 0..count {
            let signature = cache.get(number)?;
            rays.push(signature.as_ref().map(|_| Ray { center: number, distance: 0 }));
            let bitmap = |signature: &Arc<Signature>| {
                let mut bitmap = Vec::new();
                parity::append(signature, &mut bitmap);
                (signature.size(), bitmap.into())
            };
            bitmaps.push(signature.as_ref().map(bitmap).unwrap_or_default());
            if let Some(signature) = signature.filter(|signature| policy.comparable(signature)) {
                // A group has fewer than 2^32 contents.
                policy.keys(&signature, |key| keys.push((key, number as u32)));
            }
        }
        let keys = SharedKeys::of(keys);
        Ok(Self { policy, cache, rays, bitmaps, keys, linked: UnionFind::new(count) })
    }

    /// Returns the signature of a content. `None` if the policy compares the content with no other, or if no
    /// page has the content any more.
    fn comparable(&mut self, number: usize) -> Result<Option<Arc<Signature>>, E> {
        let policy = self.policy;
        Ok(self.cache.get(number)?.filter(|signature| policy.comparable(signature)))
    }

    /// Whether two contents can be similar according to their sizes and bitmaps.
    fn may_be_similar(&self, a: usize, b: usize) -> bool {
        let (a_size, b_size) = (self.bitmaps[a].0, self.bitmaps[b].0);
        self.policy.admits(self.shared_max(a, b), a_size, b_size)
    }

    /// The most shingles that two contents can share according to their sizes and bitmaps.
    fn shared_max(&self, a: usize, b: usize) -> u32 {
        let ((a, a_bitmap), (b, b_bitmap)) = (&self.bitmaps[a], &self.bitmaps[b]);
        parity::shared_max(*a, *b, parity::differing(a_bitmap, b_bitmap))
    }

    /// A lower bound of the distance of two contents. `None` if they may be similar, or if the center's bitmap is
    /// unknown.
    fn distance_by_bitmaps(&self, number: usize, center: usize) -> Option<u64> {
        let (a, b, shared) =
            (self.bitmaps[number].0, self.bitmaps[center].0, self.shared_max(number, center));
        let of = (a + b).saturating_sub(shared);
        let is_far = b > 0 && !self.policy.admits(shared, a, b);
        is_far.then(|| Similarity { shared, of }.distance(PARTS).0)
    }

    /// The keys of a signature.
    fn keys_of(&self, signature: &Signature) -> Vec<Key> {
        let mut keys = Vec::new();
        self.policy.keys(signature, |key| keys.push(key));
        keys
    }

    /// Assigns the contents to stars, beginning with `first` as a center, and sorts the contents of each key.
    fn assign(&mut self, first: usize) -> Result<(), E> {
        let centers = std::iter::once(first).chain(0..self.rays.len());
        self.assign_each((centers, 0), &mut |_, _, _| ())?;
        let rays = &self.rays;
        self.keys.sort_contents_by(|number| {
            rays[number as usize].map(|ray| (ray.center, std::cmp::Reverse(ray.distance)))
        });
        Ok(())
    }

    /// Like [`assign`](Self::assign), but does not sort the contents of the keys. Each of `centers` becomes a
    /// center unless it belongs to a star already, and the first `fixed` contents in any case. Calls `each` for
    /// every content that an earlier center is similar to.
    fn assign_each(
        &mut self,
        (centers, fixed): (impl Iterator<Item = usize>, usize),
        each: &mut OnAssignment<'_>,
    ) -> Result<(), E> {
        let mut assigned = vec![false; self.rays.len()];
        // The last center that has each content as a candidate, so that a content becomes a candidate once.
        let mut last_center = vec![None; self.rays.len()];
        let mut candidates: Vec<usize> = Vec::new();
        for center in centers {
            if center >= fixed && assigned.get(center).is_none_or(|assigned| *assigned) {
                continue;
            }
            assigned[center] = true;
            let Some(signature) = self.comparable(center)? else { continue };
            candidates.clear();
            for key in self.keys_of(&signature) {
                let Some(at) = self.keys.find(key) else { continue };
                for &number in self.keys.still_wanted(at, |number| !assigned[number as usize]) {
                    let number = number as usize;
                    if last_center[number] != Some(center) {
                        last_center[number] = Some(center);
                        candidates.push(number);
                    }
                }
            }
            candidates.sort_unstable();
            candidates.retain(|number| self.may_be_similar(center, *number));
            for &number in &candidates {
                let Some(candidate) = self.cache.get(number)? else { continue };
                // The two share a key, so they are linked if they are similar.
                let comparison = self.policy.compare(&signature, &candidate);
                if comparison.similar {
                    assigned[number] = true;
                    self.rays[number] =
                        Some(Ray { center, distance: comparison.similarity.distance(PARTS).1 });
                    each(center, number, &comparison);
                }
            }
        }
        Ok(())
    }

    /// Joins all stars that are linked.
    fn link(&mut self) -> Result<(), E> {
        // Contents at this distance or more are not linked (1 - tau, rounded up). Without a metric, no
        // distance excludes a link.
        let apart = self.policy.metric().map_or(u64::MAX, |tau| {
            ((Tau::DENOMINATOR - tau.numerator()) * PARTS).div_ceil(Tau::DENOMINATOR)
        });
        let mut centers: HashMap<usize, u64> = HashMap::new();
        let keys = std::mem::take(&mut self.keys);
        let mut last_compared = vec![None; self.rays.len()];
        // Keys whose contents are all in one component.
        let mut is_connected = vec![false; keys.len()];
        for number in 0..self.rays.len() {
            let Some(signature) = self.comparable(number)? else { continue };
            centers.clear();
            for key in self.keys_of(&signature) {
                let Some(at) = keys.find(key).filter(|at| !is_connected[*at]) else { continue };
                let known = (&mut centers, &mut *last_compared);
                is_connected[at] = self.link_by_key(number, &signature, keys.contents(at), apart, known)?;
            }
        }
        Ok(())
    }

    /// Joins the star of a content with the stars of `others`, which share a key with the content, if they
    /// are linked. `apart` is the distance from which on two contents are not linked. `centers` has lower
    /// bounds of the content's distance to other centers. `last_compared` names, for each other content, the
    /// last content that it was compared with. Returns whether all these stars are in one component now.
    fn link_by_key(
        &mut self,
        number: usize,
        signature: &Signature,
        others: &[u32],
        apart: u64,
        (centers, last_compared): (&mut HashMap<usize, u64>, &mut [Option<usize>]),
    ) -> Result<bool, E> {
        let Some(own) = self.rays[number] else { return Ok(false) };
        let mut is_connected = true;
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
                // Without a metric, the center's distance excludes no content.
                None if self.policy.metric().is_none() => 0,
                None => {
                    let at_least = match self.distance_by_bitmaps(number, center) {
                        Some(distance) => distance,
                        None => match self.cache.get(center)? {
                            // The center's signature is gone: no content of the star is excluded.
                            None => 0,
                            Some(candidate) => {
                                let comparison = self.policy.compare(signature, &candidate);
                                if comparison.similar && self.policy.linked(signature, &candidate) {
                                    self.linked.union(own.center, center);
                                    continue;
                                }
                                // If the two are similar but share no key, no content is excluded, either.
                                if comparison.similar { 0 } else { comparison.similarity.distance(PARTS).0 }
                            }
                        },
                    };
                    centers.insert(center, at_least);
                    at_least
                }
            };
            for &other in star {
                let other = other as usize;
                let far = self.rays[other].map_or(0, |ray| ray.distance);
                if to_center.saturating_sub(far) >= apart {
                    // The remaining contents are nearer to their center, so they are excluded as well.
                    break;
                }
                // A pair is compared when it is the turn of the content with the smaller number.
                if other < number
                    || last_compared[other] == Some(number)
                    || !self.may_be_similar(number, other)
                {
                    continue;
                }
                last_compared[other] = Some(number);
                let Some(candidate) = self.cache.get(other)? else { continue };
                if self.policy.similar(signature, &candidate) {
                    self.linked.union(own.center, center);
                    break;
                }
            }
            is_connected &= self.linked.root(center) == self.linked.root(own.center);
        }
        Ok(is_connected)
    }

    /// Returns the components: first the component of `first`, then by descending size and by number.
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
