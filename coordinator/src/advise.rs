//! Advice about a page, verified at the moment it is asked for (G5).
//!
//! A page is called a duplicate only when F holds between its present content, or that of its final
//! redirect target, and the present content of its group's present winner. The records of a page, its
//! group and the winner lie in different shards and may change between two reads, so every comparison
//! checks that both contents are still those of the records; when one is not, advice starts again, and
//! after [`ADVICE_ATTEMPTS`] it says what is safe: `member`, keep the page.

use std::collections::HashSet;

use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::{GroupId, PageId, PageUrl};
use doppel_protocol::answer::Advice;
use doppel_protocol::{
    Body, GroupState, GroupSummary, Market, PageView, Pair, Status, Submission, Tier1Api, Tier1Error,
    Tier2Api, Unresolved, WinnerOrder, WinnerView,
};

use crate::limits::{ADVICE_ATTEMPTS, FORWARDS, PROBE_PARTNERS, REDIRECTS};
use crate::market::MarketWinners;
use crate::problem::Problem;

/// Gives advice on the present records.
pub(crate) struct Advisor<'a> {
    tier1: &'a dyn Tier1Api,
    policy: Policy,
    winners: WinnerOrder,
    market: Option<MarketWinners<'a>>,
}

/// A group's winner as the answer names it, and what limits its choice.
struct Winner {
    group: GroupId,
    url: PageUrl,
    quarantined: bool,
    note: Option<String>,
}

impl<'a> Advisor<'a> {
    pub(crate) fn new(
        tier1: &'a dyn Tier1Api,
        policy: Policy,
        winners: WinnerOrder,
        market: Option<&'a Market>,
    ) -> Self {
        let market = market.map(|market| MarketWinners::new(tier1, winners, market));
        Self { tier1, policy, winners, market }
    }

    /// Advice about a page on record.
    pub(crate) fn advise(&mut self, url: &PageUrl) -> Result<Advice, Tier1Error> {
        let mut safe = Advice::unknown(url.to_string());
        for _ in 0..ADVICE_ATTEMPTS {
            let Some(view) = self.view(url)? else { return Ok(Advice::unknown(url.to_string())) };
            if let Some(advice) = self.attempt(&view)? {
                return Ok(advice);
            }
            safe = Advice::on_record(&view);
            safe.status = Status::Member;
            safe.similarity = None;
        }
        Ok(safe)
    }

    /// Advice from records that are read one after the other; none when one changed meanwhile.
    fn attempt(&mut self, view: &PageView) -> Result<Option<Advice>, Tier1Error> {
        let mut advice = Advice::on_record(view);
        let (Status::Pending | Status::Winner | Status::Duplicate | Status::Member, Some(group)) =
            (view.line.status, view.line.group)
        else {
            return Ok(Some(advice));
        };
        let Some(winner) = self.winner(group, Some(view))? else { return Ok(None) };
        name(&mut advice, &winner);
        if view.line.status == Status::Pending {
            return Ok(Some(advice));
        }
        if winner.url == view.rank.url {
            advice.status = Status::Winner;
            return Ok(Some(advice));
        }
        if view.content.is_some() {
            return self.verify(advice, view, &winner);
        }
        match self.end(view)? {
            Some(target) => self.verify_target(advice, &target, &winner),
            None => Ok(None),
        }
    }

    /// The final target of a redirect by the present records of all pages on the way: a change of one of them
    /// may not have come to the redirect yet. None when it is not the one on record.
    fn end(&self, redirect: &PageView) -> Result<Option<PageView>, Tier1Error> {
        let mut next = redirect.redirect_to.clone();
        for _ in 0..REDIRECTS {
            let Some(view) = next.map(|url| self.view(&url)).transpose()?.flatten() else { return Ok(None) };
            if view.content.is_some() {
                return Ok(Some(view).filter(|view| redirect.target == Some(view.rank.url.id())));
            }
            next = view.redirect_to;
        }
        Ok(None)
    }

    /// A redirect is a duplicate when its final target is the winner or one of its duplicates.
    fn verify_target(
        &self,
        mut advice: Advice,
        target: &PageView,
        winner: &Winner,
    ) -> Result<Option<Advice>, Tier1Error> {
        if target.rank.url == winner.url {
            advice.status = winner.member_status(true);
            return Ok(Some(advice));
        }
        let verified = self.verify(advice, target, winner)?;
        Ok(verified.map(|advice| Advice { similarity: None, ..advice }))
    }

