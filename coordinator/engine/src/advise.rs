//! Advice on a stored page, verified at the time of the request (guarantee G5).
//!
//! Advice calls a page a duplicate only if the pairwise function F holds between two current contents. One is
//! the content of the page, or of the final target if the page is a redirect. The other is the content of a
//! kept page: the current winner of the group, or a secondary page.
//!
//! The records of the page, its group and the kept page lie in different shards, and each may change between
//! two reads. Every comparison therefore checks that both contents still match the records. If a content has
//! changed, the advisor starts again. After [`ADVICE_ATTEMPTS`] attempts it gives the safe answer,
//! `secondary`, which means: keep the page.

use doppel_contract::answer::Advice;
use doppel_contract::{Market, REDIRECT_HOPS_MAX, Status, WinnerRule};
use doppel_model::pairwise::Policy;
use doppel_model::{GroupId, PageId, PageUrl};
use doppel_protocol::{
    BATCH_PAGES_MAX, ComparedPage, GroupState, GroupSummary, Line, MemberView, PageView, Rank, Tier1Error,
    Tier1Reads, WinnerOrder,
};

use crate::limits::{ADVICE_ATTEMPTS, EXPLAINED_MEMBERS, FORWARDS, LIST};
use crate::market::MarketWinners;

/// Gives advice from the current records of tier 1. Its methods fail if tier 1 cannot be read.
pub struct Advisor<'a> {
    /// Source of the records.
    pub tier1: &'a dyn Tier1Reads,
    /// Policy by which pages are compared.
    pub policy: Policy,
    /// Order by which a group's winner is elected.
    pub winners: WinnerOrder,
    market: Option<MarketWinners<'a>>,
}

/// The winner of a group as an answer names it, with the reasons that limited the choice.
pub struct GroupWinner {
    /// The group of the winner.
    pub group: GroupId,
    /// The winner when no market is given.
    pub usual: PageUrl,
    /// The page that represents the winner and its duplicates in a market. Equal to `usual` without a market.
    pub url: PageUrl,
    /// Whether the group is in quarantine. Advice then keeps every member of the group.
    pub quarantined: bool,
    note: Option<String>,
}

/// Role of a page with content in its group.
enum Standing {
    Winner,
    Secondary,
    Duplicate(DuplicateOf),
}

/// The kept page of which another page is a duplicate.
struct DuplicateOf {
    rank: Rank,
    similarity: Option<f64>,
}

impl<'a> Advisor<'a> {
    /// Creates an advisor on the records of `tier1`, for a market if one is given.
    pub fn new(
        tier1: &'a dyn Tier1Reads,
        policy: Policy,
        winners: WinnerOrder,
        market: Option<&'a Market>,
    ) -> Self {
        let market = market.map(|market| MarketWinners::new(tier1, policy, winners, market));
        Self { tier1, policy, winners, market }
    }

    /// Removes the limit on the number of members that the advisor reads, over all groups, to find market
    /// winners.
    pub fn unlimited(self) -> Self {
        Self { market: self.market.map(MarketWinners::unlimited), ..self }
    }

    /// Gives advice on the page of a URL. The status is `unknown` if the page is not on record.
    ///
    /// # Errors
    /// If tier 1 cannot be read.
    pub fn advise(&mut self, url: &PageUrl) -> Result<Advice, Tier1Error> {
        let mut safe = Advice::unknown(url.to_string());
        for _ in 0..ADVICE_ATTEMPTS {
            let Some(view) = self.view(url)? else { return Ok(Advice::unknown(url.to_string())) };
            if let Some(advice) = self.attempt(&view)? {
                return Ok(advice);
            }
            safe = view.recorded_advice();
            safe.status = Status::Secondary;
        }
        Ok(safe)
    }

