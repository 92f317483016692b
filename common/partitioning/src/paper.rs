//! The mapping of the paper on incremental two-tier clustering, for comparison and for similarities other
//! than Jaccard's.
//!
//! The dictionary is divided into N sub-dictionaries of about equal weight; a content has a length in each.
//! Every dimension is cut for itself: into fine intervals whose ends have the ratio tau (Theobald, Siddharth,
//! Paepcke: "SpotSigs", SIGIR 2008), which are merged into coarse ones of about equal shares. The grid of
//! coarse intervals has a box for each node. A content of lengths L_i is stored in the box of its lengths and
//! compared in all that meet (L_i tau / rho, L_i rho / tau).
//!
//! What differs from the paper, and why:
//! - Lengths are numbers of distinct shingles by their first word, not of tokens: stored signatures give
//!   those.
//! - A length of 0 counts as 1 in a bound. Taken literally its interval is empty, and the content would not
//!   be compared even with a copy of itself. The same for both contents of a pair, so the relation stays
//!   symmetric.
//!
//! **Pairs may be lost** where N > 1: a near-duplicate may differ in one sub-dictionary alone, and by more
//! than rho allows there. For N = 1 and rho = 1 the interval is the exact one of the Jaccard coefficient.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::str::FromStr;

use serde::Serialize;

use super::{DIMENSIONS_MAX, MappingError, MappingLoad, NODES_MAX};
use doppel_model::Tau;
use doppel_model::signature::{BUCKETS, Signature, bucket};

/// The most that rho may be.
const RHO_MAX: f64 = 10.0;

/// By how much the interval of a length is wider than tau alone makes it, at each end; from 1 to 10.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Rho(f64);

impl Rho {
    /// From the tolerances it is made of, by our reading: near-duplicates may be less alike in one
    /// sub-dictionary than as a whole, with a coefficient of tau (1 - delta) there, and a length may be wrong
    /// by a share epsilon of it. So rho is (1 + epsilon) / (1 - epsilon) / (1 - delta).
    ///
    /// # Errors
    /// When that is not from 1 to 10.
    pub fn of(delta: f64, epsilon: f64) -> Result<Self, MappingError> {
        Self::new((1.0 + epsilon) / (1.0 - epsilon) / (1.0 - delta))
    }

    /// Rho itself.
    ///
    /// # Errors
    /// When it is not from 1 to 10.
    pub fn new(rho: f64) -> Result<Self, MappingError> {
        if (1.0..=RHO_MAX).contains(&rho) { Ok(Self(rho)) } else { Err(MappingError::Rho(rho.to_string())) }
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Rho {
    type Err = MappingError;

    fn from_str(text: &str) -> Result<Self, MappingError> {
        text.parse().map_err(|_| MappingError::Rho(text.to_owned())).and_then(Self::new)
    }
}

/// Distinct shingles of a content in each sub-dictionary of a [`PaperMap`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PaperLengths([u32; DIMENSIONS_MAX]);

/// A grid of boxes, one per node.
///
/// ```
/// use doppel_partitioning::{PaperMap, Rho};
/// use doppel_model::Tau;
/// use doppel_model::signature::Builder;
///
/// let contents: Vec<_> = (10..300).map(|n| Builder::new().build(&vec![n << 52; n as usize])).collect();
/// let map = PaperMap::learn(&contents, 4, Tau::DEFAULT, 2, Rho::new(1.1)?)?;
/// let lengths = map.lengths(&contents[0]);
/// let mut probed_nodes = Vec::new();
/// map.probed_nodes(&lengths, &mut probed_nodes);
/// assert!(probed_nodes.contains(&map.home(&lengths)));
/// # Ok::<(), doppel_partitioning::MappingError>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PaperMap {
    tau: Tau,
    rho: Rho,
    /// Sub-dictionary of each bucket of first words.
    sub_dictionaries: Vec<u8>,
    /// For each dimension the first lengths of all coarse intervals but the first, ascending.
    cuts: Vec<Vec<u32>>,
    /// For each dimension the number of coarse intervals wanted.
    intervals: Vec<u32>,
}

impl PaperMap {
    /// A grid of `nodes` boxes for collections like `sample`. Boxes stay empty where a dimension has fewer
    /// fine intervals than are wanted, and where no content has such lengths. A function of its arguments
    /// alone.
    ///
    /// # Errors
    /// When `nodes` or `dimensions` is out of range.
    pub fn learn<S: Borrow<Signature>>(
        sample: &[S],
        nodes: u32,
        tau: Tau,
        dimensions: usize,
        rho: Rho,
    ) -> Result<Self, MappingError> {
        if !(1..=NODES_MAX).contains(&nodes) {
            return Err(MappingError::Nodes(nodes));
        }
        if !(1..=DIMENSIONS_MAX).contains(&dimensions) {
            return Err(MappingError::Dimensions(dimensions));
        }
        let intervals = sides(nodes, dimensions);
        let sub_dictionaries = balanced(sample, dimensions);
        let mut map = Self { tau, rho, sub_dictionaries, cuts: Vec::new(), intervals };
        let lengths: Vec<PaperLengths> = sample.iter().map(|s| map.lengths(s.borrow())).collect();
        let cuts = |(dimension, parts): (usize, &u32)| {
            coarse(lengths.iter().map(|lengths| lengths.0[dimension]).collect(), *parts, tau)
        };
        map.cuts = map.intervals.iter().enumerate().map(cuts).collect();
        Ok(map)
    }

