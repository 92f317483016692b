//! The decision about a content. Tier 2 names the partners of the content, and the partners name their
//! groups. The page joins the group with the smallest id, and has the other groups merged into it.
//!
//! Invariant: each search has its own ticket. An answer under an earlier ticket is dropped, so a page is
//! decided by its latest search only.

use doppel_model::{ClientId, ContentHash, GroupId, PageId};
use doppel_protocol::{IndexCommand, Search, SearchResult};

use crate::machine::{Effect, Machine, Message};
use crate::rows::record::{
    ContentComparison, Evidence, ForwardProbe, Group, GroupRecord, LinkedPage, Membership, PageRecord,
    PartnerGroup, PartnerQuery, SearchState, State,
};
use crate::storage::store::StoreError;

/// Maximum number of compared partners kept for the verdict on the winner. The worker compares any other
/// winner again.
const MEASURED_MAX: usize = 4;

impl Machine<'_, '_> {
    /// Handles the result of a search, and asks the partners for their groups.
    pub(in crate::machine) fn on_searched(&mut self, result: SearchResult) -> Result<(), StoreError> {
        let SearchResult { page, content, ticket, pairs } = result;
        self.current_shard = self.shards.owner(page);
        if ticket == Search::UNREQUESTED {
            return self.search_again(page, content);
        }
        self.meta().counters.searches += 1;
        let Some(mut record) = self.take(page)? else { return Ok(()) };
        let ticket_is_current = record.ticket == ticket;
        let State::Content(state) = &mut record.state else {
            self.meta().counters.stale_results += 1;
            return self.give_back(page, record);
        };
        if state.content != content
            || !ticket_is_current
            || state.search == SearchState::Compared
            || state.partner_query.is_some()
        {
            self.meta().counters.stale_results += 1;
            return self.give_back(page, record);
        }
        if pairs.is_empty() {
            return self.decide(page, record, &[], false);
        }
        for pair in &pairs {
            if state.measured.len() >= MEASURED_MAX {
                break;
            }
            if state.measured.iter().all(|m| m.content != pair.content) {
                state.measured.push(ContentComparison {
                    content: pair.content,
                    similarity: pair.similarity,
                    similar: true,
                });
            }
        }
        let unanswered = u32::try_from(pairs.len()).unwrap_or(u32::MAX);
        state.partner_query = Some(PartnerQuery { unanswered, stale: false, groups: Vec::new() });
        for pair in pairs {
            let (partner, partner_content) = (pair.page, pair.content);
            self.send_to_page(partner, Message::AskGroup { page, content, ticket, partner, partner_content });
        }
        self.put(page, record)
    }

    /// Handles [`Message::AskGroup`]: tells the asking page the group of `partner`. A partner without a group
    /// mints one.
    pub(in crate::machine) fn on_ask_group(
        &mut self,
        (asker, asker_content, ticket): (PageId, ContentHash, u32),
        partner: PageId,
        partner_content: ContentHash,
    ) -> Result<(), StoreError> {
        let answer = |found| Message::AnswerGroup { page: asker, content: asker_content, ticket, found };
        let mut record = match self.take(partner)? {
            Some(record) if record.has_content(partner_content) => record,
            other => {
                if let Some(record) = other {
                    self.give_back(partner, record)?;
                }
                self.remove_stale_content(partner, partner_content);
                self.send_to_page(asker, answer(None));
                return Ok(());
            }
        };
        let State::Content(state) = &mut record.state else { return self.give_back(partner, record) };
        let found = |group, membership_number| {
            Some(PartnerGroup {
                group,
                partner: LinkedPage { page: partner, membership_number, content: partner_content },
            })
        };
        if let Some(group) = state.current_group() {
            let found = found(group, record.membership_number);
            self.give_back(partner, record)?;
            self.send_to_page(asker, answer(found));
            return Ok(());
        }
        // The partner has no group, or only the group of its previous content. The pair was found for its
        // present content, so the partner needs a new group.
        if let Some(old) = state.membership.take() {
            self.leave(partner, &mut record.membership_number, &old);
        }
        let group = self.mint(partner, &mut record)?;
        let found = found(group, record.membership_number);
        self.put(partner, record)?;
        self.send_to_page(asker, answer(found));
        Ok(())
    }

    /// Orders tier 2 to remove a content that its page no longer has.
    ///
    /// Tier 2 has named the page under that content. The order to remove it may be under way, or was lost
    /// with a range's owner and a node of the index. Without a new order, tier 2 would name the page at every
    /// search, and the asking page would search forever.
    fn remove_stale_content(&mut self, page: PageId, content: ContentHash) {
        self.effects.push(Effect::Index(IndexCommand::Remove { page, content }));
    }

