//! Checks a page's record in itself, and against its signature, its event, and its member row.

use doppel_model::pairwise::Similarity;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, GroupId, PageId};

use super::{Checker, Invariant, ReferencedRow, hex};
use crate::machine::public_state;
use crate::rows::key::{self, RowKind};
use crate::rows::record::{
    ContentComparison, ContentState, ForwardProbe, GroupRecord, Member, Membership, PageRecord, SearchState,
    State,
};
use crate::rows::txn::share_of_page;

/// The group that has a page's member row. The check finds it from the page's membership, through forwards.
pub(super) enum Holder {
    Group(GroupId, Box<GroupRecord>, Box<Member>),
    Nobody,
    Unreadable,
}

impl Checker<'_> {
    pub(super) fn page(&mut self, page: PageId, key: &[u8], value: &[u8]) {
        self.report.pages += 1;
        let row = format!("the page {}", hex(page.bytes()));
        let Some(record) = self.decode::<PageRecord>(key, value, row) else { return };
        let url = record.url().to_string();
        if record.url().id() != page {
            return self.add_finding(
                Invariant::Identity,
                url,
                format!("is stored under the id {}", hex(page.bytes())),
            );
        }
        let shard = usize::from(self.owner(page).0);
        self.recounts[shard].count_page(Default::default(), share_of_page(page, Some(&record)));
        if public_state(page, &record) != record.published {
            let published = &record.published;
            let detail = format!("is published as {:?}, group {:?}", published.status, published.group);
            self.add_finding(Invariant::Published, &url, detail);
        }
        self.check_event(page, &record);
        if record.rank.first_seen > record.fetched_at {
            self.add_finding(Invariant::Record, &url, "was first seen after its newest fetch");
        }
        if record.rank.popularity.is_some() != record.popularity_at.is_some() {
            self.add_finding(
                Invariant::Record,
                &url,
                "has a popularity without a date, or a date without a popularity",
            );
        }
        if record.popularity_at.is_some_and(|at| at < record.rank.first_seen || at > record.fetched_at) {
            self.add_finding(Invariant::Record, &url, "has a popularity with a date outside of its versions");
        }
        if record.ended.is_some() && !matches!(record.state, State::Dead | State::Purged) {
            self.add_finding(Invariant::Record, &url, "is live, but has the time of its end");
        }
        self.check_inbound_redirects(page, &record);
        self.check_spelling(page, &record);
        match &record.state {
            State::Content(state) => {
                self.check_signature(page, &record, state);
                self.check_search(page, &record, state);
                if let Some(membership) = &state.membership {
                    self.check_membership(page, &record, state, membership);
                }
            }
            State::Redirect(state) => self.check_redirect(page, &record, state),
            State::Dead | State::Purged => {}
        }
    }

    /// Checks that the feed has the page's newest event.
    fn check_event(&mut self, page: PageId, record: &PageRecord) {
        let shard = self.owner(page);
        let row = self.store.get(&key::feed(shard, record.event));
        let found = match row {
            Ok(row) => row.is_some_and(|value| value == page.bytes()),
            Err(error) => return self.add_engine_failure(&error),
        };
        if !found {
            let detail =
                format!("has event {}, but the feed of shard {} does not have it", record.event, shard.0);
            self.add_finding(Invariant::Feed, record.url().to_string(), detail);
        }
    }

    /// Checks the number of redirects that end at a page.
    fn check_inbound_redirects(&mut self, page: PageId, record: &PageRecord) {
        let mut found: u32 = 0;
        if record.inbound_redirects > 0 {
            let prefix = key::edges(self.owner(page), RowKind::InboundRedirect, page);
            let counted = self.store.range(&prefix, &key::after_prefix(&prefix), &mut |_, _| {
                found += 1;
                true
            });
            if let Err(error) = counted {
                return self.add_engine_failure(&error);
            }
        }
        if found != record.inbound_redirects {
            let detail =
                format!("counts {} redirects that end at it, but has {found}", record.inbound_redirects);
            self.add_finding(Invariant::Edge, record.url().to_string(), detail);
        }
        let decided = record.content().is_some_and(|state| state.search != SearchState::Pending);
        let alone = record.content().is_some_and(|state| state.membership.is_none());
        if record.inbound_redirects > 0 && decided && alone {
            self.add_finding(Invariant::Record, record.url().to_string(), "has redirects, but no group");
        }
    }

    /// Checks that a page with a content has the right signature.
    fn check_signature(&mut self, page: PageId, record: &PageRecord, state: &ContentState) {
        let detail = match self.signature_of(page) {
            ReferencedRow::Unreadable => return,
            ReferencedRow::Missing => "has a content, but no signature".to_owned(),
            ReferencedRow::Row(signature) => {
                let has = (signature.content(), signature.tokens(), signature.size());
                let says = (state.content, state.tokens, state.size);
                match self.policy {
                    _ if has != says => {
                        format!("has the content, tokens and size {says:?}, but its signature has {has:?}")
                    }
                    Some(policy) if !policy.accepts(&signature) => {
                        format!(
                            "has a signature of the kind {:?}, which the policy {policy} does not use",
                            signature.kind()
                        )
                    }
                    _ => return,
                }
            }
        };
        self.add_finding(Invariant::Signature, record.url().to_string(), detail);
    }

    /// Reads the signature of a page. The scan reports a damaged signature when it reaches the row.
    pub(super) fn signature_of(&mut self, page: PageId) -> ReferencedRow<Signature> {
        match self.store.get(&key::signature(self.owner(page), page)) {
            Ok(Some(bytes)) => {
                Signature::from_bytes(&bytes).map_or(ReferencedRow::Unreadable, ReferencedRow::Row)
            }
            Ok(None) => ReferencedRow::Missing,
            Err(error) => {
                self.add_engine_failure(&error);
                ReferencedRow::Unreadable
            }
        }
    }

    /// Checks a signature row.
    pub(super) fn signature(&mut self, page: PageId, value: &[u8]) {
        if let Err(error) = Signature::from_bytes(value) {
            let row = format!("the signature of {}", self.describe_page(page));
            return self.add_finding(Invariant::Damage, row, error.to_string());
        }
        let used = match self.record(page) {
            ReferencedRow::Row(record) => record.content().is_some(),
            ReferencedRow::Missing => false,
            ReferencedRow::Unreadable => true,
        };
        if !used {
            let name = self.describe_page(page);
            self.add_finding(Invariant::Signature, name, "has a signature, but no content");
        }
    }

    /// Checks the state of a page's search, and the number of partners that have not answered.
    fn check_search(&mut self, page: PageId, record: &PageRecord, state: &ContentState) {
        let mut wrong = |detail: &str| self.add_finding(Invariant::Record, record.url().to_string(), detail);
        if state.tokens == 0 && state.search != SearchState::Compared {
            wrong("has no tokens, but owes a search");
        }
        if let Some(membership) = &state.membership {
            if membership.content != state.content && state.search != SearchState::Pending {
                wrong("was decided, but is in a group under another content");
            }
            let compared = state.search == SearchState::Compared;
            if membership.content == state.content && membership.compared != compared {
                wrong("and its membership disagree about whether it was compared");
            }
        }
        if let Some(query) = &state.partner_query {
            let under_way = self.underway.partner_messages(page, record.ticket);
            if under_way != query.unanswered {
                let detail = format!(
                    "waits for {} answers, but {under_way} questions and answers are under way",
                    query.unanswered
                );
                self.add_finding(Invariant::Work, record.url().to_string(), detail);
            }
        }
    }

    /// Checks a page's membership against its member row and its group.
    fn check_membership(
        &mut self,
        page: PageId,
        record: &PageRecord,
        state: &ContentState,
        membership: &Membership,
    ) {
        self.check_verdict(page, record, state, membership);
        if self.underway.is_moving(page) {
            return;
        }
        let url = record.url().to_string();
        let (group, membership_number) = (membership.group, record.membership_number);
        let (holder, of_group, member) = match self.find_holder(group, page) {
            Holder::Group(holder, of_group, member) => (holder, of_group, member),
            Holder::Nobody => {
                let detail = format!("is in group {group}, which has no member row for it");
                return self.add_finding(Invariant::Membership, url, detail);
            }
            Holder::Unreadable => return,
        };
        let mut differ = |what: &str| {
            let detail = format!("and its member row in group {holder} differ in {what}");
            self.add_finding(Invariant::Membership, &url, detail);
        };
        for (same, what) in [
            (member.membership_number == membership_number, "the membership number"),
            (member.content == membership.content, "the content"),
            (member.rank == record.rank, "the rank"),
            (member.has_inbound_redirects == (record.inbound_redirects > 0), "whether redirects end at it"),
            (member.dissimilar == membership.dissimilar, "whether it is similar to the winner"),
        ] {
            if !same {
                differ(what);
            }
        }
        self.check_forwarding_entries(page, record, membership, holder);
        let GroupRecord::Active(of_group) = *of_group else { return };
        if of_group.is_continuing() {
            return;
        }
        if membership.group != holder {
            let detail = format!("is in group {group} according to its record, but is a member of {holder}");
            self.add_finding(Invariant::Membership, &url, detail);
        }
        if membership.enrolled_at != holder || membership.forward_probe != ForwardProbe::Idle {
            let detail =
                format!("still sends its messages to group {} instead of {holder}", membership.enrolled_at);
            self.add_finding(Invariant::Membership, &url, detail);
        }
        let recorded = membership.winner.as_ref().map(|w| (w.page, w.content, w.quarantined));
        let present = of_group.winner.as_ref().map(|(page, m)| (*page, m.content, of_group.quarantined));
        if recorded != present {
            let detail = format!("records another winner than group {holder} has");
            self.add_finding(Invariant::Membership, &url, detail);
        }
    }

    /// Follows the forwards from a membership's group to the group that has the page's member row.
    pub(super) fn find_holder(&mut self, group: GroupId, page: PageId) -> Holder {
        let mut at = group;
        loop {
            let record = match self.group_record(at) {
                ReferencedRow::Row(record) => record,
                ReferencedRow::Missing => return Holder::Nobody,
                ReferencedRow::Unreadable => return Holder::Unreadable,
            };
            match self.read::<Member>(&key::member(at, page)) {
                ReferencedRow::Row(member) => return Holder::Group(at, Box::new(record), Box::new(member)),
                ReferencedRow::Unreadable => return Holder::Unreadable,
                ReferencedRow::Missing => {}
            }
            match record {
                GroupRecord::Forward(forward) if forward.into < at => at = forward.into,
                GroupRecord::Forward(_) | GroupRecord::Active(_) => return Holder::Nobody,
            }
        }
    }

    /// Checks that every merged group on the path of a membership's messages has a forwarding entry for it.
    /// The path leads from the group where the membership began to the group `holder` that has the member
    /// row.
    fn check_forwarding_entries(
        &mut self,
        page: PageId,
        record: &PageRecord,
        membership: &Membership,
        holder: GroupId,
    ) {
        let mut at = membership.enrolled_at;
        while at > holder {
            let ReferencedRow::Row(GroupRecord::Forward(forward)) = self.group_record(at) else { break };
            let has_entry = match self.read::<u32>(&key::forwarding_entry(at, page)) {
                ReferencedRow::Row(membership_number) => membership_number == record.membership_number,
                ReferencedRow::Missing => false,
                ReferencedRow::Unreadable => true,
            };
            if !has_entry {
                let detail =
                    format!("sends messages through the merged group {at}, which has no entry for it");
                self.add_finding(Invariant::Merged, record.url().to_string(), detail);
            }
            if forward.into >= at {
                break;
            }
            at = forward.into;
        }
    }

    /// Checks the recorded comparison of a page with the winner of its group.
    fn check_verdict(
        &mut self,
        page: PageId,
        record: &PageRecord,
        state: &ContentState,
        membership: &Membership,
    ) {
        let mut wrong = |detail: &str| self.add_finding(Invariant::Verdict, record.url().to_string(), detail);
        let is_winner = membership.winner.as_ref().is_some_and(|winner| winner.page == page);
        let Some(verdict) = membership.verdict else {
            if is_winner && membership.dissimilar {
                wrong("is the winner, but is marked as dissimilar to the winner");
            }
            return;
        };
        let Some(winner) = &membership.winner else { return wrong("has a verdict, but no winner") };
        if verdict.content != winner.content {
            return wrong("has a verdict about another content than the winner's");
        }
        if membership.dissimilar == (verdict.similar || is_winner) {
            wrong("is marked as similar or dissimilar to the winner against its verdict");
        }
        let Some(policy) = self.policy else { return };
        let Some(expected) = self.measured(page, state, winner.page, winner.content, policy) else { return };
        if expected != verdict {
            let ContentComparison { similarity: Similarity { shared, of }, similar, .. } = expected;
            let detail = format!(
                "is compared with {} as {verdict:?}, but they share {shared} of {of}: similar is {similar}",
                winner.url
            );
            self.add_finding(Invariant::Verdict, record.url().to_string(), detail);
        }
    }

    /// Compares a page with its winner again. `None` if the signature of one of the two contents is missing
    /// or unreadable.
    fn measured(
        &mut self,
        page: PageId,
        state: &ContentState,
        winner: PageId,
        content: ContentHash,
        policy: doppel_model::pairwise::Policy,
    ) -> Option<ContentComparison> {
        let ReferencedRow::Row(signature) = self.signature_of(page) else { return None };
        if signature.content() != state.content {
            return None;
        }
        let is_cached =
            |(page, cached, _): &(PageId, ContentHash, Signature)| (*page, *cached) == (winner, content);
        if !self.winner.as_ref().is_some_and(is_cached) {
            let ReferencedRow::Row(representative) = self.signature_of(winner) else { return None };
            if representative.content() != content {
                return None;
            }
            self.winner = Some((winner, content, representative));
        }
        let (_, _, representative) = self.winner.as_ref()?;
        let comparison = policy.compare(&signature, representative);
        Some(ContentComparison { content, similarity: comparison.similarity, similar: comparison.similar })
    }
}