    /// Number of sub-dictionaries.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.intervals.len()
    }

    /// Number of boxes, and of nodes.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.intervals.iter().product()
    }

    /// The lengths of a content.
    #[must_use]
    pub fn lengths(&self, signature: &Signature) -> PaperLengths {
        let mut lengths = [0; DIMENSIONS_MAX];
        for hash in signature.set() {
            lengths[usize::from(self.sub_dictionaries[bucket(hash)])] += 1;
        }
        PaperLengths(lengths)
    }

    /// The node that stores contents of these lengths.
    #[must_use]
    pub fn home(&self, lengths: &PaperLengths) -> u32 {
        let sides = self.cuts.iter().zip(&self.intervals).zip(lengths.0);
        sides.fold(0, |home, ((cuts, count), length)| home * count + interval(cuts, length))
    }

    /// Writes the nodes that contents of these lengths are compared on to `out`, ascending.
    pub fn probed_nodes(&self, lengths: &PaperLengths, out: &mut Vec<u32>) {
        out.clear();
        out.push(0);
        for ((cuts, count), length) in self.cuts.iter().zip(&self.intervals).zip(lengths.0) {
            let (least, most) = self.partners(length);
            let (first, last) = (interval(cuts, least), interval(cuts, most));
            let before = out.len();
            for i in 0..before {
                let row = out[i] * count;
                out.extend(row + first..=row + last);
            }
            out.drain(..before);
        }
    }

    /// Least and greatest length of a partner.
    fn partners(&self, length: u32) -> (u32, u32) {
        let wide = self.rho.get() / self.tau.as_f64();
        let known = f64::from(length.max(1));
        // The integers inside an open interval.
        let (least, most) = ((known / wide).floor() + 1.0, (known * wide).ceil() - 1.0);
        (if length <= 1 { 0 } else { least as u32 }, most as u32)
    }

    /// What the map makes of contents of these lengths, by node.
    #[must_use]
    pub fn measure(&self, lengths: &[PaperLengths]) -> MappingLoad {
        let zero = vec![0; self.nodes() as usize];
        let mut load = MappingLoad { stored: zero.clone(), received: zero };
        let mut probed_nodes = Vec::new();
        for lengths in lengths {
            load.stored[self.home(lengths) as usize] += 1;
            self.probed_nodes(lengths, &mut probed_nodes);
            probed_nodes.iter().for_each(|node| load.received[*node as usize] += 1);
        }
        load
    }
}

