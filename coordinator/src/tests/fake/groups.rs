//! The fake's records of pages, and the groups that it computes from them from scratch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use doppel_contract::{Status, SubmissionOutcome, UnresolvedReason};
use doppel_model::pairwise::Policy;
use doppel_model::{GroupId, PageId, PageUrl, ShardId};
use doppel_protocol::{
    Body, ComparedPage, FetchResult, GroupState, GroupSummary, Line, PageView, Rank, Submission, VersionPlace,
};

use super::{Page, State};

impl State {
    pub(super) fn record(&mut self, submission: Submission) -> SubmissionOutcome {
        let Submission { url, fetched_at, popularity, language, canonical, body } = submission;
        let old = self.pages.get(&url.id());
        let place = VersionPlace::new(fetched_at, &body);
        if old.is_some_and(|old| old.place() > place) {
            return SubmissionOutcome::Stale;
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
            return SubmissionOutcome::Unchanged;
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
            stands_for: None,
            target: None,
            unresolved: None,
            duplicate_of: None,
        };
        self.pages.insert(url.id(), Page { view, signature });
        if status == Status::Dead { SubmissionOutcome::Confirmed } else { SubmissionOutcome::Pending }
    }

    /// Computes all groups from scratch: components of linked contents first, then redirects.
    pub(super) fn decide(&mut self, policy: Policy) {
        for (id, (summary, members)) in &mut self.groups {
            if summary.state == GroupState::Active {
                // Surviving groups get new ids. Each old id is merged into the group that contains its
                // winner.
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
        let redirects: Vec<(PageId, Result<PageId, UnresolvedReason>)> = self
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
        let winner_url = self.pages[&winner].view.rank.url.clone();
        let group = GroupId::new(self.minted, ShardId(0));
        self.minted += 1;
        // The cover is computed in the winner order.
        let mut in_order = members.clone();
        in_order
            .sort_by(|a, b| self.winners.compare(&self.pages[a].view.rank, &self.pages[b].view.rank, None).0);
        let (mut kept, mut cover) = (Vec::<PageId>::new(), BTreeMap::<PageId, PageId>::new());
        let compare = |a: &PageId, b: &PageId| {
            let signature = |page: &PageId| self.pages[page].signature.clone().unwrap();
            policy.compare(&signature(a), &signature(b))
        };
        for page in in_order {
            match kept.iter().find(|earlier| compare(&page, earlier).similar) {
                Some(earlier) => drop(cover.insert(page, *earlier)),
                None => kept.push(page),
            }
        }
        let lines: Vec<(PageId, Status, Option<PageId>, Option<f64>)> = members
            .iter()
            .chain(&attached)
            .map(|id| {
                let subject = self.pages[id].view.target.unwrap_or(*id);
                let of = cover.get(&subject).copied().or((subject != *id).then_some(subject));
                let status = match of {
                    Some(_) => Status::Duplicate,
                    None if *id == winner => Status::Winner,
                    None => Status::Secondary,
                };
                let similarity = of.filter(|_| subject == *id).map(|of| compare(id, &of).similarity.as_f64());
                (*id, status, of, similarity)
            })
            .collect();
        let dissimilar =
            members.iter().filter(|id| **id != winner && cover.get(id) != Some(&winner)).count() as u64;
        for (id, status, of, similarity) in lines {
            let url = |page: PageId| self.pages[&page].view.rank.url.clone();
            let duplicate_of = of.map(url);
            let compared =
                of.map(|of| ComparedPage { page: of, content: self.pages[&of].view.content.unwrap() });
            let page = self.pages.get_mut(&id).unwrap();
            page.view.line = Line {
                group: Some(group),
                winner: Some(winner_url.clone()),
                duplicate_of,
                similarity,
                ..line(&page.view.rank.url, status)
            };
            page.view.duplicate_of = compared.filter(|_| page.view.content.is_some());
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
            secondaries: kept.len() as u64 - 1,
            uncovered: false,
            winner: Some(winner_url),
            dirty: false,
            quarantined: false,
        };
        self.groups.insert(group, (summary, members));
    }

    fn target(&self, view: &PageView) -> Result<PageId, UnresolvedReason> {
        let mut at = view;
        for _ in 0..20 {
            let next = at.redirect_to.as_ref().unwrap().id();
            let page = self.pages.get(&next).ok_or(UnresolvedReason::UnknownTarget)?;
            match (&page.view.redirect_to, page.view.line.status) {
                (_, Status::Dead) => return Err(UnresolvedReason::DeadTarget),
                (None, _) => return Ok(next),
                (Some(_), _) if next == view.rank.url.id() => return Err(UnresolvedReason::Loop),
                (Some(_), _) => at = &page.view,
            }
        }
        Err(UnresolvedReason::TooManyHops)
    }
}

impl Page {
    /// Returns the position of the recorded version in the version order.
    fn place(&self) -> VersionPlace<'_> {
        let result = match (&self.view.redirect_to, self.view.content) {
            (Some(target), _) => FetchResult::Redirect(target),
            (None, Some(content)) => FetchResult::Content(content),
            (None, None) => FetchResult::Dead,
        };
        VersionPlace { fetched_at: self.view.fetched_at, result }
    }
}

fn line(url: &PageUrl, status: Status) -> Line {
    Line {
        url: url.clone(),
        status,
        group: None,
        winner: None,
        duplicate_of: None,
        similarity: None,
        reason: None,
    }
}
