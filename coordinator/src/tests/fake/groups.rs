//! What the fake records of pages, and the groups that it makes of them from scratch.

use std::collections::BTreeSet;
use std::sync::Arc;

use doppel_model::pairwise::Policy;
use doppel_model::{GroupId, PageId, PageUrl, ShardId};
use doppel_protocol::{
    Body, GroupState, GroupSummary, Line, Outcome, PageView, Rank, Status, Submission, Unresolved, WinnerView,
};

use super::{Page, State};

impl State {
    pub(super) fn record(&mut self, submission: Submission) -> Outcome {
        let Submission { url, fetched_at, popularity, language, canonical, body } = submission;
        let old = self.pages.get(&url.id());
        if old.is_some_and(|old| old.view.fetched_at > fetched_at) {
            return Outcome::Stale;
        }
        let signature = match &body {
            Body::Content(signature) => Some(Arc::clone(signature)),
            _ => None,
        };
        let content = signature.as_ref().map(|signature| signature.content());
        let redirect_to = match &body {
            Body::Redirect(target) => Some(target.clone()),
            _ => None,
        };
        if old.is_some_and(|old| {
            old.view.content == content
                && old.view.redirect_to == redirect_to
                && (old.view.line.status == Status::Dead) == matches!(body, Body::Dead)
        }) {
            return Outcome::Unchanged;
        }
        let status = if matches!(body, Body::Dead) { Status::Dead } else { Status::Pending };
        let first_seen = old.map_or(fetched_at, |old| old.view.rank.first_seen);
        let line = line(&url, status);
        let rank = Rank { url: url.clone(), popularity, first_seen };
        let view = PageView {
            line,
            fetched_at,
            rank,
            content,
            language,
            canonical,
            redirect_to,
            target: None,
            unresolved: None,
            winner: None,
        };
        self.pages.insert(url.id(), Page { view, signature });
        if status == Status::Dead { Outcome::Confirmed } else { Outcome::Pending }
    }

    /// Groups from scratch: components of linked contents, then redirects.
    pub(super) fn decide(&mut self, policy: Policy) {
        for (id, (summary, members)) in &mut self.groups {
            if summary.state == GroupState::Active {
                // Survivors are minted anew; the old ids are merged into the one that has their winner.
                summary.state = GroupState::MergedInto { group: *id };
                members.clear();
            }
        }
        let contents: Vec<PageId> =
            self.pages.iter().filter(|(_, page)| page.signature.is_some()).map(|(id, _)| *id).collect();
        let mut left: BTreeSet<PageId> = contents.into_iter().collect();
        while let Some(first) = left.pop_first() {
            let mut members = vec![first];
            let mut at = 0;
            while let Some(&member) = members.get(at) {
                at += 1;
                let a = self.pages[&member].signature.clone().unwrap();
                let linked: Vec<PageId> = left
                    .iter()
                    .copied()
                    .filter(|other| policy.linked(&a, self.pages[other].signature.as_ref().unwrap()))
                    .collect();
                for other in linked {
                    left.remove(&other);
                    members.push(other);
                }
            }
            self.settle(policy, members);
        }
    }

    fn settle(&mut self, policy: Policy, mut members: Vec<PageId>) {
        let targets: BTreeSet<PageId> = members.iter().copied().collect();
        let redirects: Vec<(PageId, Result<PageId, Unresolved>)> = self
            .pages
            .values()
            .filter(|page| page.view.redirect_to.is_some())
            .map(|page| (page.view.rank.url.id(), self.target(&page.view)))
            .collect();
        for (id, target) in &redirects {
            let page = self.pages.get_mut(id).unwrap();
            match target {
                Ok(target) => (page.view.target, page.view.unresolved) = (Some(*target), None),
                Err(reason) => {
                    page.view.unresolved = Some(*reason);
                    page.view.line =
                        Line { reason: Some(*reason), ..line(&page.view.rank.url, Status::Unresolved) };
                }
            }
        }
        let attached = redirects.into_iter().filter(|(_, target)| target.is_ok_and(|t| targets.contains(&t)));
        let attached: Vec<PageId> = attached.map(|(id, _)| id).collect();
        members.sort();
        if members.len() == 1 && attached.is_empty() {
            let page = self.pages.get_mut(&members[0]).unwrap();
            page.view.line = line(&page.view.rank.url, Status::Unique);
            return;
        }
        let winner = members
            .iter()
            .min_by(|a, b| self.winners.compare(&self.pages[a].view.rank, &self.pages[b].view.rank, None).0)
            .copied()
            .unwrap();
        let (winner_url, winner_signature) =
            (self.pages[&winner].view.rank.url.clone(), self.pages[&winner].signature.clone().unwrap());
        let group = GroupId::new(self.minted, ShardId(0));
        self.minted += 1;
        let mut dissimilar = 0;
        for id in members.iter().chain(&attached) {
            let subject = self.pages[id].view.target.unwrap_or(*id);
            let comparison =
                policy.compare(self.pages[&subject].signature.as_ref().unwrap(), &winner_signature);
            let page = self.pages.get_mut(id).unwrap();
            let status = match comparison.similar {
                _ if *id == winner => Status::Winner,
                true => Status::Duplicate,
                false => Status::Member,
            };
            dissimilar += u64::from(status == Status::Member);
            let similarity = (*id != winner && subject == *id).then(|| comparison.jaccard());
            page.view.line = Line {
                group: Some(group),
                winner: Some(winner_url.clone()),
                similarity,
                ..line(&page.view.rank.url, status)
            };
            page.view.winner = Some(WinnerView { page: winner, content: winner_signature.content() });
        }
        for (summary, _) in self.groups.values_mut() {
            if matches!(summary.state, GroupState::MergedInto { group } if group == summary.group)
                && summary.winner.as_ref().is_some_and(|old| members.contains(&old.id()))
            {
                summary.state = GroupState::MergedInto { group };
            }
        }
        let summary = GroupSummary {
            group,
            state: GroupState::Active,
            members: members.len() as u64,
            dissimilar,
            winner: Some(winner_url),
            dirty: false,
            quarantined: false,
        };
        self.groups.insert(group, (summary, members));
    }

    fn target(&self, view: &PageView) -> Result<PageId, Unresolved> {
        let mut at = view;
        for _ in 0..20 {
            let next = at.redirect_to.as_ref().unwrap().id();
            let page = self.pages.get(&next).ok_or(Unresolved::UnknownTarget)?;
            match (&page.view.redirect_to, page.view.line.status) {
                (_, Status::Dead) => return Err(Unresolved::DeadTarget),
                (None, _) => return Ok(next),
                (Some(_), _) if next == view.rank.url.id() => return Err(Unresolved::Loop),
                (Some(_), _) => at = &page.view,
            }
        }
        Err(Unresolved::TooManyHops)
    }
}

fn line(url: &PageUrl, status: Status) -> Line {
    Line { url: url.clone(), status, group: None, winner: None, similarity: None, reason: None }
}
