//! Checks the cover of a group against the contents of its members.

use std::collections::HashMap;
use std::sync::Arc;

use doppel_model::{ContentHash, GroupId, PageId};

use super::{Checker, Invariant, ReferencedRow};
use crate::regroup::{self, CoveredContents};
use crate::rows::record::{Cover, Member};

impl Checker<'_> {
    /// Computes the cover of the members that differ from the winner, and compares it with their rows. Checks
    /// nothing if a page has another content than its member row.
    pub(super) fn check_cover(&mut self, group: GroupId, mut members: Vec<(PageId, Member)>) {
        let Some(policy) = self.policy else { return };
        members.sort_by(|(_, a), (_, b)| self.winners.compare(&a.rank, &b.rank, None).0);
        let mut numbers: HashMap<ContentHash, usize> = HashMap::new();
        // Keep no signatures, because those of a giant group may not fit in memory.
        let mut firsts: Vec<(PageId, ContentHash)> = Vec::new();
        for (page, member) in &members {
            if numbers.contains_key(&member.content) {
                continue;
            }
            let ReferencedRow::Row(signature) = self.signature_of(*page) else { return };
            if signature.content() != member.content {
                return;
            }
            numbers.insert(member.content, firsts.len());
            firsts.push((*page, member.content));
        }
        let found = regroup::cover(policy, CoveredContents::unprotected(firsts.len()), &mut |number| {
            Ok::<_, std::convert::Infallible>(match self.signature_of(firsts[number].0) {
                ReferencedRow::Row(signature) => Some(Arc::new(signature)),
                _ => None,
            })
        });
        let Ok(cover) = found;
        for (page, member) in members {
            let number = numbers[&member.content];
            let of = match cover[number] {
                Some((center, _)) => Some(center),
                None => (firsts[number].0 != page).then_some(number),
            };
            let expected = of.map_or(Cover::Kept, |of| Cover::By(firsts[of].0, firsts[of].1));
            if member.cover != expected {
                let row = format!("member {} of group {group}", self.describe_page(page));
                let detail = format!("has the cover {:?}, but the contents give {expected:?}", member.cover);
                self.add_finding(Invariant::Cover, row, detail);
            }
        }
    }
}
