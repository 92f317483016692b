//! A page's row: by itself, its signature, its event, and its side of a membership.

use doppel_model::pairwise::Similarity;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, GroupId, PageId};

use super::{Checker, Found, Invariant, hex};
use crate::key::{self, Kind};
use crate::machine::public_state;
use crate::record::{
    ContentComparison, ContentState, ForwardProbe, GroupRecord, Member, Membership, PageRecord, SearchState,
    State,
};
use crate::txn::share_of_page;

/// The group that has a page's row, as found from what its membership says.
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
            return self.find(Invariant::Identity, url, format!("is under {}", hex(page.bytes())));
        }
        let shard = usize::from(self.owner(page).0);
        self.recounts[shard].count_page(Default::default(), share_of_page(page, Some(&record)));
        if public_state(page, &record) != record.published {
            let published = &record.published;
            let detail = format!("is published as {:?}, group {:?}", published.status, published.group);
            self.find(Invariant::Published, &url, detail);
        }
        self.check_event(page, &record);
        if record.rank.first_seen > record.fetched_at {
            self.find(Invariant::Record, &url, "was first seen after its newest fetch");
        }
        if record.rank.popularity.is_some() != record.popularity_at.is_some() {
            self.find(
                Invariant::Record,
                &url,
                "has a popularity without a date, or a date without a popularity",
            );
        }
        if record.popularity_at.is_some_and(|at| at < record.rank.first_seen || at > record.fetched_at) {
            self.find(Invariant::Record, &url, "has the popularity of no version");
        }
        if record.ended.is_some() && !matches!(record.state, State::Dead | State::Purged) {
            self.find(Invariant::Record, &url, "is live and has an end");
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

    /// The page has one event, and it is its newest.
    fn check_event(&mut self, page: PageId, record: &PageRecord) {
        let shard = self.owner(page);
        let row = self.store.get(&key::feed(shard, record.event));
        let found = match row {
            Ok(row) => row.is_some_and(|value| value == page.bytes()),
            Err(error) => return self.engine(&error),
        };
        if !found {
            let detail = format!("has the event {}, and the feed of shard {} not", record.event, shard.0);
            self.find(Invariant::Feed, record.url().to_string(), detail);
        }
    }

    fn check_inbound_redirects(&mut self, page: PageId, record: &PageRecord) {
        let mut there: u32 = 0;
        if record.inbound_redirects > 0 {
            let prefix = key::edges(self.owner(page), Kind::InboundRedirect, page);
            let counted = self.store.range(&prefix, &key::after_prefix(&prefix), &mut |_, _| {
                there += 1;
                true
            });
            if let Err(error) = counted {
                return self.engine(&error);
            }
        }
        if there != record.inbound_redirects {
            let detail = format!(
                "counts {} redirects that end there, and there are {there}",
                record.inbound_redirects
            );
            self.find(Invariant::Edge, record.url().to_string(), detail);
        }
        let decided = record.content().is_some_and(|state| state.search != SearchState::Pending);
        let alone = record.content().is_some_and(|state| state.membership.is_none());
        if record.inbound_redirects > 0 && decided && alone {
            self.find(Invariant::Record, record.url().to_string(), "has redirects and no group");
        }
    }

    fn check_signature(&mut self, page: PageId, record: &PageRecord, state: &ContentState) {
        let detail = match self.signature_of(page) {
            Found::Unreadable => return,
            Found::Missing => "has a content and no signature".to_owned(),
            Found::Row(signature) => {
                let has = (signature.content(), signature.tokens(), signature.size());
                let says = (state.content, state.tokens, state.size);
                match self.policy {
                    _ if has != says => {
                        format!("has the content, tokens and size {says:?}, and its signature {has:?}")
                    }
                    Some(policy) if !policy.accepts(&signature) => {
                        format!(
                            "has a signature of {:?}, which is none of the policy {policy}",
                            signature.kind()
                        )
                    }
                    _ => return,
                }
            }
        };
        self.find(Invariant::Signature, record.url().to_string(), detail);
    }

    /// The signature row of a page; one that is damaged is reported where it is met itself.
    pub(super) fn signature_of(&mut self, page: PageId) -> Found<Signature> {
        match self.store.get(&key::signature(self.owner(page), page)) {
            Ok(Some(bytes)) => Signature::from_bytes(&bytes).map_or(Found::Unreadable, Found::Row),
            Ok(None) => Found::Missing,
            Err(error) => {
                self.engine(&error);
                Found::Unreadable
            }
        }
    }

    /// A signature row.
    pub(super) fn signature(&mut self, page: PageId, value: &[u8]) {
        if let Err(error) = Signature::from_bytes(value) {
            let row = format!("the signature of {}", self.name(page));
            return self.find(Invariant::Damage, row, error.to_string());
        }
        let used = match self.record(page) {
            Found::Row(record) => record.content().is_some(),
            Found::Missing => false,
            Found::Unreadable => true,
        };
        if !used {
            let name = self.name(page);
            self.find(Invariant::Signature, name, "has a signature and no content");
        }
    }

    /// How far the comparison is, and which partners have not answered.
    fn check_search(&mut self, page: PageId, record: &PageRecord, state: &ContentState) {
        let mut wrong = |detail: &str| self.find(Invariant::Record, record.url().to_string(), detail);
        if state.tokens == 0 && state.search != SearchState::Compared {
            wrong("has no tokens and owes a comparison");
        }
        if let Some(membership) = &state.membership {
            if membership.content != state.content && state.search != SearchState::Pending {
                wrong("was decided and is in a group under another content");
            }
            let compared = state.search == SearchState::Compared;
            if membership.content == state.content && membership.compared != compared {
                wrong("and its membership differ about whether it was compared");
            }
        }
        if let Some(query) = &state.partner_query {
            let under_way = self.underway.asked(page, record.ticket);
            if under_way != query.unanswered {
                let detail = format!(
                    "waits for {} answers, and {under_way} questions and answers are under way",
                    query.unanswered
                );
                self.find(Invariant::Work, record.url().to_string(), detail);
            }
        }
    }

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
        let (holder, of_group, member) = match self.holder(group, page) {
            Holder::Group(holder, of_group, member) => (holder, of_group, member),
            Holder::Nobody => {
                let detail = format!("is in group {group}, which has no row of it");
                return self.find(Invariant::Membership, url, detail);
            }
            Holder::Unreadable => return,
        };
        let mut differ = |what: &str| {
            self.find(Invariant::Membership, &url, format!("and its row in group {holder} differ in {what}"));
        };
        for (same, what) in [
            (member.membership_number == membership_number, "the membership number"),
            (member.content == membership.content, "the content"),
            (member.rank == record.rank, "the rank"),
            (member.has_inbound_redirects == (record.inbound_redirects > 0), "whether redirects end there"),
            (member.dissimilar == membership.dissimilar, "whether it is like the winner"),
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
            let detail = format!("is in group {group} by its record, and in {holder} by the group's");
            self.find(Invariant::Membership, &url, detail);
        }
        if membership.enrolled_at != holder || membership.forward_probe != ForwardProbe::Idle {
            let detail = format!("uses the address {} for group {holder}", membership.enrolled_at);
            self.find(Invariant::Membership, &url, detail);
        }
        let told = membership.winner.as_ref().map(|w| (w.page, w.content, w.quarantined));
        let is = of_group.winner.as_ref().map(|(page, m)| (*page, m.content, of_group.quarantined));
        if told != is {
            let detail = format!("was told another winner than group {holder} has");
            self.find(Invariant::Membership, &url, detail);
        }
    }

    /// Follows a membership's group to the one that has its row.
    pub(super) fn holder(&mut self, group: GroupId, page: PageId) -> Holder {
        let mut at = group;
        loop {
            let record = match self.group_record(at) {
                Found::Row(record) => record,
                Found::Missing => return Holder::Nobody,
                Found::Unreadable => return Holder::Unreadable,
            };
            match self.read::<Member>(&key::member(at, page)) {
                Found::Row(member) => return Holder::Group(at, Box::new(record), Box::new(member)),
                Found::Unreadable => return Holder::Unreadable,
                Found::Missing => {}
            }
            match record {
                GroupRecord::Forward(forward) if forward.into < at => at = forward.into,
                GroupRecord::Forward(_) | GroupRecord::Active(_) => return Holder::Nobody,
            }
        }
    }

    /// Every merged group between where a membership began and its holder has a forwarding entry for it.
    fn check_forwarding_entries(
        &mut self,
        page: PageId,
        record: &PageRecord,
        membership: &Membership,
        holder: GroupId,
    ) {
        let mut at = membership.enrolled_at;
        while at > holder {
            let Found::Row(GroupRecord::Forward(forward)) = self.group_record(at) else { break };
            let passes = match self.read::<u32>(&key::forwarding_entry(at, page)) {
                Found::Row(membership_number) => membership_number == record.membership_number,
                Found::Missing => false,
                Found::Unreadable => true,
            };
            if !passes {
                let detail = format!("passes the merged group {at}, which does not know");
                self.find(Invariant::Merged, record.url().to_string(), detail);
            }
            if forward.into >= at {
                break;
            }
            at = forward.into;
        }
    }

    /// What is known of the page and its winner.
    fn check_verdict(
        &mut self,
        page: PageId,
        record: &PageRecord,
        state: &ContentState,
        membership: &Membership,
    ) {
        let mut wrong = |detail: &str| self.find(Invariant::Verdict, record.url().to_string(), detail);
        let is_winner = membership.winner.as_ref().is_some_and(|winner| winner.page == page);
        let Some(verdict) = membership.verdict else {
            if is_winner && membership.dissimilar {
                wrong("is the winner and reported as unlike it");
            }
            return;
        };
        let Some(winner) = &membership.winner else { return wrong("was compared with no winner") };
        if verdict.content != winner.content {
            return wrong("was compared with another content than the winner's");
        }
        if membership.dissimilar == (verdict.similar || is_winner) {
            wrong("was reported to its group as what it is not");
        }
        let Some(policy) = self.policy else { return };
        let Some(expected) = self.measured(page, state, winner.page, winner.content, policy) else { return };
        if expected != verdict {
            let ContentComparison { similarity: Similarity { shared, of }, similar, .. } = expected;
            let detail = format!(
                "is compared with {} as {verdict:?}, and they share {shared} of {of}: similar is {similar}",
                winner.url
            );
            self.find(Invariant::Verdict, record.url().to_string(), detail);
        }
    }

    /// The comparison made anew; none where one of the contents cannot be had any more.
    fn measured(
        &mut self,
        page: PageId,
        state: &ContentState,
        winner: PageId,
        content: ContentHash,
        policy: doppel_model::pairwise::Policy,
    ) -> Option<ContentComparison> {
        let Found::Row(signature) = self.signature_of(page) else { return None };
        if signature.content() != state.content {
            return None;
        }
        let known =
            |(page, known, _): &(PageId, ContentHash, Signature)| (*page, *known) == (winner, content);
        if !self.winner.as_ref().is_some_and(known) {
            let Found::Row(representative) = self.signature_of(winner) else { return None };
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
