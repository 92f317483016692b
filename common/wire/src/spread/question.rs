//! A question to tier 1 on several nodes: of the owner of each shard, or else of nodes that have replicas.
//!
//! An owner that is taken for dead, cannot be reached or does not answer soon is passed over at once. Only where nobody else can
//! answer is it asked again, with all the time that a call has.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{GroupId, PageId, PageUrl, ShardId};
use doppel_protocol::answer::Advice;
use doppel_protocol::{
    GroupPosition, GroupSummary, GroupView, PageView, Question, Tier1Api, Tier1Error, Tier1Reads, Whom,
};

use super::parts::Nodes;
use super::{Answer, check};

/// Replicas of a shard that are asked, one after the other.
const REPLICAS_MAX: usize = 8;

/// What is read for one question.
pub(super) struct Asked<'s> {
    pub(super) nodes: &'s Nodes<dyn Tier1Api, Tier1Error>,
    pub(super) question: Question,
}

/// Who is asked next.
#[derive(Clone, Copy)]
enum Turn {
    Owner,
    /// The one with this number.
    Replica(usize),
    /// The owner again, with patience.
    Again,
}

impl Turn {
    fn all() -> impl Iterator<Item = Self> {
        [Self::Owner].into_iter().chain((0..REPLICAS_MAX).map(Self::Replica)).chain([Self::Again])
    }
}

impl Asked<'_> {
    /// The node that has its turn for a shard. A shard that there is not has no rows anywhere: the first node says so.
    fn place(&self, turn: Turn, shard: ShardId) -> Option<usize> {
        let owners = &self.nodes.owners;
        match turn {
            Turn::Owner if shard.0 >= owners.shards() => Some(0),
            Turn::Owner | Turn::Again => owners.present(shard),
            Turn::Replica(number) => owners.replicas(shard).get(number).copied(),
        }
    }

    fn to(&self, turn: Turn) -> Question {
        match turn {
            Turn::Owner => self.question.to(Whom::Owner),
            Turn::Replica(_) => self.question.to(Whom::Replica),
            Turn::Again => self.question.with_patience(),
        }
    }

    /// Asks about each of some items, and gives the answers in their order.
    fn ask<I: Clone + Send, O: Send>(
        &self,
        items: &[I],
        shard: impl Fn(&I) -> ShardId,
        ask: impl Fn(&dyn Tier1Reads, Vec<I>) -> Answer<Vec<O>> + Sync,
    ) -> Answer<Vec<O>> {
        let mut found: Vec<Option<O>> = items.iter().map(|_| None).collect();
        let mut left: Vec<usize> = (0..items.len()).collect();
        let mut failed = None;
        for turn in Turn::all() {
            let place = |shard| self.place(turn, shard);
            if left.is_empty() {
                break;
            }
            // Nobody is asked in vain about shards that have no more replicas.
            if matches!(turn, Turn::Replica(_)) && !left.iter().any(|at| place(shard(&items[*at])).is_some())
            {
                continue;
            }
            let question = self.to(turn);
            let some = left.iter().map(|at| items[*at].clone()).collect();
            let parts = self.nodes.each_part_at(some, &shard, place, |node, some| {
                let count = some.len();
                let answers = question.ask(node, |reads| ask(reads, some))?;
                if answers.len() == count {
                    return Ok(answers);
                }
                let why = format!("{} answers about {count} pages", answers.len());
                Err(self.nodes.unavailable(why))
            });
            let mut again = Vec::new();
            for (places, answers) in parts {
                match answers {
                    Ok(answers) => {
                        for (place, answer) in places.into_iter().zip(answers) {
                            found[left[place]] = Some(answer);
                        }
                    }
                    Err(error) if error.is_away() => {
                        failed.get_or_insert(error);
                        again.extend(places.into_iter().map(|place| left[place]));
                    }
                    Err(error) => return Err(error),
                }
            }
            again.sort_unstable();
            left = again;
        }
        match failed.filter(|_| !left.is_empty()) {
            Some(failed) => Err(failed),
            None => Ok(found.into_iter().flatten().collect()),
        }
    }

    fn shard_of(&self, page: PageId) -> ShardId {
        page.shard(self.nodes.owners.shards())
    }

    /// The same about one.
    fn ask_one<O: Send>(
        &self,
        shard: ShardId,
        ask: impl Fn(&dyn Tier1Reads) -> Answer<O> + Sync,
    ) -> Answer<O> {
        let answers = self.ask(&[()], |()| shard, |reads, _| Ok(vec![ask(reads)?]))?;
        answers.into_iter().next().ok_or_else(|| self.nodes.unavailable("there is no answer".to_owned()))
    }
}

impl Tier1Reads for Asked<'_> {
    fn pages(&self, pages: &[PageId]) -> Answer<Vec<Option<PageView>>> {
        check(pages.len())?;
        self.ask(pages, |page| self.shard_of(*page), |reads, some| reads.pages(&some))
    }

    /// Owners alone know it without rows; where one does not answer, the rows are to be read.
    fn known_advices(&self, pages: &[PageUrl]) -> Answer<Vec<Option<Advice>>> {
        check(pages.len())?;
        let question = self.to(Turn::Owner);
        let mut known = vec![None; pages.len()];
        let parts = self.nodes.each_part_at(
            pages.to_vec(),
            |page| self.shard_of(page.id()),
            |shard| self.place(Turn::Owner, shard),
            |node, some| question.ask(node, |reads| reads.known_advices(&some)),
        );
        for (places, answers) in parts {
            for (place, advice) in places.into_iter().zip(answers.into_iter().flatten()) {
                known[place] = advice;
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
