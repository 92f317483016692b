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
    chosen: HashMap<(GroupId, PageUrl), MarketChoice>,
    members_left: usize,
}

/// The page that represents a group in a market.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarketChoice {
    /// URL of the preferred page, or of the usual winner.
    pub url: PageUrl,
    /// Reason why the usual winner represents the group although the market may prefer another page.
    pub note: Option<String>,
}

/// Result of reading the members of a group.
struct MemberScan {
    /// First page in the winner order of the market.
    first: Option<PageView>,
    /// One page for each distinct content among the duplicates of the winner.
    duplicates: HashMap<ContentHash, PageId>,
    members: usize,
    is_truncated: bool,
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
    pub fn winner(&mut self, group: GroupId, usual: &PageUrl) -> Result<MarketChoice, Tier1Error> {
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
        let MarketChoice { url, .. } = self.winner(group, &usual)?;
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

    fn choose(&mut self, group: GroupId, usual: &PageUrl) -> Result<MarketChoice, Tier1Error> {
        let scan = self.scan_members(group, usual)?;
        let another = scan.first.as_ref().filter(|first| first.rank.url != *usual);
        if scan.is_truncated && (another.is_some() || scan.members == 0) {
            let note = match scan.members {
                0 => "too many members of other groups were read for this market; ask for fewer pages at a time".to_owned(),
                members => format!("the group is large: {members} members were read for this market"),
            };
            return Ok(MarketChoice { url: usual.clone(), note: Some(note) });
        }
        let Some(first) = another else {
            return Ok(MarketChoice { url: usual.clone(), note: None });
        };
        if self.may_stand_for(first, usual, &scan)? {
            return Ok(MarketChoice { url: first.rank.url.clone(), note: None });
        }
        let note = format!(
            "{} is preferred for this market, but is not a near-duplicate of every page that the winner represents",
            first.rank.url
        );
        Ok(MarketChoice { url: usual.clone(), note: Some(note) })
    }

    fn scan_members(&mut self, group: GroupId, usual: &PageUrl) -> Result<MemberScan, Tier1Error> {
        let mut scan =
            MemberScan { first: None, duplicates: HashMap::new(), members: 0, is_truncated: false };
        let limit = Market::MEMBERS_MAX.min(self.members_left);
        let mut after = None;
        loop {
            let piece = LIST.min(limit.saturating_sub(scan.members));
            if piece == 0 {
                scan.is_truncated = true;
                break;
            }
            let view = self.tier1.group(group, after, piece, false)?;
            // A group in quarantine keeps all its pages, so no page replaces its winner.
            let Some(view) = view.filter(|view| !view.summary.quarantined) else { break };
            let ids: Vec<PageId> = view.members.iter().map(|member| member.line.url.id()).collect();
            scan.members += ids.len();
            for page in self.tier1.pages(&ids)?.into_iter().flatten().filter(is_candidate) {
                if let Some(content) = page.content.filter(|_| page.line.duplicate_of.as_ref() == Some(usual))
                {
                    scan.duplicates.entry(content).or_insert(page.rank.url.id());
                }
                let is_before = |first: &PageView| {
                    self.winners.compare(&page.rank, &first.rank, Some(self.market)).0.is_lt()
                };
                if scan.first.as_ref().is_none_or(is_before) {
                    scan.first = Some(page);
                }
            }
            after = view.next;
            if after.is_none() || ids.is_empty() {
                break;
            }
        }
        self.members_left = self.members_left.saturating_sub(scan.members);
        Ok(scan)
    }

    /// Checks whether `first` can replace the usual winner without leaving a duplicate of the winner
    /// uncovered.
    fn may_stand_for(
        &self,
        first: &PageView,
        usual: &PageUrl,
        scan: &MemberScan,
    ) -> Result<bool, Tier1Error> {
        let Some(winner) = self.tier1.pages(&[usual.id()])?.pop().flatten() else { return Ok(false) };
        if first.content == winner.content {
            return Ok(true);
        }
        let others: HashSet<PageId> = scan
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
