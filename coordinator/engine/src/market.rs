//! The winner of a group for a market: the member that comes first in the winner order if the market's hosts
//! are preferred.
//!
//! Tier 1 does not record market winners. This module finds them by reading the members of a group, up to a
//! limit.
//!
//! Invariant: a preferred page replaces the usual winner only if every duplicate of the winner is then still
//! a duplicate of a kept page. The preferred page must have the winner's content, or the pairwise function F
//! must hold between it and the winner, and between it and every duplicate of the winner.

use std::collections::{HashMap, HashSet};

use doppel_contract::{Market, Status};
use doppel_model::pairwise::Policy;
use doppel_model::{ContentHash, GroupId, PageId, PageUrl};
use doppel_protocol::{Line, PageView, Tier1Error, Tier1Reads, WinnerOrder};

use crate::limits::{LIST, MARKET_GROUPS, MARKET_MEMBERS_TOTAL};

/// Winners of groups for one market, cached for the duration of one request.
pub struct MarketWinners<'a> {
    tier1: &'a dyn Tier1Reads,
    policy: Policy,
    winners: WinnerOrder,
    market: &'a Market,
    /// Cached choices, by group and usual winner.
    chosen: HashMap<(GroupId, PageUrl), Choice>,
    members_left: usize,
}

/// The page that represents a group in a market.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// URL of the preferred page, or of the usual winner.
    pub url: PageUrl,
    /// Reason why the usual winner represents the group although the market may prefer another page.
    pub note: Option<String>,
}

/// Result of reading the members of a group.
struct Seen {
    /// First page in the winner order of the market.
    first: Option<PageView>,
    /// One page for each distinct content among the duplicates of the winner.
    duplicates: HashMap<ContentHash, PageId>,
    members: usize,
    cut: bool,
}

impl<'a> MarketWinners<'a> {
    /// Creates an empty cache that reads at most [`MARKET_MEMBERS_TOTAL`] members over all groups.
    #[must_use]
    pub fn new(tier1: &'a dyn Tier1Reads, policy: Policy, winners: WinnerOrder, market: &'a Market) -> Self {
        let members_left = MARKET_MEMBERS_TOTAL;
        Self { tier1, policy, winners, market, chosen: HashMap::new(), members_left }
    }

    /// Returns the market whose hosts are preferred.
    pub fn market(&self) -> &Market {
        self.market
    }

    /// Returns the page that represents `group` in the market. `usual` is the winner of the group without a
    /// market.
    ///
    /// # Errors
    /// If tier 1 cannot be read.
    pub fn winner(&mut self, group: GroupId, usual: &PageUrl) -> Result<Choice, Tier1Error> {
        if let Some(chosen) = self.chosen.get(&(group, usual.clone())) {
            return Ok(chosen.clone());
        }
        let chosen = self.choose(group, usual)?;
        if self.chosen.len() >= MARKET_GROUPS {
            self.chosen.clear();
        }
        self.chosen.insert((group, usual.clone()), chosen.clone());
        Ok(chosen)
    }

    /// Removes the limit on the number of members that are read over all groups.
    #[must_use]
    pub fn unlimited(self) -> Self {
        Self { members_left: usize::MAX, ..self }
    }

    /// Converts the line of a page in a collection at rest to the market. If a preferred page replaces the
    /// winner, the winner and its duplicates become duplicates of the preferred page.
    ///
    /// # Errors
    /// If tier 1 cannot be read.
    pub fn apply(&mut self, mut line: Line) -> Result<Line, Tier1Error> {
        let (Some(group), Some(usual)) = (line.group, line.winner.clone()) else { return Ok(line) };
        let Choice { url, .. } = self.winner(group, &usual)?;
        if url == usual {
            return Ok(line);
        }
        let is_usual = line.url == usual;
        if line.url == url {
            (line.status, line.duplicate_of, line.similarity) = (Status::Winner, None, None);
        } else if is_usual || line.duplicate_of.as_ref() == Some(&usual) {
            line.status = Status::Duplicate;
            // A redirect has no similarity, and gets none here.
            if is_usual || line.similarity.is_some() {
                line.similarity = self.similarity(&line.url, &url)?;
            }
            line.duplicate_of = Some(url.clone());
        }
        line.winner = Some(url);
        Ok(line)
    }

