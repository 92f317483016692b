//! The partners of one member of a list.

use std::sync::{Arc, OnceLock};

use doppel_model::signature::Signature;

use super::{Entry, Refinement};
use crate::trees::Tree;

/// Looks for the partners of one member in the trees of a list.
pub(super) struct Partners<'r, 't, 'b, E> {
    pub(super) refinement: &'r Refinement<'t, 'b, E>,
    pub(super) entry: Entry,
    /// Number of differences that the members of the list have in common before the one that names it.
    pub(super) depth: usize,
    /// The number of differences of a partner is from `count_min` to `count_max`.
    pub(super) count_min: u32,
    pub(super) count_max: i64,
    /// Number of visits of members and of lists of trees.
    pub(super) visits: u64,
    /// Caches the signature of the member.
    pub(super) signature: OnceLock<Arc<Signature>>,
}

impl<E: Send + Sync> Partners<'_, '_, '_, E> {
    /// Connects the member to a tree if a member of the tree is linked to it. Returns whether they are
    /// connected now.
    pub(super) fn connect_to_tree(&mut self, tree: &Tree<Entry>) -> Result<bool, E> {
        let Some(first) = tree.first() else { return Ok(false) };
        let Refinement { members, turn, .. } = self.refinement;
        let x = members[self.entry.member as usize];
        let first = members[first.member as usize].content.content;
        if turn.connected.root(first) == turn.connected.root(x.content.content) {
            return Ok(true);
        }
        for list in tree.lists() {
            let end = list
                .partition_point(|other| i64::from(members[other.member as usize].count) <= self.count_max);
            for other in list[..end].iter().rev() {
                let y = members[other.member as usize];
                if y.count < self.count_min {
                    break;
                }
                self.visits += 1;
                if !self.refinement.may_be_linked(self.entry, &x, *other, &y, self.depth) {
                    continue;
                }
                let signature = match self.signature.get() {
                    Some(signature) => signature,
                    None => {
                        let read = (turn.read)(x.content.content)?;
                        self.signature.get_or_init(|| read)
                    }
                };
                if turn.columns.policy.compare(signature, &*(turn.read)(y.content.content)?).similar {
                    turn.connected.union(x.content.content, y.content.content);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