/// The sides of a grid of so many boxes, as equal as its prime factors allow, the longest first.
fn sides(boxes: u32, dimensions: usize) -> Vec<u32> {
    let mut factors = Vec::new();
    let (mut rest, mut factor) = (boxes, 2);
    while rest > 1 {
        while rest.is_multiple_of(factor) {
            factors.push(factor);
            rest /= factor;
        }
        factor += 1;
    }
    let mut sides = vec![1; dimensions];
    for factor in factors.into_iter().rev() {
        if let Some(shortest) = sides.iter_mut().min() {
            *shortest *= factor;
        }
    }
    sides.sort_unstable_by_key(|side| Reverse(*side));
    sides
}

/// A sub-dictionary for each bucket, so that all have about the same number of the sample's shingles: the
/// heaviest bucket first, each to the lightest one.
fn balanced<S: Borrow<Signature>>(sample: &[S], dimensions: usize) -> Vec<u8> {
    let mut counts = vec![0_u64; BUCKETS];
    for hash in sample.iter().flat_map(|signature| signature.borrow().set()) {
        counts[bucket(hash)] += 1;
    }
    let mut order: Vec<usize> = (0..BUCKETS).collect();
    order.sort_by_key(|bucket| Reverse(counts[*bucket]));
    let mut lightest: BinaryHeap<Reverse<(u64, u8)>> =
        (0..dimensions as u8).map(|sub| Reverse((0, sub))).collect();
    let mut table = vec![0; BUCKETS];
    for bucket in order {
        if let Some(Reverse((weight, sub))) = lightest.pop() {
            table[bucket] = sub;
            // A bucket that the sample does not have weighs a little, so that these are dealt out, too.
            lightest.push(Reverse((weight + counts[bucket].max(1), sub)));
        }
    }
    table
}

/// The first lengths of at most `parts` coarse intervals but the first: those beginnings of fine intervals
/// before which the contents are nearest to each multiple of an equal share.
fn coarse(mut lengths: Vec<u32>, parts: u32, tau: Tau) -> Vec<u32> {
    lengths.sort_unstable();
    let longest = lengths.last().copied().unwrap_or(0);
    let below = |length: u32| lengths.partition_point(|known| *known < length) as f64;
    let mut fine = vec![1];
    while let Some(begin) = fine.last().copied().filter(|begin| *begin < longest) {
        fine.push(((f64::from(begin) / tau.as_f64()) as u32).max(begin + 1));
    }
    let share = lengths.len() as f64 / f64::from(parts);
    let off = |begin: u32, part: u32| (below(begin) - share * f64::from(part)).abs();
    let nearest = |part| fine.iter().copied().min_by(|a, b| off(*a, part).total_cmp(&off(*b, part)));
    let mut cuts: Vec<u32> = (1..parts).filter_map(nearest).collect();
    cuts.dedup();
    cuts
}

