//! Compares the contents of a large run by their differences from the template of their family.
//!
//! A run whose contents are mostly unlinked would be compared pair by pair. Instead, the run is cut into
//! *lists*: the contents that have a difference in common. Prefix filtering limits the differences of a
//! content that count (see [`family`](crate::family)). A list is compared like a run. If that costs too much,
//! the list is cut again by the next difference that its contents have in common. Contents that need no
//! common difference to be near-duplicates meet in the list of [`END`].
//!
//! Let x and y differ from the template in dx and dy hashes, and let k be the most hashes in which
//! near-duplicates of their sizes may differ. They are near-duplicates if and only if they have c = (dx + dy -
//! k) / 2 differences in common, rounded up.
//!
//! Invariant: a pair is compared in exactly one list, that of its first common differences. The lists
//! together compare every pair that may be linked.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use doppel_model::Tau;
use doppel_model::parity;
use doppel_model::signature::Signature;
use rayon::prelude::*;

use super::{SortEntry, Turn};
use crate::family::{Difference, END, FamilyOrder};
use crate::trees::{Tree, Visits};

/// Number of contents from which the order of a family is learned.
const SAMPLE: usize = 512;

/// How often a list is cut again: the largest number of common differences that name a list.
const DEPTH_MAX: usize = 3;

/// Number of entries that are sorted at a time. More are sorted in several passes, so that memory stays
/// bounded.
const ENTRIES_MAX: usize = 1 << 22;

/// A run, with the differences of its contents.
pub(crate) struct Refinement<'t, 'b, E> {
    turn: &'t Turn<'b, E>,
    key: u32,
    tau: Tau,
    /// The most hashes in which any member may differ from a near-duplicate in this run.
    differing_max: u32,
    /// The contents of the run, those with fewest differences first.
    members: Vec<Member>,
    /// The first differences of all members, one member after the other.
    differences: Vec<Difference>,
}

/// A content of the run.
#[derive(Clone, Copy)]
struct Member {
    content: SortEntry,
    /// Number of its differences.
    count: u32,
    /// The most hashes in which it may differ from a near-duplicate in this run.
    differing_max: u32,
    /// Index of its first difference in `differences`.
    start: usize,
}

/// An entry of a list: a member, and the position among its differences of the one that names the list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    difference: Difference,
    /// Index of the member.
    member: u32,
    position: u32,
}

impl<'t, 'b, E: Send + Sync> Refinement<'t, 'b, E> {
    /// Connects the linked contents of a run.
    pub(crate) fn connect(turn: &'t Turn<'b, E>, tau: Tau, run: &[SortEntry]) -> Result<(), E> {
        let step = run.len().div_ceil(SAMPLE);
        let sample: Vec<Arc<Signature>> =
            run.iter().step_by(step).map(|entry| (turn.read)(entry.content)).collect::<Result<_, _>>()?;
        let order = FamilyOrder::learn(sample.iter().map(|signature| &**signature));
        let size_max = run.last().map_or(0, |entry| entry.size);
        let of = |entry: &SortEntry| {
            let mut differences = Vec::new();
            order.differences(&*(turn.read)(entry.content)?, &mut differences);
            let count = differences.len() as u32;
            let differing_max =
                differing_max(tau, entry.size, largest_partner(tau, entry.size).min(size_max));
            // Positions beyond are in no list, whatever the partner.
            differences.truncate(differing_max as usize + 1 + DEPTH_MAX);
            differences.shrink_to_fit();
            Ok((Member { content: *entry, count, differing_max, start: 0 }, differences))
        };
        let mut all: Vec<(Member, Vec<Difference>)> = run.par_iter().map(of).collect::<Result<_, E>>()?;
        all.par_sort_unstable_by_key(|(member, _)| (member.count, member.content.content));
        let mut this = Self {
            turn,
            key: run[0].key,
            tau,
            differing_max: all.iter().map(|(member, _)| member.differing_max).max().unwrap_or(0),
            members: Vec::with_capacity(all.len()),
            differences: Vec::with_capacity(all.iter().map(|(_, differences)| differences.len()).sum()),
        };
        for (mut member, differences) in all {
            member.start = this.differences.len();
            this.members.push(member);
            this.differences.extend(differences);
        }
        let whole: Vec<Entry> =
            (0..run.len() as u32).map(|member| Entry { difference: 0, member, position: u32::MAX }).collect();
        this.cut(&whole, 0)
    }

