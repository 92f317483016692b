//! Compares the contents of a run by their differences from the template of their family.
//!
//! A run whose contents are mostly unlinked would be compared pair by pair. Instead, a refinement splits the
//! run into *lists*: the contents that have a difference in common. Prefix filtering limits the differences of
//! a content that count (see [`family`](doppel_model::pairwise::family)). A list is compared like a run, and is
//! split again by the next difference that its contents have in common if the pairs of the list cost too much.
//! Contents that need no common difference to be near-duplicates meet in the list of [`END`].
//!
//! Let x and y differ from the template in dx and dy hashes, and let k be the most hashes in which
//! near-duplicates of their sizes may differ. They are near-duplicates if and only if they have c = (dx + dy -
//! k) / 2 differences in common, rounded up.
//!
//! The refinement of some families costs more than their pairs, so every refinement has a [`Budget`]. One that
//! does not suffice leaves pairs uncompared, and the caller goes on to compare all pairs.
//!
//! Invariant: the lists together compare every pair that may be linked, and each pair in only one list, that of
//! its first common differences. A pair is compared again only after a refinement has given up.

mod partners;

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use doppel_model::Tau;
use doppel_model::pairwise::family::{Difference, END, FamilyOrder, differing_max, largest_partner};
use doppel_model::parity;
use doppel_model::signature::Signature;
use rayon::prelude::*;

use super::{SortEntry, Turn};
use crate::budget::{Budget, Trials};
use crate::trees::Tree;
use partners::Partners;

/// Number of contents from which the order of a family is learned.
const SAMPLE: usize = 512;

/// Number of hashes from which the order of a family is learned. It bounds memory if contents are long.
const SAMPLE_HASHES: usize = 1 << 20;

/// How often a list is split again: the largest number of common differences that name a list.
const DEPTH_MAX: usize = 3;

/// Number of entries that are sorted at a time. More are sorted in several passes, so that memory stays
/// bounded.
const ENTRIES_MAX: usize = 1 << 22;

/// The refinement of one run, which is prepared when it is first tried.
pub(super) enum RunRefinement<'t, 'b, E> {
    Untried,
    Prepared(Refinement<'t, 'b, E>),
    /// The policy has no metric, or the differences need too much memory.
    Impossible,
}

impl<'t, 'b, E: Send + Sync> RunRefinement<'t, 'b, E> {
    /// Connects the linked contents of a run. Gives up after about `visits` visits. Returns whether they
    /// sufficed.
    pub(super) fn connect(
        &mut self,
        turn: &'t Turn<'b, E>,
        run: &[SortEntry],
        visits: u64,
    ) -> Result<bool, E> {
        if matches!(self, Self::Untried) {
            *self = Refinement::prepare(turn, run)?.map_or(Self::Impossible, Self::Prepared);
        }
        match self {
            Self::Prepared(refinement) => refinement.connect(&Budget::new(visits)),
            _ => Ok(false),
        }
    }
}

/// A run, with the differences of its contents.
pub(super) struct Refinement<'t, 'b, E> {
    turn: &'t Turn<'b, E>,
    tau: Tau,
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
    /// Finds the differences of the contents of a run. Returns `None` if the policy has no metric, or if the
    /// differences need too much memory.
    fn prepare(turn: &'t Turn<'b, E>, run: &[SortEntry]) -> Result<Option<Self>, E> {
        let (Some(tau), Some(last)) = (turn.columns.policy.metric(), run.last()) else { return Ok(None) };
        let mut this = Self { turn, tau, members: Vec::new(), differences: Vec::new() };
        let order = this.learn(run)?;
        let of = |entry: &SortEntry| {
            let size_max = largest_partner(tau, entry.size).min(last.size);
            let differing_max = differing_max(tau, entry.size, size_max);
            let mut differences = Vec::new();
            if turn.differences.left() > 0 {
                order.differences(&*(turn.read)(entry.content)?, &mut differences);
            }
            let count = differences.len() as u32;
            // No prefix is longer, whatever the partner.
            differences.truncate(differing_max as usize + 1 + DEPTH_MAX);
            differences.shrink_to_fit();
            turn.differences.spend(differences.len() as u64);
            Ok((Member { content: *entry, count, differing_max, start: 0 }, differences))
        };
        let mut all: Vec<(Member, Vec<Difference>)> = run.par_iter().map(of).collect::<Result<_, E>>()?;
        let held = all.iter().map(|(_, differences)| differences.len()).sum();
        if turn.differences.left() == 0 {
            turn.differences.give_back(held as u64);
            return Ok(None);
        }
        all.par_sort_unstable_by_key(|(member, _)| (member.count, member.content.content));
        this.members.reserve_exact(all.len());
        this.differences.reserve_exact(held);
        for (mut member, differences) in all {
            member.start = this.differences.len();
            this.members.push(member);
            this.differences.extend(differences);
        }
        Ok(Some(this))
    }