    /// F between a page and the winner, on contents that both have at this moment.
    fn verify(
        &self,
        mut advice: Advice,
        page: &PageView,
        winner: &Winner,
    ) -> Result<Option<Advice>, Tier1Error> {
        let Some(winner_view) = self.view(&winner.url)? else { return Ok(None) };
        let (Some(content), Some(winner_content)) = (page.content, winner_view.content) else {
            return Ok(None);
        };
        let told = WinnerView { page: winner.url.id(), content: winner_content };
        // A duplicate on record was verified on these very contents.
        let is_verified = page.line.status == Status::Duplicate && page.winner.as_ref() == Some(&told);
        let (similar, similarity) = if is_verified {
            (true, page.line.similarity)
        } else {
            let a = self.tier1.signature(page.rank.url.id())?.filter(|a| a.content() == content);
            let b = self.tier1.signature(told.page)?.filter(|b| b.content() == winner_content);
            let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
            let comparison = self.policy.compare(&a, &b);
            (comparison.similar, Some(comparison.jaccard()))
        };
        advice.status = winner.member_status(similar);
        advice.similarity = similarity;
        let market = self.market.as_ref().map(MarketWinners::market);
        advice.rule = Some(self.winners.compare(&winner_view.rank, &page.rank, market).1);
        Ok(Some(advice))
    }

    /// Advice about a page that is not stored, as [`Ingest`](crate::ingest::Ingest) extracted it.
    ///
    /// `own` is set when it has a URL: what is stored under that URL is not a partner.
    pub(crate) fn probe(
        &mut self,
        tier2: &dyn Tier2Api,
        submission: &Submission,
        own: Option<&PageUrl>,
    ) -> Result<Advice, Problem> {
        let mut advice = Advice::unknown(own.map(ToString::to_string).unwrap_or_default());
        match &submission.body {
            Body::Content(signature) => self.probe_content(advice, tier2, signature, own),
            Body::Redirect(target) => {
                advice.redirect_to = Some(target.clone());
                Ok(self.probe_redirect(&advice, target)?)
            }
            Body::Dead => {
                advice.status = Status::Dead;
                Ok(advice)
            }
        }
    }

    fn probe_content(
        &mut self,
        mut advice: Advice,
        tier2: &dyn Tier2Api,
        signature: &Signature,
        own: Option<&PageUrl>,
    ) -> Result<Advice, Problem> {
        let mut pairs = tier2.probe(signature)?;
        let union =
            |pair: &Pair| u64::from(signature.shingles()) + u64::from(pair.shingles) - u64::from(pair.shared);
        // The most similar first: shared / union, compared without division.
        pairs.sort_by(|a, b| {
            let (left, right) = (u64::from(a.shared) * union(b), u64::from(b.shared) * union(a));
            right.cmp(&left).then(a.page.cmp(&b.page))
        });
        pairs.truncate(PROBE_PARTNERS);
        advice.status = Status::Unique;
        let mut seen = HashSet::new();
        let ids: Vec<PageId> = pairs.iter().map(|pair| pair.page).collect();
        for (pair, view) in pairs.iter().zip(self.tier1.pages(&ids)?) {
            // What changed since tier 2 heard of it is no partner any more.
            let Some(view) = view.filter(|view| view.content == Some(pair.content)) else { continue };
            let mut found = advice.clone();
            match view.line.group {
                Some(group) => {
                    let Some(winner) = self.winner(group, None)? else { continue };
                    if !seen.insert(winner.group) {
                        continue;
                    }
                    name(&mut found, &winner);
                    self.measure(&mut found, signature, &winner, own)?;
                }
                None if own == Some(&view.rank.url) => continue,
                None if view.line.status == Status::Unique => {
                    let winner = Winner::alone(&view);
                    found.winner = Some(winner.url.clone());
                    self.measure(&mut found, signature, &winner, own)?;
                }
                None => found.status = Status::Pending,
            }
            if informativeness(found.status) > informativeness(advice.status) {
                advice = found;
            }
            if matches!(advice.status, Status::Duplicate | Status::Winner) {
                break;
            }
        }
        Ok(advice)
    }

    /// F between a signature and a winner's present content.
    fn measure(
        &self,
        advice: &mut Advice,
        signature: &Signature,
        winner: &Winner,
        own: Option<&PageUrl>,
    ) -> Result<(), Tier1Error> {
        if own == Some(&winner.url) {
            advice.status = Status::Winner;
            return Ok(());
        }
        let winner_signature = self.tier1.signature(winner.url.id())?;
        let comparison =
            winner_signature.map(|winner_signature| self.policy.compare(signature, &winner_signature));
        advice.status = winner.member_status(comparison.is_some_and(|c| c.similar));
        advice.similarity = comparison.map(|c| c.jaccard());
        Ok(())
    }

