//! Advice about a page, verified at the moment it is asked for (G5).
//!
//! A page is called a duplicate only when F holds between its present content, or that of its final
//! redirect target, and the present content of a page that is kept: the group's present winner, or a secondary page. The
//! records of a page, its group and the other lie in different shards and may change between two reads, so every comparison
//! checks that both contents are still those of the records; when one is not, advice starts again, and
//! after [`ADVICE_ATTEMPTS`] it says what is safe: `secondary`, keep the page.

use doppel_model::pairwise::Policy;
use doppel_model::{GroupId, PageId, PageUrl};
use doppel_protocol::answer::Advice;
use doppel_protocol::{
    BATCH_MAX, Compared, GroupState, GroupSummary, Line, Market, MemberView, PageView, Rank, Rule, Status,
    Tier1Error, Tier1Reads, WinnerOrder,
};

use crate::limits::{ADVICE_ATTEMPTS, EXPLAINED_MEMBERS, FORWARDS, LIST, REDIRECTS};
use crate::market::MarketWinners;

/// Gives advice on the present records.
pub struct Advisor<'a> {
    /// The records that advice is made from.
    pub tier1: &'a dyn Tier1Reads,
    /// How pages are compared.
    pub policy: Policy,
    /// Order in which winners are elected.
    pub winners: WinnerOrder,
    market: Option<MarketWinners<'a>>,
}

/// A group's winner as the answer names it, and what limits its choice.
pub struct Winner {
    /// The group of the winner.
    pub group: GroupId,
    /// The winner without a market.
    pub usual: PageUrl,
    /// The page that stands for the winner and all duplicates of the winner in answers for a market. Without a market, equal to `usual`.
    pub url: PageUrl,
    /// Whether the group is in quarantine, so that no advice is given from it.
    pub quarantined: bool,
    note: Option<String>,
}

/// What a page with a content is in its group.
enum Standing {
    Winner,
    Secondary,
    Duplicate(DuplicateOf),
}

/// The kept page that another is a duplicate of.
struct DuplicateOf {
    rank: Rank,
    similarity: Option<f64>,
}

impl<'a> Advisor<'a> {
    /// An advisor on the records of `tier1`, for a market if one is given.
    pub fn new(
        tier1: &'a dyn Tier1Reads,
        policy: Policy,
        winners: WinnerOrder,
        market: Option<&'a Market>,
    ) -> Self {
        let market = market.map(|market| MarketWinners::new(tier1, policy, winners, market));
        Self { tier1, policy, winners, market }
    }

    /// Looks at all members of all groups for a market, however many they are together.
    pub fn unlimited(self) -> Self {
        Self { market: self.market.map(MarketWinners::unlimited), ..self }
    }

    /// Advice about a page on record.
    pub fn advise(&mut self, url: &PageUrl) -> Result<Advice, Tier1Error> {
        let mut safe = Advice::unknown(url.to_string());
        for _ in 0..ADVICE_ATTEMPTS {
            let Some(view) = self.view(url)? else { return Ok(Advice::unknown(url.to_string())) };
            if let Some(advice) = self.attempt(&view)? {
                return Ok(advice);
            }
            safe = Advice::on_record(&view);
            safe.status = Status::Secondary;
        }
        Ok(safe)
    }