    /// Brings recorded lines up to date, for the market if the advisor has one.
    ///
    /// A recorded duplicate may no longer be one, because tier 1 updates the record of a page some time after
    /// the group of the page changes. The result has one entry for each line: `None` if the page is no longer
    /// live.
    ///
    /// # Errors
    /// If tier 1 cannot be read.
    pub fn present(&mut self, lines: Vec<Line>) -> Result<Vec<Option<Line>>, Tier1Error> {
        let is_verified =
            |line: &Line, market: bool| line.group.is_none() || (!market && line.status != Status::Duplicate);
        let market = self.market.is_some();
        let left: Vec<PageUrl> =
            lines.iter().filter(|line| !is_verified(line, market)).map(|line| line.url.clone()).collect();
        let mut known = Vec::new();
        if !market {
            for some in left.chunks(BATCH_PAGES_MAX) {
                known.extend(self.tier1.known_advices(some)?);
            }
        }
        let mut known = known.into_iter();
        let mut present = Vec::with_capacity(lines.len());
        for line in lines {
            if is_verified(&line, market) {
                present.push(Some(line));
                continue;
            }
            let advice = known.next().flatten().map_or_else(|| self.advise(&line.url), Ok)?;
            let Advice { status, group, winner, duplicate_of, similarity, reason, .. } = advice;
            let is_live = !matches!(status, Status::Unknown | Status::Dead);
            let group = group.and_then(|group| group.parse().ok());
            let line = Line { url: line.url, status, group, winner, duplicate_of, similarity, reason };
            present.push(is_live.then_some(line));
        }
        Ok(present)
    }

    /// Computes advice from records that are read one after the other. `None` if one changed meanwhile.
    fn attempt(&mut self, view: &PageView) -> Result<Option<Advice>, Tier1Error> {
        let mut advice = view.recorded_advice();
        let (Status::Pending | Status::Winner | Status::Duplicate | Status::Secondary, Some(group)) =
            (view.line.status, view.line.group)
        else {
            return Ok(Some(advice));
        };
        let Some(winner) = self.winner(group)? else { return Ok(None) };
        write_winner(&mut advice, &winner);
        if view.line.status == Status::Pending {
            return Ok(Some(advice));
        }
        let end = if view.content.is_some() { None } else { Some(self.end(view)?) };
        match end {
            None => {
                let Some(standing) = self.standing(view, &winner)? else { return Ok(None) };
                self.write_standing(&mut advice, &view.rank, standing, &winner)?;
            }
            Some(None) => return Ok(None),
            Some(Some(target)) if target.line.status == Status::Pending => advice.status = Status::Pending,
            Some(Some(target)) => {
                let Some((kept, rule)) = self.kept(target, &winner)? else { return Ok(None) };
                (advice.status, advice.duplicate_of, advice.rule) = (Status::Duplicate, Some(kept), rule);
            }
        }
        Ok(Some(advice))
    }

    /// Writes the role of a page with content into the advice.
    fn write_standing(
        &self,
        advice: &mut Advice,
        rank: &Rank,
        standing: Standing,
        winner: &GroupWinner,
    ) -> Result<(), Tier1Error> {
        let rule = |before: &Rank| Some(self.rule(before, rank, winner));
        match standing {
            Standing::Winner => advice.status = Status::Winner,
            Standing::Secondary => {
                advice.status = Status::Secondary;
                advice.rule = self.view(&winner.url)?.and_then(|winner| rule(&winner.rank));
            }
            Standing::Duplicate(of) => {
                advice.status = Status::Duplicate;
                (advice.rule, advice.similarity) = (rule(&of.rank), of.similarity);
                advice.duplicate_of = Some(of.rank.url);
            }
        }
        Ok(())
    }

    /// Follows a redirect to its final target by the current records of all pages on the way.
    ///
    /// The record of the redirect may not yet reflect a change further along the chain. Returns `None` if the
    /// target found differs from the recorded target.
    fn end(&self, redirect: &PageView) -> Result<Option<PageView>, Tier1Error> {
        let mut next = redirect.redirect_to.clone().map(|to| (to, redirect.stands_for));
        for _ in 0..REDIRECT_HOPS_MAX {
            let Some((url, stands_for)) = next else { return Ok(None) };
            let found = match self.target(&url)? {
                // A target whose URL has another spelling is found by its id alone.
                None => stands_for.map(|page| self.page(page)).transpose()?.flatten(),
                found => found,
            };
            let Some(view) = found else { return Ok(None) };
            if view.content.is_some() {
                return Ok(Some(view).filter(|view| redirect.target == Some(view.rank.url.id())));
            }
            next = view.redirect_to.map(|to| (to, view.stands_for));
        }
        Ok(None)
    }

    /// Looks up the page on record whose URL is exactly `to`, or else the normalised form of `to`.
    pub fn target(&self, to: &PageUrl) -> Result<Option<PageView>, Tier1Error> {
        let on_record = |view: &PageView| view.line.status != Status::Unknown;
        if let Some(view) = self.view(to)?.filter(on_record) {
            return Ok(Some(view));
        }
        let normalised = to.normalised().map(|url| self.view(&url)).transpose()?.flatten();
        Ok(normalised.filter(on_record))
    }

