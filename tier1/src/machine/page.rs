//! A page at its owner: applying its versions, and purging it.
//!
//! The modules below order the versions of a batch (`batch`), find the groups of a content's partners
//! (`search`), and represent the page in its group (`membership`).
//!
//! Invariant: the record of a page is a function of the set of its versions, independent of their order of
//! arrival. The version with the greatest [place](doppel_protocol::VersionPlace) stands for the page. All
//! versions count for the date of first sight and for the popularity.

pub(super) mod batch;
mod membership;
mod search;

use std::cmp::Ordering;
use std::sync::Arc;

use doppel_contract::{Status, SubmissionOutcome};
use doppel_model::signature::Signature;
use doppel_model::{ClientId, PageId, PageUrl};
use doppel_protocol::{Body, IndexCommand, Rank, Search, Submission};

use super::{Effect, Hint, Machine, Message};
use crate::rows::key;
use crate::rows::record::{ContentState, PageRecord, PublicState, RecordChanges, SearchState, State};
use crate::storage::store::StoreError;

impl Machine<'_, '_> {
    /// Handles [`Command::Submit`](super::Command::Submit): applies a version and reports the outcome.
    pub(super) fn submit(
        &mut self,
        submission: Submission,
        hint: Option<Hint>,
        client: ClientId,
    ) -> Result<(), StoreError> {
        let page = submission.url.id();
        self.current_shard = self.shards.owner(page);
        self.meta().counters.submissions += 1;
        let outcome = match self.take(page)? {
            None => self.apply_first_version(page, submission, None, client)?,
            Some(record) if record.url() != &submission.url => {
                // Two URLs share a 128-bit hash, which does not happen by accident. The first URL keeps the
                // record.
                self.give_back(page, record)?;
                SubmissionOutcome::Stale
            }
            Some(record) => match record.place().map(|place| submission.place().cmp(&place)) {
                None => self.apply_first_version(page, submission, Some(record), client)?,
                Some(Ordering::Less) => self.apply_stale_version(page, record, &submission)?,
                Some(Ordering::Equal) => self.apply_same_version(page, record, &submission)?,
                Some(Ordering::Greater) => {
                    self.apply_next_version(page, record, submission, (hint, client))?
                }
            },
        };
        match outcome {
            SubmissionOutcome::Unchanged => self.meta().counters.unchanged += 1,
            SubmissionOutcome::Stale => self.meta().counters.stale += 1,
            SubmissionOutcome::Confirmed | SubmissionOutcome::Pending => {}
        }
        self.effects.push(Effect::Outcome(outcome));
        Ok(())
    }

    fn apply_first_version(
        &mut self,
        page: PageId,
        submission: Submission,
        purged: Option<PageRecord>,
        client: ClientId,
    ) -> Result<SubmissionOutcome, StoreError> {
        let first = self.meta().first_membership_number;
        let (language, canonical) = details(&submission.body, submission.language, submission.canonical);
        let mut record = PageRecord {
            rank: Rank {
                url: submission.url,
                popularity: submission.popularity,
                first_seen: submission.fetched_at,
            },
            fetched_at: submission.fetched_at,
            popularity_at: submission.popularity.map(|_| submission.fetched_at),
            language,
            canonical,
            state: State::Purged,
            membership_number: first,
            ticket: first,
            inbound_redirects: 0,
            ended: None,
            event: 0,
            published: PublicState::of(Status::Unknown),
        };
        if let Some(old) = purged {
            // The counters continue, so messages about the page's earlier life stay void.
            record.membership_number = old.membership_number;
            record.ticket = old.ticket;
            record.inbound_redirects = old.inbound_redirects;
            record.event = old.event;
            record.published = old.published;
        }
        self.become_state(page, record, submission.body, client)
    }

    /// Applies a version that precedes the one on record. Only the date of first sight and the popularity can
    /// change.
    fn apply_stale_version(
        &mut self,
        page: PageId,
        mut record: PageRecord,
        submission: &Submission,
    ) -> Result<SubmissionOutcome, StoreError> {
        let changes = record.note(submission);
        self.put_changed(page, record, changes)?;
        Ok(SubmissionOutcome::Stale)
    }