/// The number of the interval that holds a length.
fn interval(cuts: &[u32], length: u32) -> u32 {
    cuts.partition_point(|cut| *cut <= length) as u32
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use doppel_model::signature::Builder;

    fn pages() -> impl Strategy<Value = Vec<Signature>> {
        let page = prop_oneof![vec(0u64..400, 0..200), vec(0u64..3, 0..30)];
        let build = |pages: Vec<Vec<u64>>| {
            let signature = |words: &Vec<u64>| {
                let tokens: Vec<u64> = words.iter().map(|word| (word % 300 + 1) << 52 | word).collect();
                Builder::new().build(&tokens)
            };
            pages.iter().map(signature).collect()
        };
        vec(page, 1..40).prop_map(build)
    }

    fn rhos() -> impl Strategy<Value = Rho> {
        prop::sample::select(vec![1.0, 1.1, 1.3]).prop_map(|rho| Rho::new(rho).unwrap())
    }

    proptest! {
        /// Against the definition: two contents meet if all lengths are inside the open intervals.
        #[test]
        fn probed_partitions_are_the_boxes_of_the_intervals(
            contents in pages(),
            nodes in 1u32..70,
            dimensions in 1usize..=4,
            rho in rhos(),
        ) {
            let map = PaperMap::learn(&contents, nodes, Tau::DEFAULT, dimensions, rho).unwrap();
            prop_assert_eq!(map.nodes(), nodes);
            let lengths: Vec<PaperLengths> = contents.iter().map(|s| map.lengths(s)).collect();
            let wide = rho.get() / 0.8;
            let mut probed_nodes = Vec::new();
            for (a, signature) in lengths.iter().zip(&contents) {
                prop_assert_eq!(a.0.iter().sum::<u32>(), signature.shingles());
                map.probed_nodes(a, &mut probed_nodes);
                prop_assert!(probed_nodes.is_sorted_by(|a, b| a < b) && probed_nodes.contains(&map.home(a)));
                prop_assert!(probed_nodes.iter().all(|node| *node < nodes));
                for b in &lengths {
                    let inside = a.0.iter().zip(&b.0).all(|(a, b)| {
                        let (a, b) = (f64::from((*a).max(1)), f64::from((*b).max(1)));
                        b > a / wide + 1e-9 && b < a * wide - 1e-9
                    });
                    prop_assert!(!inside || probed_nodes.contains(&map.home(b)), "{:?} {:?}", a, b);
                }
            }
        }

        /// In one dimension rho = 1 is the exact bound.
        #[test]
        fn one_dimension_loses_nothing(contents in pages(), nodes in 1u32..70, rho in rhos()) {
            let map = PaperMap::learn(&contents, nodes, Tau::DEFAULT, 1, rho).unwrap();
            let mut probed_nodes = Vec::new();
            for a in &contents {
                map.probed_nodes(&map.lengths(a), &mut probed_nodes);
                for b in &contents {
                    if Tau::DEFAULT.exceeded_by(a.shared_with(b).into(), a.shingles().into(), b.shingles().into()) {
                        prop_assert!(probed_nodes.contains(&map.home(&map.lengths(b))));
                    }
                }
            }
        }
    }

    #[test]
    fn an_empty_sub_document_is_compared_with_its_like() {
        let contents: Vec<Signature> =
            (1..300_u64).map(|n| Builder::new().build(&vec![1 << 52 | n; 40])).collect();
        let map = PaperMap::learn(&contents, 64, Tau::DEFAULT, 3, Rho::new(1.0).unwrap()).unwrap();
        assert_eq!((map.partners(0), map.partners(1), map.partners(4)), ((0, 1), (0, 1), (4, 4)));
        let mut probed_nodes = Vec::new();
        let lengths = map.lengths(&contents[0]);
        map.probed_nodes(&lengths, &mut probed_nodes);
        assert!(probed_nodes.contains(&map.home(&lengths)));
    }

    #[test]
    fn grids_and_fine_intervals() {
        assert_eq!(sides(64, 3), [4, 4, 4]);
        assert_eq!(sides(16, 3), [4, 2, 2]);
        assert_eq!((sides(7, 2), sides(1, 2), sides(12, 1)), (vec![7, 1], vec![1, 1], vec![12]));
        // From 8 on an interval ends at the beginning over tau.
        let cuts = coarse((0..100).collect(), 100, Tau::DEFAULT);
        assert_eq!(cuts[..10], [1, 2, 3, 4, 5, 6, 7, 8, 10, 12]);
        assert_eq!(coarse(vec![5; 10], 4, Tau::DEFAULT).len(), 1);
        assert!(coarse(Vec::new(), 4, Tau::DEFAULT).len() < 4);
    }

    #[test]
    fn parameters_are_checked() {
        let rho = Rho::new(1.1).unwrap();
        let learn = |nodes, dimensions| {
            PaperMap::learn::<Signature>(&[], nodes, Tau::DEFAULT, dimensions, rho).map(|map| map.nodes())
        };
        assert_eq!(learn(0, 3), Err(MappingError::Nodes(0)));
        assert_eq!(learn(3, 9), Err(MappingError::Dimensions(9)));
        assert_eq!(learn(6, 2), Ok(6));
        for wrong in ["0.9", "11", "NaN", "x"] {
            assert_eq!(wrong.parse::<Rho>(), Err(MappingError::Rho(wrong.to_owned())));
        }
        assert!((Rho::of(0.1, 0.02).unwrap().get() - 1.02 / 0.98 / 0.9).abs() < 1e-12);
        assert!(Rho::of(1.0, 0.0).is_err());
    }
}
