//! Comparison of members with the winners of their groups.

use std::collections::HashMap;
use std::sync::Arc;

use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_protocol::Tier1Error;

use crate::rows::record::ContentComparison;
use crate::service::upkeep::Upkeep;
use crate::service::upkeep::job::MemberVerification;

/// The winner of the last comparison, because the members of one group follow each other.
#[derive(Debug, Default)]
pub(crate) struct LastWinner(Option<(ContentHash, Arc<Signature>)>);

/// Compares members with their winners and passes each outcome to `each`. The outcome is `None` if the member
/// or the winner has another content by now.
///
/// As many signatures are read together as fit one answer.
pub(crate) fn verify(
    upkeep: &Upkeep,
    members: Vec<MemberVerification>,
    last: &mut LastWinner,
    each: &mut dyn FnMut(MemberVerification, Result<Option<ContentComparison>, Tier1Error>),
) {
    let mut by_winner: HashMap<(PageId, ContentHash), Vec<MemberVerification>> = HashMap::new();
    let mut winners = Vec::new();
    for of in members {
        let winner = (of.winner, of.winner_content);
        let members = by_winner.entry(winner).or_default();
        if members.is_empty() {
            winners.push(winner);
        }
        members.push(of);
    }
    // The winner that is in memory comes first.
    let known = last.0.take();
    let is_known = |content: ContentHash| known.as_ref().is_some_and(|(known, _)| *known == content);
    let (now, mut left): (Vec<_>, Vec<_>) = winners.into_iter().partition(|(_, content)| is_known(*content));
    let mut compare = |winner: (PageId, ContentHash), with: Result<Option<Arc<Signature>>, Tier1Error>| {
        let members = by_winner.remove(&winner).unwrap_or_default();
        match with.map(|with| with.filter(|with| with.content() == winner.1)) {
            Ok(Some(with)) => {
                compare_all(upkeep, members, &with, each);
                last.0 = Some((winner.1, with));
            }
            Ok(None) => members.into_iter().for_each(|of| each(of, Ok(None))),
            Err(refused) => members.into_iter().for_each(|of| each(of, Err(refused.clone()))),
        }
    };
    for winner in now {
        compare(winner, Ok(known.as_ref().map(|(_, signature)| Arc::clone(signature))));
    }
    // In order of shards, so that signatures of one range are read together.
    left.sort_unstable_by_key(|(page, _)| page.shard(upkeep.collection.map.shards()));
    while !left.is_empty() {
        let pages: Vec<PageId> = left.iter().map(|(page, _)| *page).collect();
        match upkeep.rows.first_signatures(&pages) {
            Ok(read) => {
                let rest = left.split_off(read.len().min(left.len()));
                let now = std::mem::replace(&mut left, rest);
                now.into_iter().zip(read).for_each(|(winner, with)| compare(winner, with));
            }
            Err(refused) => left.drain(..).for_each(|winner| compare(winner, Err(refused.clone()))),
        }
    }
}

fn compare_all(
    upkeep: &Upkeep,
    mut left: Vec<MemberVerification>,
    with: &Signature,
    each: &mut dyn FnMut(MemberVerification, Result<Option<ContentComparison>, Tier1Error>),
) {
    left.sort_unstable_by_key(|of| of.page.shard(upkeep.collection.map.shards()));
    while !left.is_empty() {
        let pages: Vec<PageId> = left.iter().map(|of| of.page).collect();
        match upkeep.rows.first_signatures(&pages) {
            Ok(read) => {
                let rest = left.split_off(read.len().min(left.len()));
                for (of, signature) in std::mem::replace(&mut left, rest).into_iter().zip(read) {
                    std::thread::yield_now();
                    let current = signature.map(|s| s.filter(|s| s.content() == of.content));
                    each(
                        of,
                        current.map(|s| s.map(|s| measure(upkeep.collection.settings.policy, &s, with))),
                    );
                }
            }
            Err(refused) => left.drain(..).for_each(|of| each(of, Err(refused.clone()))),
        }
    }
}

/// The comparison of two contents, as records keep it.
pub(crate) fn measure(policy: Policy, signature: &Signature, with: &Signature) -> ContentComparison {
    let comparison = policy.compare(signature, with);
    ContentComparison {
        content: with.content(),
        similarity: comparison.similarity,
        similar: comparison.similar,
    }
}