    /// Cuts a list by the next difference of its members, and connects the linked members of each new list.
    /// The members have `depth` differences in common up to the positions of the list.
    fn cut(&self, list: &[Entry], depth: usize) -> Result<(), E> {
        let Some(least) = list.first().map(|entry| self.members[entry.member as usize].count) else {
            return Ok(());
        };
        let total: usize = list.par_iter().map(|entry| self.prefix(*entry, least, depth).len()).sum();
        let passes = total.div_ceil(ENTRIES_MAX).max(1) as u64;
        for pass in 0..passes {
            let mut entries: Vec<Entry> = list
                .par_iter()
                .flat_map_iter(|entry| {
                    let member = entry.member;
                    self.prefix(*entry, least, depth).map(move |position| Entry {
                        difference: self.difference(member, position),
                        member,
                        position,
                    })
                })
                .filter(|entry| entry.difference % passes == pass)
                .collect();
            entries.par_sort_unstable();
            let lists: Vec<&[Entry]> =
                entries.chunk_by(|a, b| a.difference == b.difference).filter(|list| list.len() > 1).collect();
            lists.par_iter().try_for_each(|list| self.connect_list(list, depth))?;
        }
        Ok(())
    }

    /// The positions of a member's differences that count after the one of `entry`, if no member of the list
    /// has fewer than `least` differences.
    fn prefix(&self, entry: Entry, least: u32, depth: usize) -> std::ops::Range<u32> {
        let Member { count, differing_max, .. } = self.members[entry.member as usize];
        // Of all partners with at most as many differences, that with the fewest needs the fewest in common.
        let fewest = least.max(count.saturating_sub(differing_max));
        let common = (count + fewest).saturating_sub(differing_max).div_ceil(2);
        let first = entry.position.wrapping_add(1);
        let end = (count + depth as u32 + 1).saturating_sub(common).min(count + 1);
        first..end.max(first)
    }

    /// A difference of a member by its position, or [`END`] after the last one.
    fn difference(&self, member: u32, position: u32) -> Difference {
        let Member { count, start, .. } = self.members[member as usize];
        if position == count { END } else { self.differences[start + position as usize] }
    }

    /// Compares the members of a list, and connects those that are linked. Before the difference that names
    /// the list, its members have `depth` others in common.
    fn connect_list(&self, list: &[Entry], depth: usize) -> Result<(), E> {
        let mut trees: Vec<Tree<Entry>> = Vec::new();
        let mut visits = Visits::default();
        for (number, entry) in list.iter().enumerate() {
            if self.turn.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let member = self.members[entry.member as usize];
            // Members come with ascending numbers of differences, so a tree that has too few stays so.
            let fewest = member.count.saturating_sub(self.differing_max);
            trees.retain(|tree| {
                tree.last().is_some_and(|last| self.members[last.member as usize].count >= fewest)
            });
            // A partner with more differences needs more of them in common than can follow this position.
            let position = i64::from(entry.position) - depth as i64;
            let most = i64::from(member.count) + i64::from(member.differing_max) - 2 * position;
            let signature = std::sync::OnceLock::new();
            let mut merged = Tree::default();
            let mut failure = None;
            trees.retain_mut(|tree| {
                if failure.is_some() {
                    return true;
                }
                match self.connect_to_tree(*entry, depth, (fewest, most), &signature, tree, &mut visits) {
                    Ok(true) => {
                        merged.absorb(tree);
                        false
                    }
                    Ok(false) => true,
                    Err(error) => {
                        failure = Some(error);
                        true
                    }
                }
            });
            if let Some(error) = failure {
                return Err(error);
            }
            // A member that comes later has at least as many differences.
            if i64::from(member.differing_max / 2) >= position {
                merged.push(*entry);
            }
            if merged.last().is_some() {
                trees.push(merged);
            }
            if entry.difference != END
                && depth < DEPTH_MAX
                && visits.are_too_many(self.turn.columns.visit_limit, number)
            {
                return self.cut(list, depth + 1);
            }
        }
        Ok(())
    }