    /// Finds the kept page that represents a page with content.
    ///
    /// If `page` itself is kept, returns its URL without a rule. If `page` is a duplicate, returns the kept
    /// page and the rule by which it precedes `page`. Returns `None` if a content has changed meanwhile.
    ///
    /// # Errors
    /// If tier 1 cannot be read.
    pub fn kept(
        &self,
        page: PageView,
        winner: &GroupWinner,
    ) -> Result<Option<(PageUrl, Option<WinnerRule>)>, Tier1Error> {
        Ok(self.standing(&page, winner)?.map(|standing| match standing {
            Standing::Winner | Standing::Secondary => (page.rank.url, None),
            Standing::Duplicate(of) => {
                let rule = self.rule(&of.rank, &page.rank, winner);
                (of.rank.url, Some(rule))
            }
        }))
    }

    /// Returns the rule of the winner order by which `first` precedes `second`. The market counts only if
    /// `first` represents the winner in that market.
    fn rule(&self, first: &Rank, second: &Rank, winner: &GroupWinner) -> WinnerRule {
        let is_preferred = first.url == winner.url && winner.url != winner.usual;
        let market = self.market.as_ref().filter(|_| is_preferred).map(MarketWinners::market);
        self.winners.compare(first, second, market).1
    }

    /// Determines the role of a page by F on the current contents. `None` if a content has changed meanwhile.
    fn standing(&self, page: &PageView, winner: &GroupWinner) -> Result<Option<Standing>, Tier1Error> {
        let standing = self.usual_standing(page, winner)?;
        let stands_for_winner = match &standing {
            Some(Standing::Winner) => true,
            Some(Standing::Duplicate(of)) => of.rank.url == winner.usual,
            Some(Standing::Secondary) | None => false,
        };
        if winner.url == winner.usual || !stands_for_winner {
            return Ok(standing);
        }
        // The usual winner and its duplicates become duplicates of the preferred page.
        if page.rank.url == winner.url {
            return Ok(Some(Standing::Winner));
        }
        Ok(self.duplicate_of(page, &winner.url)?.flatten().map(Standing::Duplicate))
    }

    /// Like [`standing`](Self::standing), but ignores the market.
    fn usual_standing(&self, page: &PageView, winner: &GroupWinner) -> Result<Option<Standing>, Tier1Error> {
        if page.rank.url == winner.usual {
            return Ok(Some(Standing::Winner));
        }
        if winner.quarantined {
            return Ok(Some(Standing::Secondary));
        }
        let Some(of_winner) = self.duplicate_of(page, &winner.usual)? else { return Ok(None) };
        if let Some(of) = of_winner {
            return Ok(Some(Standing::Duplicate(of)));
        }
        let Some(recorded) = page.duplicate_of.filter(|recorded| recorded.page != winner.usual.id()) else {
            return Ok(Some(Standing::Secondary));
        };
        // The kept page on record may have changed its content, or may have become a duplicate itself.
        let other = self.page(recorded.page)?.filter(|other| {
            other.content == Some(recorded.content)
                && matches!(other.line.status, Status::Secondary | Status::Winner)
        });
        Ok(Some(other.map_or(Standing::Secondary, |other| {
            Standing::Duplicate(DuplicateOf { rank: other.rank, similarity: page.line.similarity })
        })))
    }

    /// Determines whether `page` is a duplicate of `other`.
    ///
    /// The outer `None` means that a content has changed meanwhile. The inner `None` means that `page` is not
    /// a duplicate of `other`. While `other` is pending, no page is its duplicate.
    fn duplicate_of(
        &self,
        page: &PageView,
        other: &PageUrl,
    ) -> Result<Option<Option<DuplicateOf>>, Tier1Error> {
        let Some(other) = self.view(other)? else { return Ok(None) };
        if other.line.status == Status::Pending {
            return Ok(Some(None));
        }
        let (Some(content), Some(other_content)) = (page.content, other.content) else { return Ok(None) };
        let recorded = ComparedPage { page: other.rank.url.id(), content: other_content };
        // Tier 1 has already verified F on exactly these two contents.
        if page.line.status == Status::Duplicate && page.duplicate_of == Some(recorded) {
            let similarity = page.line.similarity;
            return Ok(Some(Some(DuplicateOf { rank: other.rank, similarity })));
        }
        let a = self.tier1.signature(page.rank.url.id())?.filter(|a| a.content() == content);
        let b = self.tier1.signature(recorded.page)?.filter(|b| b.content() == other_content);
        let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
        let comparison = self.policy.compare(&a, &b);
        let similarity = Some(comparison.similarity.as_f64());
        Ok(Some(comparison.similar.then_some(DuplicateOf { rank: other.rank, similarity })))
    }