    /// Applies the version on record again. Its attributes may differ.
    fn apply_same_version(
        &mut self,
        page: PageId,
        mut record: PageRecord,
        submission: &Submission,
    ) -> Result<SubmissionOutcome, StoreError> {
        let mut changes = record.note(submission);
        if submission.details() > record.details() {
            let (language, canonical) = submission.details();
            (record.language, record.canonical) = (language.map(Into::into), canonical.cloned());
            changes.row = true;
        }
        self.put_changed(page, record, changes)?;
        Ok(SubmissionOutcome::Unchanged)
    }

    /// Stores a record after a version that does not replace the one on record, if the record has changed.
    fn put_changed(
        &mut self,
        page: PageId,
        mut record: PageRecord,
        changes: RecordChanges,
    ) -> Result<(), StoreError> {
        if changes.rank {
            self.refresh_member(page, &mut record, false);
        }
        if changes.row { self.put(page, record) } else { self.give_back(page, record) }
    }

    /// Applies a version that replaces the one on record.
    fn apply_next_version(
        &mut self,
        page: PageId,
        mut record: PageRecord,
        submission: Submission,
        (hint, client): (Option<Hint>, ClientId),
    ) -> Result<SubmissionOutcome, StoreError> {
        let RecordChanges { rank: rank_changed, .. } = record.note(&submission);
        record.fetched_at = submission.fetched_at;
        (record.language, record.canonical) =
            details(&submission.body, submission.language, submission.canonical);
        let same = match (&record.state, &submission.body) {
            (State::Content(old), Body::Content(new)) => old.content == new.content(),
            (State::Redirect(old), Body::Redirect(to)) => old.to == *to,
            (State::Dead, Body::Dead) => true,
            _ => false,
        };
        if same {
            if rank_changed {
                self.refresh_member(page, &mut record, false);
            }
            self.put(page, record)?;
            return Ok(SubmissionOutcome::Unchanged);
        }
        if let (State::Content(_), Body::Content(new)) = (&record.state, &submission.body) {
            return self.change_content(page, record, new, (hint, client), rank_changed);
        }
        self.end_state(page, &mut record);
        self.become_state(page, record, submission.body, client)
    }

    /// Replaces a content by another content. The new content is confirmed if the hint holds, and pending
    /// otherwise.
    fn change_content(
        &mut self,
        page: PageId,
        mut record: PageRecord,
        new: &Arc<Signature>,
        (hint, client): (Option<Hint>, ClientId),
        rank_changed: bool,
    ) -> Result<SubmissionOutcome, StoreError> {
        let State::Content(mut state) = record.state else { return Ok(SubmissionOutcome::Stale) };
        self.txn.put(key::signature(self.current_shard, page), new.as_bytes().to_vec());
        let old = state.content;
        let old_in_index = state.tokens > 0;
        // The representative may have changed since the hint was computed. That does no harm, because the
        // deferred search and the recomputation of the dirty group correct the result.
        let confirmed = hint.filter(|hint| {
            hint.previous == old
                && hint.membership_number == record.membership_number
                && hint.with.similar
                && state.search != SearchState::Pending
                && state.membership.as_ref().is_none_or(|m| m.content == old)
        });
        // The page returns to the content of its membership before another content was decided. To the group
        // nothing has changed, so it would not tell the winner again. So the page begins a new membership.
        if let Some(m) = state.membership.take_if(|m| m.content == new.content()) {
            self.leave(page, &mut record.membership_number, &m);
        }
        let compared_before = state.membership.as_ref().is_some_and(|m| m.compared);
        state.content = new.content();
        state.tokens = new.tokens();
        state.size = new.size();
        state.partner_query = None;
        state.measured.clear();
        if let Some(m) = &mut state.membership {
            m.verdict = None;
        }
        record.ticket += 1;
        let outcome = if let Some(hint) = confirmed {
            self.meta().counters.confirmed += 1;
            let owed = self.shards.settings.rules.deferred_searches;
            state.search = if owed { SearchState::Deferred } else { SearchState::Compared };
            state.client = ClientId::NONE;
            state.measured.push(hint.with);
            if let Some(m) = &mut state.membership {
                m.content = state.content;
                m.covered_by = None;
                m.compared = !owed;
            }
            self.effects.push(Effect::put(page, new, None));
            if owed {
                self.effects.push(Effect::Deferred(page));
            }
            SubmissionOutcome::Confirmed
        } else {
            self.meta().counters.compared_updates += 1;
            state.search = SearchState::Pending;
            state.client = client;
            if state.tokens > 0 {
                let search = Search { ticket: record.ticket, client };
                self.effects.push(Effect::put(page, new, Some(search)));
            }
            SubmissionOutcome::Pending
        };
        // Tier 2 stores the new content before it removes the old one (G4).
        if old_in_index {
            self.effects.push(Effect::Index(IndexCommand::Remove { page, content: old }));
        }
        let without_tokens = state.tokens == 0;
        record.state = State::Content(state);
        if without_tokens {
            self.decide(page, record, &[], false)?;
            return Ok(SubmissionOutcome::Confirmed);
        }
        if outcome == SubmissionOutcome::Confirmed {
            self.refresh_member(page, &mut record, !compared_before);
        } else if rank_changed {
            self.refresh_member(page, &mut record, false);
        }
        self.put(page, record)?;
        Ok(outcome)
    }