    fn similarity(&self, a: &PageUrl, b: &PageUrl) -> Result<Option<f64>, Tier1Error> {
        let both = self.tier1.signature(a.id())?.zip(self.tier1.signature(b.id())?);
        Ok(both.map(|(a, b)| self.policy.compare(&a, &b).similarity.as_f64()))
    }

    fn choose(&mut self, group: GroupId, usual: &PageUrl) -> Result<Choice, Tier1Error> {
        let seen = self.look(group, usual)?;
        let another = seen.first.as_ref().filter(|first| first.rank.url != *usual);
        if seen.cut && (another.is_some() || seen.members == 0) {
            let note = match seen.members {
                0 => "too many members of other groups were looked at for this market before: ask for fewer pages at a time".to_owned(),
                members => format!("the group is large: {members} members were looked at for this market"),
            };
            return Ok(Choice { url: usual.clone(), note: Some(note) });
        }
        let Some(first) = another else {
            return Ok(Choice { url: usual.clone(), note: None });
        };
        if self.may_stand_for(first, usual, &seen)? {
            return Ok(Choice { url: first.rank.url.clone(), note: None });
        }
        let note = format!(
            "{} is preferred for this market, and is not near all pages that the winner stands for",
            first.rank.url
        );
        Ok(Choice { url: usual.clone(), note: Some(note) })
    }

    fn look(&mut self, group: GroupId, usual: &PageUrl) -> Result<Seen, Tier1Error> {
        let mut seen = Seen { first: None, duplicates: HashMap::new(), members: 0, cut: false };
        let limit = Market::MEMBERS_MAX.min(self.members_left);
        let mut after = None;
        loop {
            let piece = LIST.min(limit.saturating_sub(seen.members));
            if piece == 0 {
                seen.cut = true;
                break;
            }
            let view = self.tier1.group(group, after, piece, false)?;
            // A group in quarantine keeps all its pages, so no page replaces its winner.
            let Some(view) = view.filter(|view| !view.summary.quarantined) else { break };
            let ids: Vec<PageId> = view.members.iter().map(|member| member.line.url.id()).collect();
            seen.members += ids.len();
            for page in self.tier1.pages(&ids)?.into_iter().flatten().filter(is_candidate) {
                if let Some(content) = page.content.filter(|_| page.line.duplicate_of.as_ref() == Some(usual))
                {
                    seen.duplicates.entry(content).or_insert(page.rank.url.id());
                }
                let is_before = |first: &PageView| {
                    self.winners.compare(&page.rank, &first.rank, Some(self.market)).0.is_lt()
                };
                if seen.first.as_ref().is_none_or(is_before) {
                    seen.first = Some(page);
                }
            }
            after = view.next;
            if after.is_none() || ids.is_empty() {
                break;
            }
        }
        self.members_left = self.members_left.saturating_sub(seen.members);
        Ok(seen)
    }

    /// Checks whether `first` can replace the usual winner without leaving a duplicate of the winner
    /// uncovered.
    fn may_stand_for(&self, first: &PageView, usual: &PageUrl, seen: &Seen) -> Result<bool, Tier1Error> {
        let Some(winner) = self.tier1.pages(&[usual.id()])?.pop().flatten() else { return Ok(false) };
        if first.content == winner.content {
            return Ok(true);
        }
        let others: HashSet<PageId> = seen
            .duplicates
            .iter()
            .filter(|(content, _)| Some(**content) != first.content && Some(**content) != winner.content)
            .map(|(_, page)| *page)
            .chain([usual.id()])
            .collect();
        if others.len() > Market::COMPARISONS_MAX {
            return Ok(false);
        }
        let Some(own) = self.tier1.signature(first.rank.url.id())? else { return Ok(false) };
        for other in others {
            let Some(other) = self.tier1.signature(other)? else { return Ok(false) };
            if !self.policy.compare(&own, &other).similar {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Checks whether a page may represent its group: it has content, and its place in the group is decided.
fn is_candidate(view: &PageView) -> bool {
    view.content.is_some()
        && matches!(view.line.status, Status::Winner | Status::Duplicate | Status::Secondary)
}