    /// Returns up to `most` kept pages of a group for which `wanted` holds, first in the winner order.
    ///
    /// Only the first [`EXPLAINED_MEMBERS`] members are examined. The list is empty for a group in
    /// quarantine, because such a group keeps all its pages.
    pub fn kept_pages(
        &self,
        group: GroupId,
        most: usize,
        wanted: impl Fn(&Rank) -> bool,
    ) -> Result<Vec<PageView>, Tier1Error> {
        let mut kept: Vec<PageView> = Vec::new();
        let (mut after, mut seen) = (None, 0);
        while seen < EXPLAINED_MEMBERS {
            let view = self.tier1.group(group, after, LIST, false)?;
            let Some(view) = view.filter(|view| !view.summary.quarantined) else { break };
            seen += view.members.len();
            let is_kept =
                |member: &&MemberView| matches!(member.line.status, Status::Winner | Status::Secondary);
            let ids: Vec<PageId> =
                view.members.iter().filter(is_kept).map(|member| member.line.url.id()).collect();
            kept.extend(self.tier1.pages(&ids)?.into_iter().flatten().filter(|page| wanted(&page.rank)));
            kept.sort_by(|a, b| self.winners.compare(&a.rank, &b.rank, None).0);
            kept.truncate(most);
            after = view.next;
            if after.is_none() {
                break;
            }
        }
        Ok(kept)
    }

    /// Returns the winner of a group or of the group into which it was merged. `None` if it is not known now.
    pub fn winner(&mut self, group: GroupId) -> Result<Option<GroupWinner>, Tier1Error> {
        let Some(summary) = follow(self.tier1, group)? else { return Ok(None) };
        let Some(url) = summary.winner.clone() else { return Ok(None) };
        let GroupSummary { group, quarantined, members, .. } = summary;
        let note = quarantined.then(|| {
            format!(
                "group {group} with {members} members is in quarantine for the number of its contents, until an operator repairs it or a recomputation finds few enough contents"
            )
        });
        let winner = GroupWinner { group, usual: url.clone(), url, quarantined, note };
        let Some(market) = self.market.as_mut().filter(|_| !quarantined) else { return Ok(Some(winner)) };
        let choice = market.winner(group, &winner.url)?;
        Ok(Some(GroupWinner { url: choice.url, note: choice.note, ..winner }))
    }

    /// Reads the record of the page with exactly this URL.
    ///
    /// Page ids are hashes. If the record of the id has another URL, it belongs to another page, and the
    /// result is `None`.
    pub fn view(&self, url: &PageUrl) -> Result<Option<PageView>, Tier1Error> {
        Ok(self.page(url.id())?.filter(|view| view.rank.url == *url))
    }

    /// Reads the record of the page with this id.
    pub fn page(&self, page: PageId) -> Result<Option<PageView>, Tier1Error> {
        Ok(self.tier1.pages(&[page])?.pop().flatten())
    }
}

/// Returns the summary of a group, or of the group into which it was merged. Returns `None` if the group was
/// dissolved, or after [`FORWARDS`] forwards.
///
/// # Errors
/// If tier 1 cannot be read.
pub fn follow(tier1: &dyn Tier1Reads, mut group: GroupId) -> Result<Option<GroupSummary>, Tier1Error> {
    for _ in 0..FORWARDS {
        let Some(summary) = tier1.group_summary(group)? else { return Ok(None) };
        match summary.state {
            GroupState::Active => return Ok(Some(summary)),
            GroupState::MergedInto { group: survivor } => group = survivor,
        }
    }
    Ok(None)
}

/// Writes the group, its winner, and the note on the winner into the advice.
pub fn write_winner(advice: &mut Advice, winner: &GroupWinner) {
    advice.group = Some(winner.group.to_string());
    advice.winner = Some(winner.url.clone());
    advice.note.clone_from(&winner.note);
}