    /// Connects a member to a tree if a member of the tree is linked to it. Returns whether they are connected
    /// now. Only members with a number of differences within the bounds are compared.
    fn connect_to_tree(
        &self,
        entry: Entry,
        depth: usize,
        (fewest, most): (u32, i64),
        signature: &std::sync::OnceLock<Arc<Signature>>,
        tree: &Tree<Entry>,
        visits: &mut Visits,
    ) -> Result<bool, E> {
        let Some(first) = tree.first() else { return Ok(false) };
        let x = self.members[entry.member as usize];
        let connected = self.turn.connected;
        let content_of = |entry: Entry| self.members[entry.member as usize].content.content;
        if connected.root(content_of(first)) == connected.root(x.content.content) {
            return Ok(true);
        }
        for list in tree.lists() {
            let end =
                list.partition_point(|other| i64::from(self.members[other.member as usize].count) <= most);
            for other in list[..end].iter().rev() {
                let y = self.members[other.member as usize];
                if y.count < fewest {
                    break;
                }
                visits.add(1);
                if !self.may_be_linked(entry, &x, *other, &y, depth) {
                    continue;
                }
                let signature = match signature.get() {
                    Some(signature) => signature,
                    None => {
                        let read = (self.turn.read)(x.content.content)?;
                        signature.get_or_init(|| read)
                    }
                };
                let policy = self.turn.columns.policy;
                if policy.compare(signature, &*(self.turn.read)(y.content.content)?).similar {
                    connected.union(x.content.content, y.content.content);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether two members of a list can be linked, and have no earlier list or run in common. `y` has at most
    /// as many differences as `x`.
    fn may_be_linked(&self, entry: Entry, x: &Member, other: Entry, y: &Member, depth: usize) -> bool {
        let sum = u64::from(x.content.size) + u64::from(y.content.size);
        let Some(differing_max) = self.tau.differing_max(sum) else { return false };
        let differing_max = differing_max as u32;
        if x.count - y.count > differing_max {
            return false;
        }
        let common = (x.count + y.count).saturating_sub(differing_max).div_ceil(2);
        let rest = (x.count - entry.position).min(y.count - other.position);
        if depth as u32 + rest < common {
            return false;
        }
        let columns = self.turn.columns;
        let differing =
            parity::differing(columns.bitmap(x.content.content), columns.bitmap(y.content.content));
        differing <= differing_max
            && self.common_before(entry, other) == depth
            && !self.turn.is_earlier_candidate(SortEntry { key: self.key, ..x.content }, y.content.content)
    }

    /// Number of differences that two members have in common before those that name their list.
    fn common_before(&self, a: Entry, b: Entry) -> usize {
        let before = |entry: Entry| {
            let start = self.members[entry.member as usize].start;
            &self.differences[start..start + entry.position as usize]
        };
        let (a, b) = (before(a), before(b));
        let (mut at_a, mut at_b, mut common) = (0, 0, 0);
        while at_a < a.len() && at_b < b.len() {
            let (of_a, of_b) = (a[at_a], b[at_b]);
            at_a += usize::from(of_a <= of_b);
            at_b += usize::from(of_b <= of_a);
            common += usize::from(of_a == of_b);
        }
        common
    }
}

/// The most hashes in which near-duplicates of sizes `a` and `b` may differ.
fn differing_max(tau: Tau, a: u32, b: u32) -> u32 {
    tau.differing_max(u64::from(a) + u64::from(b)).unwrap_or(0).min(u64::from(u32::MAX)) as u32
}

/// The size of the largest set that can be a near-duplicate of a set of `size` hashes.
fn largest_partner(tau: Tau, size: u32) -> u32 {
    (u64::from(size) * Tau::DENOMINATOR / tau.numerator()).min(u64::from(u32::MAX)) as u32
}