    /// Lines of pages as they are at this moment, for a market if there is one: what is on record of a duplicate may be
    /// over, and is told to the page later. None for one that is not live any more.
    pub fn present(&mut self, lines: Vec<Line>) -> Result<Vec<Option<Line>>, Tier1Error> {
        let is_verified =
            |line: &Line, market: bool| line.group.is_none() || (!market && line.status != Status::Duplicate);
        let market = self.market.is_some();
        let left: Vec<PageUrl> =
            lines.iter().filter(|line| !is_verified(line, market)).map(|line| line.url.clone()).collect();
        let mut known = Vec::new();
        if !market {
            for some in left.chunks(BATCH_MAX) {
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

    /// Advice from records that are read one after the other; none when one changed meanwhile.
    fn attempt(&mut self, view: &PageView) -> Result<Option<Advice>, Tier1Error> {
        let mut advice = Advice::on_record(view);
        let (Status::Pending | Status::Winner | Status::Duplicate | Status::Secondary, Some(group)) =
            (view.line.status, view.line.group)
        else {
            return Ok(Some(advice));
        };
        let Some(winner) = self.winner(group)? else { return Ok(None) };
        name(&mut advice, &winner);
        if view.line.status == Status::Pending {
            return Ok(Some(advice));
        }
        let end = if view.content.is_some() { None } else { Some(self.end(view)?) };
        match end {
            None => {
                let Some(standing) = self.standing(view, &winner)? else { return Ok(None) };
                self.say(&mut advice, &view.rank, standing, &winner)?;
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

    /// Says what a page with a content is.
    fn say(
        &self,
        advice: &mut Advice,
        rank: &Rank,
        standing: Standing,
        winner: &Winner,
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

    /// The final target of a redirect by the present records of all pages on the way: a change of one of them
    /// may not have come to the redirect yet. None when it is not the one on record.
    fn end(&self, redirect: &PageView) -> Result<Option<PageView>, Tier1Error> {
        let mut next = redirect.redirect_to.clone().map(|to| (to, redirect.stands_for));
        for _ in 0..REDIRECTS {
            let Some((url, stands_for)) = next else { return Ok(None) };
            let found = match self.target(&url)? {
                // A page that is spelled otherwise is known by its id alone.
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

    /// The page on record that is spelled like the target of a redirect, or else in its normal form.
    pub fn target(&self, to: &PageUrl) -> Result<Option<PageView>, Tier1Error> {
        let on_record = |view: &PageView| view.line.status != Status::Unknown;
        if let Some(view) = self.view(to)?.filter(on_record) {
            return Ok(Some(view));
        }
        let normalised = to.normalised().map(|url| self.view(&url)).transpose()?.flatten();
        Ok(normalised.filter(on_record))
    }

    /// A page with a content if it is kept, or else what it is a duplicate of and by which rule that stands before it; none
    /// when a content has changed meanwhile.
    pub fn kept(
        &self,
        page: PageView,
        winner: &Winner,
    ) -> Result<Option<(PageUrl, Option<Rule>)>, Tier1Error> {
        Ok(self.standing(&page, winner)?.map(|standing| match standing {
            Standing::Winner | Standing::Secondary => (page.rank.url, None),
            Standing::Duplicate(of) => {
                let rule = self.rule(&of.rank, &page.rank, winner);
                (of.rank.url, Some(rule))
            }
        }))
    }

    /// The rule by which a page stands before another. The market counts where the page stands for the winner in it.
    fn rule(&self, first: &Rank, second: &Rank, winner: &Winner) -> Rule {
        let is_preferred = first.url == winner.url && winner.url != winner.usual;
        let market = self.market.as_ref().filter(|_| is_preferred).map(MarketWinners::market);
        self.winners.compare(first, second, market).1
    }

    /// What a page is, by F on contents that it and the other have at this moment; none when one has changed meanwhile.
    fn standing(&self, page: &PageView, winner: &Winner) -> Result<Option<Standing>, Tier1Error> {
        let standing = self.usual_standing(page, winner)?;
        let stands_for_winner = match &standing {
            Some(Standing::Winner) => true,
            Some(Standing::Duplicate(of)) => of.rank.url == winner.usual,
            Some(Standing::Secondary) | None => false,
        };
        if winner.url == winner.usual || !stands_for_winner {
            return Ok(standing);
        }
        // The winner and its duplicates name the preferred page.
        if page.rank.url == winner.url {
            return Ok(Some(Standing::Winner));
        }
        Ok(self.duplicate_of(page, &winner.url)?.flatten().map(Standing::Duplicate))
    }

    /// The same without a market.
    fn usual_standing(&self, page: &PageView, winner: &Winner) -> Result<Option<Standing>, Tier1Error> {
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
        let Some(told) = page.duplicate_of.filter(|told| told.page != winner.usual.id()) else {
            return Ok(Some(Standing::Secondary));
        };
        // The other may have another content by now, or may be a duplicate itself.
        let other = self.page(told.page)?.filter(|other| {
            other.content == Some(told.content)
                && matches!(other.line.status, Status::Secondary | Status::Winner)
        });
        Ok(Some(other.map_or(Standing::Secondary, |other| {
            Standing::Duplicate(DuplicateOf { rank: other.rank, similarity: page.line.similarity })
        })))
    }

    /// Whether a page is a duplicate of another, which is none of anybody's while it is pending; none when a content has
    /// changed meanwhile.
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
        let told = Compared { page: other.rank.url.id(), content: other_content };
        // A duplicate on record was verified on these very contents.
        if page.line.status == Status::Duplicate && page.duplicate_of == Some(told) {
            let similarity = page.line.similarity;
            return Ok(Some(Some(DuplicateOf { rank: other.rank, similarity })));
        }
        let a = self.tier1.signature(page.rank.url.id())?.filter(|a| a.content() == content);
        let b = self.tier1.signature(told.page)?.filter(|b| b.content() == other_content);
        let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
        let comparison = self.policy.compare(&a, &b);
        let similarity = Some(comparison.similarity.as_f64());
        Ok(Some(comparison.similar.then_some(DuplicateOf { rank: other.rank, similarity })))
    }

    /// The first `most` kept pages of a group for which `wanted` holds, in the winner order, of the first
    /// [`EXPLAINED_MEMBERS`] members. None where the group is quarantined: there all pages are kept.
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

    /// The winner of a group or of what it was merged into; none when that is not known at this moment.
    pub fn winner(&mut self, group: GroupId) -> Result<Option<Winner>, Tier1Error> {
        let Some(summary) = follow(self.tier1, group)? else { return Ok(None) };
        let Some(url) = summary.winner.clone() else { return Ok(None) };
        let GroupSummary { group, quarantined, members, .. } = summary;
        let note = quarantined.then(|| {
            format!(
                "group {group} is quarantined for the number of its contents, {members} members, until an operator repairs it"
            )
        });
        let winner = Winner { group, usual: url.clone(), url, quarantined, note };
        let Some(market) = self.market.as_mut().filter(|_| !quarantined) else { return Ok(Some(winner)) };
        let choice = market.winner(group, &winner.url)?;
        Ok(Some(Winner { url: choice.url, note: choice.note, ..winner }))
    }

    /// The record of a URL. Ids are hashes: one whose URL differs is another page.
    pub fn view(&self, url: &PageUrl) -> Result<Option<PageView>, Tier1Error> {
        Ok(self.page(url.id())?.filter(|view| view.rank.url == *url))
    }

    /// The record of a page.
    ///
    /// # Errors
    /// When tier 1 cannot be read.
    pub fn page(&self, page: PageId) -> Result<Option<PageView>, Tier1Error> {
        Ok(self.tier1.pages(&[page])?.pop().flatten())
    }
}

/// The record of a group, or of the one that has its members now; none when it is dissolved.
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

/// Names the group and its winner.
pub fn name(advice: &mut Advice, winner: &Winner) {
    advice.group = Some(winner.group.to_string());
    advice.winner = Some(winner.url.clone());
    advice.note.clone_from(&winner.note);
}