    /// Releases what the page's present state holds elsewhere: index entry, signature, membership, and
    /// redirect edges.
    fn end_state(&mut self, page: PageId, record: &mut PageRecord) {
        match &mut record.state {
            State::Content(state) => {
                if state.tokens > 0 {
                    let content = state.content;
                    self.effects.push(Effect::Index(IndexCommand::Remove { page, content }));
                }
                self.txn.delete(key::signature(self.current_shard, page));
                if let Some(membership) = state.membership.take() {
                    self.leave(page, &mut record.membership_number, &membership);
                }
            }
            State::Redirect(state) => {
                let target = state.to.normal_id();
                let end = state.attached_to();
                self.send_to_page(target, Message::Unsubscribe { target, source: page });
                if let Some(end) = end {
                    self.send_to_page(end, Message::DetachRedirect { target: end, source: page });
                }
            }
            State::Dead | State::Purged => {}
        }
        record.ticket += 1;
    }

    /// Gives a page without a state its new state.
    fn become_state(
        &mut self,
        page: PageId,
        mut record: PageRecord,
        body: Body,
        client: ClientId,
    ) -> Result<SubmissionOutcome, StoreError> {
        record.ended = None;
        let url = record.url().clone();
        let outcome = match body {
            Body::Content(signature) => {
                self.txn.put(key::signature(self.current_shard, page), signature.as_bytes().to_vec());
                record.ticket += 1;
                record.state = State::Content(ContentState {
                    content: signature.content(),
                    tokens: signature.tokens(),
                    size: signature.size(),
                    search: SearchState::Pending,
                    client,
                    partner_query: None,
                    membership: None,
                    measured: Vec::new(),
                });
                if signature.tokens() == 0 {
                    self.decide(page, record, &[], false)?;
                    self.reroute_sources(&url, true)?;
                    return Ok(SubmissionOutcome::Confirmed);
                }
                let search = Search { ticket: record.ticket, client };
                self.effects.push(Effect::put(page, &signature, Some(search)));
                SubmissionOutcome::Pending
            }
            Body::Redirect(to) => {
                self.begin_redirect(page, &mut record, to);
                SubmissionOutcome::Pending
            }
            Body::Dead => {
                record.state = State::Dead;
                SubmissionOutcome::Confirmed
            }
        };
        self.put(page, record)?;
        self.reroute_sources(&url, true)?;
        Ok(outcome)
    }

    /// Handles [`Command::Purge`](super::Command::Purge): forgets a page, but keeps its row.
    pub(super) fn purge(&mut self, page: PageId) -> Result<(), StoreError> {
        self.current_shard = self.shards.owner(page);
        let Some(mut record) = self.take(page)? else { return Ok(()) };
        self.end_state(page, &mut record);
        record.state = State::Purged;
        record.ended = None;
        record.language = None;
        record.canonical = None;
        record.rank.popularity = None;
        record.popularity_at = None;
        let url = record.url().clone();
        self.put(page, record)?;
        self.reroute_sources(&url, false)
    }
}

/// Returns the attributes of a version, like [`Submission::details`], but owned.
fn details(
    body: &Body,
    language: Option<Box<str>>,
    canonical: Option<PageUrl>,
) -> (Option<Box<str>>, Option<PageUrl>) {
    if matches!(body, Body::Dead) { (None, None) } else { (language, canonical) }
}
