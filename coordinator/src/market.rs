//! The winner of a group for a market: the member that comes first in the winner order when the market's
//! hosts are preferred. It is not on record, so it is found by looking at the members, in bounds.

use std::collections::HashMap;

use doppel_model::{GroupId, PageId, PageUrl};
use doppel_protocol::{Market, PageView, Rank, Status, Tier1Api, Tier1Error, WinnerOrder};

use crate::limits::{LIST, MARKET_MEMBERS, MARKET_MEMBERS_TOTAL};

/// Winners for one market, remembered for the length of one request.
pub(crate) struct MarketWinners<'a> {
    tier1: &'a dyn Tier1Api,
    winners: WinnerOrder,
    market: &'a Market,
    found: HashMap<GroupId, Found>,
    members_left: usize,
}

/// The chosen winner.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub(crate) url: PageUrl,
    pub(crate) note: Option<String>,
}

/// The first in the winner order of the members that were looked at.
#[derive(Debug, Clone)]
struct Found {
    rank: Option<Rank>,
    looked_at: usize,
    cut: bool,
}

impl<'a> MarketWinners<'a> {
    pub(crate) fn new(tier1: &'a dyn Tier1Api, winners: WinnerOrder, market: &'a Market) -> Self {
        Self { tier1, winners, market, found: HashMap::new(), members_left: MARKET_MEMBERS_TOTAL }
    }

    pub(crate) fn market(&self) -> &Market {
        self.market
    }

    /// The winner of `group`, whose winner without a market is `usual`.
    pub(crate) fn winner(
        &mut self,
        group: GroupId,
        usual: &PageUrl,
        asker: Option<&PageView>,
    ) -> Result<Choice, Tier1Error> {
        let found = match self.found.get(&group) {
            Some(found) => found.clone(),
            None => {
                let found = self.search(group, usual)?;
                self.found.insert(group, found.clone());
                found
            }
        };
        let asker = asker.filter(|view| is_candidate(view)).map(|view| &view.rank);
        let first =
            found.rank.iter().chain(asker).min_by(|a, b| self.winners.compare(a, b, Some(self.market)).0);
        let note = found.cut.then(|| {
            format!("the group is large: the winner for this market is that of {} members", found.looked_at)
        });
        Ok(Choice { url: first.map_or_else(|| usual.clone(), |rank| rank.url.clone()), note })
    }

    fn search(&mut self, group: GroupId, usual: &PageUrl) -> Result<Found, Tier1Error> {
        let mut found = Found { rank: None, looked_at: 0, cut: false };
        self.consider(&mut found, &[usual.id()])?;
        let limit = MARKET_MEMBERS.min(self.members_left);
        let mut after = None;
        loop {
            let piece = LIST.min(limit.saturating_sub(found.looked_at));
            if piece == 0 {
                found.cut = true;
                break;
            }
            let Some(view) = self.tier1.group(group, after, piece, false)? else { break };
            let ids: Vec<PageId> = view.members.iter().map(|member| member.line.url.id()).collect();
            found.looked_at += ids.len();
            self.consider(&mut found, &ids)?;
            after = view.next;
            if after.is_none() || ids.is_empty() {
                break;
            }
        }
        self.members_left = self.members_left.saturating_sub(found.looked_at);
        Ok(found)
    }

    fn consider(&self, found: &mut Found, pages: &[PageId]) -> Result<(), Tier1Error> {
        for view in self.tier1.pages(pages)?.into_iter().flatten().filter(is_candidate) {
            let before = |rank: &Rank| self.winners.compare(&view.rank, rank, Some(self.market)).0.is_lt();
            if found.rank.as_ref().is_none_or(before) {
                found.rank = Some(view.rank);
            }
        }
        Ok(())
    }
}

/// Whether a page may represent its group: it has a content that was decided to be in it.
fn is_candidate(view: &PageView) -> bool {
    view.content.is_some() && matches!(view.line.status, Status::Winner | Status::Duplicate | Status::Member)
}
