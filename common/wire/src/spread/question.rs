//! Reads for a question of a caller from several nodes of tier 1: from the owner of each shard, or else from
//! nodes with replicas.
//!
//! An owner that counts as dead, cannot be reached or does not answer soon is skipped. If no replica can
//! answer either, the owner is called again with the full deadline of a call.

use std::sync::Arc;

use doppel_contract::answer::Advice;
use doppel_model::signature::Signature;
use doppel_model::{GroupId, PageId, PageUrl, ShardId};
use doppel_protocol::{
    GroupPosition, GroupSummary, GroupView, PageView, Question, ReadTarget, Tier1Api, Tier1Error, Tier1Reads,
};

use super::parts::Nodes;
use super::{Answer, check};

/// Maximum number of replicas of a shard that are called, one after the other.
const REPLICAS_MAX: usize = 8;

/// Reads from several nodes for one question.
pub(super) struct SpreadReads<'s> {
    pub(super) nodes: &'s Nodes<dyn Tier1Api, Tier1Error>,
    pub(super) question: Question,
}

/// Which node is called next.
#[derive(Clone, Copy)]
enum Turn {
    Owner,
    /// The replica with this number in the list of replicas.
    Replica(usize),
    /// The owner again, with the full deadline.
    PatientOwner,
}

impl Turn {
    fn all() -> impl Iterator<Item = Self> {
        [Self::Owner].into_iter().chain((0..REPLICAS_MAX).map(Self::Replica)).chain([Self::PatientOwner])
    }
}

impl SpreadReads<'_> {
    /// Returns the index of the node whose turn it is for a shard. A shard outside the collection has no rows
    /// anywhere, so any node can say so; the first node is chosen.
    fn node_index(&self, turn: Turn, shard: ShardId) -> Option<usize> {
        let owners = &self.nodes.owners;
        match turn {
            Turn::Owner if shard.0 >= owners.shards() => Some(0),
            Turn::Owner | Turn::PatientOwner => owners.present(shard),
            Turn::Replica(number) => owners.replicas(shard).get(number).copied(),
        }
    }

    fn question_for(&self, turn: Turn) -> Question {
        match turn {
            Turn::Owner => self.question.to(ReadTarget::Owner),
            Turn::Replica(_) => self.question.to(ReadTarget::Replica),
            Turn::PatientOwner => self.question.with_patience(),
        }
    }

    /// Calls nodes about each item, and returns the answers in the order of the items.
    fn ask<I: Clone + Send, O: Send>(
        &self,
        items: &[I],
        shard: impl Fn(&I) -> ShardId,
        ask: impl Fn(&dyn Tier1Reads, Vec<I>) -> Answer<Vec<O>> + Sync,
    ) -> Answer<Vec<O>> {
        let mut answers_by_item: Vec<Option<O>> = items.iter().map(|_| None).collect();
        let mut remaining: Vec<usize> = (0..items.len()).collect();
        let mut failed = None;
        for turn in Turn::all() {
            let node_of = |shard| self.node_index(turn, shard);
            if remaining.is_empty() {
                break;
            }
            // Shards without a further replica wait for the next turn, so skip a turn without any node.
            if matches!(turn, Turn::Replica(_))
                && !remaining.iter().any(|at| node_of(shard(&items[*at])).is_some())
            {
                continue;
            }
            let question = self.question_for(turn);
            let some = remaining.iter().map(|at| items[*at].clone()).collect();
            let parts = self.nodes.each_part_at(some, &shard, node_of, |node, some| {
                let count = some.len();
                let answers = question.ask(node, |reads| ask(reads, some))?;
                if answers.len() == count {
                    return Ok(answers);
                }
                let reason = format!("a node returned {} answers for {count} pages", answers.len());
                Err(self.nodes.unavailable(reason))
            });
            let mut unanswered = Vec::new();
            for (positions, answers) in parts {
                match answers {
                    Ok(answers) => {
                        for (position, answer) in positions.into_iter().zip(answers) {
                            answers_by_item[remaining[position]] = Some(answer);
                        }
                    }
                    Err(error) if error.is_away() => {
                        failed.get_or_insert(error);
                        unanswered.extend(positions.into_iter().map(|position| remaining[position]));
                    }
                    Err(error) => return Err(error),
                }
            }
            unanswered.sort_unstable();
            remaining = unanswered;
        }
        match failed.filter(|_| !remaining.is_empty()) {
            Some(failed) => Err(failed),
            None => Ok(answers_by_item.into_iter().flatten().collect()),
        }
    }

    fn shard_of(&self, page: PageId) -> ShardId {
        page.shard(self.nodes.owners.shards())
    }

    /// Like [`ask`](Self::ask), for a single item.
    fn ask_one<O: Send>(
        &self,
        shard: ShardId,
        ask: impl Fn(&dyn Tier1Reads) -> Answer<O> + Sync,
    ) -> Answer<O> {
        let answers = self.ask(&[()], |()| shard, |reads, _| Ok(vec![ask(reads)?]))?;
        answers
            .into_iter()
            .next()
            .ok_or_else(|| self.nodes.unavailable("a node returned no answer".to_owned()))
    }
}

impl Tier1Reads for SpreadReads<'_> {
    fn pages(&self, pages: &[PageId]) -> Answer<Vec<Option<PageView>>> {
        check(pages.len())?;
        self.ask(pages, |page| self.shard_of(*page), |reads, some| reads.pages(&some))
    }

    /// Only owners know advice without reading rows. If an owner does not answer, its entries stay `None`,
    /// and the caller reads rows.
    fn known_advices(&self, pages: &[PageUrl]) -> Answer<Vec<Option<Advice>>> {
        check(pages.len())?;
        let question = self.question_for(Turn::Owner);
        let mut known = vec![None; pages.len()];
        let parts = self.nodes.each_part_at(
            pages.to_vec(),
            |page| self.shard_of(page.id()),
            |shard| self.node_index(Turn::Owner, shard),
            |node, some| question.ask(node, |reads| reads.known_advices(&some)),
        );
        for (positions, answers) in parts {
            for (position, advice) in positions.into_iter().zip(answers.into_iter().flatten()) {
                known[position] = advice;
            }
        }
        Ok(known)
    }

    fn first_spelling(&self, form: PageId, except: Option<PageId>) -> Answer<Option<PageId>> {
        self.ask_one(self.shard_of(form), |reads| reads.first_spelling(form, except))
    }

    fn signature(&self, page: PageId) -> Answer<Option<Arc<Signature>>> {
        self.ask_one(self.shard_of(page), |reads| reads.signature(page))
    }

    fn group_summary(&self, group: GroupId) -> Answer<Option<GroupSummary>> {
        self.ask_one(group.shard(), |reads| reads.group_summary(group))
    }

    fn group(
        &self,
        group: GroupId,
        after: Option<GroupPosition>,
        limit: usize,
        redirects: bool,
    ) -> Answer<Option<GroupView>> {
        self.ask_one(group.shard(), |reads| reads.group(group, after, limit, redirects))
    }
}