    /// Handles [`Message::AnswerGroup`]: collects the partners' groups, and decides after the last answer.
    pub(in crate::machine) fn on_answer_group(
        &mut self,
        page: PageId,
        content: ContentHash,
        ticket: u32,
        found: Option<PartnerGroup>,
    ) -> Result<(), StoreError> {
        let Some(mut record) = self.take(page)? else { return Ok(()) };
        let current = record.ticket == ticket && record.has_content(content);
        let State::Content(state) = &mut record.state else { return self.give_back(page, record) };
        let Some(query) = state.partner_query.as_mut().filter(|_| current) else {
            return self.give_back(page, record);
        };
        query.unanswered = query.unanswered.saturating_sub(1);
        match found {
            Some(found) if query.groups.iter().all(|f| f.group != found.group) => query.groups.push(found),
            Some(_) => {}
            None => query.stale = true,
        }
        if query.unanswered > 0 {
            return self.put(page, record);
        }
        let (found, stale) = (std::mem::take(&mut query.groups), query.stale);
        self.decide(page, record, &found, stale)
    }

    /// Decides a page after all its partners have answered. `stale` means that a partner had changed, so the
    /// search must be repeated.
    pub(in crate::machine) fn decide(
        &mut self,
        page: PageId,
        mut record: PageRecord,
        found: &[PartnerGroup],
        stale: bool,
    ) -> Result<(), StoreError> {
        let State::Content(state) = &mut record.state else { return self.give_back(page, record) };
        let content = state.content;
        state.partner_query = None;
        let undecided = state.search == SearchState::Pending;
        if stale {
            self.meta().counters.stale_results += 1;
            if found.is_empty() && undecided {
                record.ticket += 1;
                self.order_search(page, content, Search { ticket: record.ticket, client: state.client });
                return self.put(page, record);
            }
            record.ticket += 1;
        }
        state.client = ClientId::NONE;
        if stale && self.shards.settings.rules.deferred_searches {
            state.search = SearchState::Deferred;
            self.effects.push(Effect::Deferred(page));
        } else {
            state.search = SearchState::Compared;
        }
        let compared = state.search == SearchState::Compared;

        let mut adopted = false;
        let mut was_compared = true;
        if let Some(membership) = &mut state.membership {
            if membership.content != content && found.iter().any(|f| f.group == membership.group) {
                membership.content = content;
                membership.verdict = None;
                membership.covered_by = None;
                was_compared = membership.compared;
                adopted = true;
            }
            if membership.content == content {
                membership.compared = compared;
            } else {
                let old = membership.clone();
                state.membership = None;
                self.leave(page, &mut record.membership_number, &old);
            }
        }
        let own = self.own_group(&record);
        let smallest = found.iter().map(|f| f.group).chain(own).min();
        match (smallest, own) {
            (None, _) => {
                if record.inbound_redirects > 0 {
                    self.mint(page, &mut record)?;
                }
            }
            (Some(into), None) => {
                let via = found.iter().find(|f| f.group == into).map(|f| (f.partner.page, f.partner.content));
                self.join(page, &mut record, into, via);
            }
            (Some(_), Some(_)) => {
                if adopted {
                    let via = found
                        .iter()
                        .find(|f| Some(f.group) == own)
                        .map(|f| (f.partner.page, f.partner.content));
                    self.enroll(page, &mut record, via, !was_compared);
                }
            }
        }
        if let Some(into) = smallest {
            let page = LinkedPage { page, membership_number: record.membership_number, content };
            self.merge_groups(page, found, own, into);
        }
        self.put(page, record)
    }

    fn own_group(&self, record: &PageRecord) -> Option<GroupId> {
        record.content().and_then(crate::rows::record::ContentState::current_group)
    }

    /// Merges the group of every partner, and the page's own group, into the smallest of them.
    pub(in crate::machine) fn merge_groups(
        &mut self,
        page: LinkedPage,
        found: &[PartnerGroup],
        own: Option<GroupId>,
        into: GroupId,
    ) {
        for other in found.iter().filter(|f| f.group != into && Some(f.group) != own) {
            let evidence = Evidence { page, partner: other.partner };
            self.send(other.group.shard(), Message::Merge { group: other.group, into, evidence });
        }
        if let (Some(own), Some(pair)) =
            (own.filter(|own| *own != into), found.iter().find(|f| f.group == into))
        {
            let evidence = Evidence { page, partner: pair.partner };
            self.send(own.shard(), Message::Merge { group: own, into, evidence });
        }
    }