    fn probe_redirect(&mut self, advice: &Advice, target: &PageUrl) -> Result<Advice, Tier1Error> {
        for _ in 0..ADVICE_ATTEMPTS {
            let mut end = self.view(target)?;
            if let Some(last) = end.as_ref().and_then(|view| view.target) {
                end = self.page(last)?;
            }
            let advice = advice.clone();
            let Some(end) = end else { return Ok(unresolved(advice, Some(Unresolved::UnknownTarget))) };
            match (end.line.status, end.line.group) {
                (Status::Dead, _) => return Ok(unresolved(advice, Some(Unresolved::DeadTarget))),
                (Status::Unresolved, _) => return Ok(unresolved(advice, end.unresolved)),
                (Status::Unique, _) => {
                    let winner = Some(end.rank.url);
                    return Ok(Advice { status: Status::Duplicate, winner, ..advice });
                }
                (_, None) => return Ok(Advice { status: Status::Pending, ..advice }),
                (_, Some(group)) => {
                    let Some(winner) = self.winner(group, None)? else { continue };
                    let mut advice = advice;
                    name(&mut advice, &winner);
                    if let Some(advice) = self.verify_target(advice, &end, &winner)? {
                        return Ok(advice);
                    }
                }
            }
        }
        Ok(Advice { status: Status::Pending, ..advice.clone() })
    }

    /// The winner of a group or of what it was merged into; none when that is not known at this moment.
    /// With a market, `asker` takes part in the choice even when it is past the members looked at.
    fn winner(&mut self, group: GroupId, asker: Option<&PageView>) -> Result<Option<Winner>, Tier1Error> {
        let Some(summary) = follow(self.tier1, group)? else { return Ok(None) };
        let Some(url) = summary.winner.clone() else { return Ok(None) };
        let GroupSummary { group, quarantined, members, .. } = summary;
        let note = quarantined.then(|| {
            format!(
                "group {group} is quarantined for its size, {members} members, until an operator repairs it"
            )
        });
        let winner = Winner { group, url, quarantined, note };
        let Some(market) = &mut self.market else { return Ok(Some(winner)) };
        let choice = market.winner(group, &winner.url, asker)?;
        Ok(Some(Winner { url: choice.url, note: winner.note.or(choice.note), ..winner }))
    }

    /// The record of a URL. Ids are hashes: one whose URL differs is another page.
    fn view(&self, url: &PageUrl) -> Result<Option<PageView>, Tier1Error> {
        Ok(self.page(url.id())?.filter(|view| view.rank.url == *url))
    }

    fn page(&self, page: PageId) -> Result<Option<PageView>, Tier1Error> {
        Ok(self.tier1.pages(&[page])?.pop().flatten())
    }
}

/// How much a status says about a probe. The answer is about the partner whose status says most.
fn informativeness(status: Status) -> u8 {
    match status {
        Status::Duplicate | Status::Winner => 3,
        Status::Member => 2,
        Status::Pending => 1,
        _ => 0,
    }
}

/// The record of a group, or of the one that has its members now; none when it is dissolved.
pub(crate) fn follow(tier1: &dyn Tier1Api, mut group: GroupId) -> Result<Option<GroupSummary>, Tier1Error> {
    for _ in 0..FORWARDS {
        let Some(summary) = tier1.group_summary(group)? else { return Ok(None) };
        match summary.state {
            GroupState::Active => return Ok(Some(summary)),
            GroupState::MergedInto { group: survivor } => group = survivor,
        }
    }
    Ok(None)
}

impl Winner {
    /// A page that is in no group is its own representative.
    fn alone(view: &PageView) -> Self {
        Self { group: GroupId::from_stored(0), url: view.rank.url.clone(), quarantined: false, note: None }
    }

    /// What a page is that is similar to this winner, or is not.
    fn member_status(&self, similar: bool) -> Status {
        if similar && !self.quarantined { Status::Duplicate } else { Status::Member }
    }
}

/// A redirect that ends at no content.
fn unresolved(advice: Advice, reason: Option<Unresolved>) -> Advice {
    Advice { status: Status::Unresolved, reason, ..advice }
}

/// Names the group and its winner.
fn name(advice: &mut Advice, winner: &Winner) {
    advice.group = Some(winner.group.to_string());
    advice.winner = Some(winner.url.clone());
    advice.note.clone_from(&winner.note);
}