    /// Learns the template and the order of the family from a sample of the run.
    fn learn(&self, run: &[SortEntry]) -> Result<FamilyOrder, E> {
        let mut sample: Vec<Arc<Signature>> = Vec::new();
        let mut hashes = 0;
        for entry in run.iter().step_by(run.len().div_ceil(SAMPLE)) {
            hashes += entry.size as usize;
            if hashes > SAMPLE_HASHES && !sample.is_empty() {
                break;
            }
            sample.push((self.turn.read)(entry.content)?);
        }
        Ok(FamilyOrder::learn(sample.iter().map(|signature| &**signature)))
    }

    /// Connects the linked contents of the run. Returns whether the budget sufficed.
    fn connect(&self, budget: &Budget) -> Result<bool, E> {
        let whole: Vec<Entry> = (0..self.members.len() as u32)
            .map(|member| Entry { difference: 0, member, position: u32::MAX })
            .collect();
        self.split(&whole, 0, budget)
    }

    /// Splits a list by the next difference of its members, and connects the linked members of each new list.
    /// The members have `depth` differences in common up to the positions of the list. Returns whether the
    /// budget sufficed.
    fn split(&self, list: &[Entry], depth: usize, budget: &Budget) -> Result<bool, E> {
        let Some(least) = list.first().map(|entry| self.members[entry.member as usize].count) else {
            return Ok(true);
        };
        let total: usize = list.par_iter().map(|entry| self.prefix(*entry, least, depth).len()).sum();
        if !budget.spend(total as u64) {
            return Ok(false);
        }
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
            let connect = |list: &&[Entry]| self.connect_list(list, depth, budget);
            let suffices = lists.par_iter().map(connect).try_reduce(|| true, |a, b| Ok(a && b))?;
            if !suffices {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The positions of a member's differences that count after the one of `entry`, if no member of the list
    /// has fewer than `least` differences.
    fn prefix(&self, entry: Entry, least: u32, depth: usize) -> Range<u32> {
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
    /// the list, its members have `depth` others in common. Returns whether the budget sufficed.
    fn connect_list(&self, list: &[Entry], depth: usize, budget: &Budget) -> Result<bool, E> {
        let mut trees: Vec<ListTree> = Vec::new();
        let mut trials = Trials::new(self.turn.columns.limits, list.len(), 0);
        for entry in list {
            if self.turn.stop.load(Ordering::Relaxed) {
                return Ok(true);
            }
            let member = self.members[entry.member as usize];
            // Members come with ascending numbers of differences, so a tree that is out of reach stays so.
            trees.retain(|tree| tree.reach >= i64::from(member.count));
            let reach = self.reach(*entry, depth);
            let mut partners = Partners {
                refinement: self,
                entry: *entry,
                depth,
                count_min: member.count.saturating_sub(member.differing_max),
                count_max: reach,
                // The scan of a tree is a visit, too.
                visits: trees.iter().map(|tree| tree.tree.lists().len() as u64).sum(),
                signature: OnceLock::new(),
            };
            let mut merged = ListTree { tree: Tree::default(), reach };
            let mut failure = None;
            trees.retain_mut(|tree| {
                let is_linked = failure.is_none()
                    && partners.connect_to_tree(&tree.tree).unwrap_or_else(|error| {
                        failure = Some(error);
                        false
                    });
                if is_linked {
                    merged.tree.absorb(&mut tree.tree);
                    merged.reach = merged.reach.max(tree.reach);
                }
                !is_linked
            });
            if let Some(error) = failure {
                return Err(error);
            }
            if reach >= i64::from(member.count) {
                merged.tree.push(*entry);
            }
            if !merged.tree.is_empty() {
                trees.push(merged);
            }
            if !budget.spend(1 + partners.visits) {
                return Ok(false);
            }
            trials.add(partners.visits);
            if entry.difference != END
                && depth < DEPTH_MAX
                && let Some(visits) = trials.due()
            {
                let part = Budget::new(visits.min(budget.left()));
                let suffices = self.split(list, depth + 1, &part)?;
                budget.spend(part.spent());
                if suffices {
                    return Ok(true);
                }
            }
        }
        Ok(true)
    }

    /// The most differences that a partner of an entry can have. The partner needs more differences in common,
    /// the more it has, and they must follow the position of the entry.
    fn reach(&self, entry: Entry, depth: usize) -> i64 {
        let Member { count, differing_max, .. } = self.members[entry.member as usize];
        i64::from(count) + i64::from(differing_max) - 2 * (i64::from(entry.position) - depth as i64)
    }

    /// Whether two members of a list can be linked, and have no earlier list or run in common. `y` has at most
    /// as many differences as `x`.
    fn may_be_linked(&self, entry: Entry, x: &Member, other: Entry, y: &Member, depth: usize) -> bool {
        let sum = u64::from(x.content.size) + u64::from(y.content.size);
        let Some(differing_max) = self.tau.differing_max(sum) else { return false };
        let differing_max = u32::try_from(differing_max).unwrap_or(u32::MAX);
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
            && !self.turn.is_earlier_candidate(x.content, y.content.content)
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

/// Members of a list that are known to be connected.
struct ListTree {
    tree: Tree<Entry>,
    /// The most differences of a partner that any member can have in this list.
    reach: i64,
}

impl<E> Drop for Refinement<'_, '_, E> {
    fn drop(&mut self) {
        self.turn.differences.give_back(self.differences.len() as u64);
    }
}

#[cfg(test)]
mod tests;