    /// Orders the search that a confirmed page owes.
    pub(in crate::machine) fn search_now(&mut self, page: PageId) -> Result<(), StoreError> {
        self.current_shard = self.shards.owner(page);
        let Some(mut record) = self.take(page)? else { return Ok(()) };
        let deferred = record.content().filter(|state| {
            state.search == SearchState::Deferred && state.partner_query.is_none() && state.tokens > 0
        });
        let Some(content) = deferred.map(|state| state.content) else { return self.give_back(page, record) };
        // With a new ticket, only the last of two searches counts.
        record.ticket += 1;
        self.order_search(page, content, Search { ticket: record.ticket, client: ClientId::NONE });
        self.put(page, record)
    }

    /// Orders the search of a page again that was pending when the range was opened. The old search may still
    /// be under way. With a new ticket, only the last of two searches counts.
    pub(in crate::machine) fn resume_search(&mut self, page: PageId) -> Result<(), StoreError> {
        self.current_shard = self.shards.owner(page);
        let Some(mut record) = self.take(page)? else { return Ok(()) };
        let lost = record.content().filter(|state| {
            state.search == SearchState::Pending && state.partner_query.is_none() && state.tokens > 0
        });
        let Some((content, client)) = lost.map(|state| (state.content, state.client)) else {
            return self.give_back(page, record);
        };
        record.ticket += 1;
        self.resumed.push((page, client));
        self.order_search(page, content, Search { ticket: record.ticket, client });
        self.put(page, record)
    }

    /// Makes a page search again, because a join failed half-way or a content that tier 2 relied on has gone.
    pub(in crate::machine) fn search_again(
        &mut self,
        page: PageId,
        content: ContentHash,
    ) -> Result<(), StoreError> {
        let Some(mut record) = self.take(page)? else { return Ok(()) };
        if !record.has_content(content) {
            return self.give_back(page, record);
        }
        self.owe_search(page, &mut record);
        self.put(page, record)
    }

    /// Makes the present content of a page owe a search. A search under way is ordered again.
    pub(in crate::machine) fn owe_search(&mut self, page: PageId, record: &mut PageRecord) {
        let State::Content(state) = &mut record.state else { return };
        let pending = state.search == SearchState::Pending;
        if state.tokens == 0 || !(pending || self.shards.settings.rules.deferred_searches) {
            return;
        }
        record.ticket += 1;
        state.partner_query = None;
        if let Some(membership) = state.membership.as_mut().filter(|m| m.content == state.content) {
            membership.compared = false;
        }
        if pending {
            let content = state.content;
            self.order_search(page, content, Search { ticket: record.ticket, client: state.client });
        } else {
            state.search = SearchState::Deferred;
            self.effects.push(Effect::Deferred(page));
        }
    }

    /// Makes a page pending until its content is searched for again. The content has tokens, and the page has
    /// no group.
    pub(in crate::machine) fn search_as_new(&mut self, page: PageId, record: &mut PageRecord) {
        let State::Content(state) = &mut record.state else { return };
        // No client waits for this search: the content's client has already had its decision.
        state.search = SearchState::Pending;
        self.owe_search(page, record);
    }

    fn order_search(&mut self, page: PageId, content: ContentHash, search: Search) {
        self.effects.push(Effect::Index(IndexCommand::Search { page, content, search }));
    }

    /// Makes the page the first member of a new group of this shard.
    pub(in crate::machine) fn mint(
        &mut self,
        page: PageId,
        record: &mut PageRecord,
    ) -> Result<GroupId, StoreError> {
        let shard = self.current_shard;
        let meta = self.meta();
        meta.groups_minted += 1;
        let group = GroupId::new(meta.groups_minted, shard);
        self.txn.put_group(group, Some(GroupRecord::Active(Group::new())))?;
        self.effects.push(Effect::Dirty(group));
        self.join(page, record, group, None);
        Ok(group)
    }

    /// Begins a membership of `group`, and enrolls the page.
    fn join(
        &mut self,
        page: PageId,
        record: &mut PageRecord,
        group: GroupId,
        via: Option<(PageId, ContentHash)>,
    ) {
        record.membership_number += 1;
        if let State::Content(state) = &mut record.state {
            state.membership = Some(Membership {
                group,
                enrolled_at: group,
                content: state.content,
                compared: state.search == SearchState::Compared,
                winner: None,
                verdict: None,
                forward_probe: ForwardProbe::Idle,
                dissimilar: false,
                covered_by: None,
                cover_number: 0,
            });
        }
        self.enroll(page, record, via, false);
    }
}
