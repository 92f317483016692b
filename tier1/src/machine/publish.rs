//! The public state of a page.
//!
//! Invariant: the public state is a function of the page's record. [`Machine::put`] derives it whenever it
//! stores a record, and writes an event to the feed if the state has changed.

use doppel_contract::Status;
use doppel_model::pairwise::Similarity;
use doppel_model::{PageId, PageUrl};

use super::{Audience, Effect, Machine, Message};
use crate::rows::key;
use crate::rows::record::{
    ContentComparison, ContentState, PageRecord, PublicState, Reach, RedirectState, Resolution, SearchState,
    State, TargetState,
};
use crate::storage::store::StoreError;

impl Machine<'_, '_> {
    /// Stores a record and everything that follows from it: the verdict on the winner, the public state, an
    /// event, and messages to the redirects that end at the page.
    pub(super) fn put(&mut self, page: PageId, mut record: PageRecord) -> Result<(), StoreError> {
        if let State::Content(state) = &mut record.state {
            self.find_verdict(page, state);
            self.report_verdict(page, record.membership_number, state);
        }
        let published = public_state(page, &record);
        let changed = published != record.published;
        if changed {
            record.published = published;
            let shard = self.current_shard;
            if record.event > 0 {
                self.txn.delete(key::feed(shard, record.event));
            }
            let meta = self.meta();
            meta.events += 1;
            record.event = meta.events;
            self.txn.put(key::feed(shard, record.event), page.bytes().to_vec());
            self.effects.push(Effect::Changed);
        }
        let tell = changed && record.inbound_redirects > 0;
        self.txn.put_page(self.current_shard, page, record)?;
        if tell {
            let reach = Reach { through: None, hops_left: 0 };
            self.tell_redirects(page, Audience::InboundRedirects, reach)?;
        }
        Ok(())
    }

    /// Finds the comparison with the winner among the known comparisons, or orders it.
    fn find_verdict(&mut self, page: PageId, state: &mut ContentState) {
        if !state.owes_verdict(page) {
            return;
        }
        let Some(membership) = &mut state.membership else { return };
        let Some(winner) = &membership.winner else { return };
        let known = if winner.content == state.content {
            let (content, similarity) = (state.content, Similarity::of_copies(state.size));
            Some(ContentComparison { content, similarity, similar: state.tokens > 0 })
        } else {
            state.measured.iter().find(|m| m.content == winner.content).copied()
        };
        match known {
            Some(verdict) => membership.verdict = Some(verdict),
            None => self.effects.push(Effect::Verify {
                page,
                content: state.content,
                winner: winner.page,
                winner_content: winner.content,
            }),
        }
    }

    /// Tells the group's owner if the verdict on the winner has changed.
    fn report_verdict(&mut self, page: PageId, membership_number: u32, state: &mut ContentState) {
        let Some(membership) = &mut state.membership else { return };
        let dissimilar = match (&membership.winner, membership.verdict) {
            (Some(winner), _) if winner.page == page => false,
            (Some(_), Some(verdict)) => !verdict.similar,
            // Without a verdict, the last report stands.
            _ => return,
        };
        if membership.dissimilar != dissimilar {
            membership.dissimilar = dissimilar;
            membership.covered_by = None;
            membership.message_sent();
            let group = membership.enrolled_at;
            self.send(group.shard(), Message::Dissimilar { group, page, membership_number, dissimilar });
        }
    }
}

/// Returns the state that a page sends to the redirects whose chain ends there.
pub(crate) fn target_state(url: &PageUrl, published: &PublicState) -> TargetState {
    let kept = match published.status {
        Status::Winner | Status::Secondary => Some(url.clone()),
        _ => published.duplicate_of.clone(),
    };
    TargetState { status: published.status, group: published.group, winner: published.winner.clone(), kept }
}

/// Derives the public state of a page from its record.
pub(crate) fn public_state(page: PageId, record: &PageRecord) -> PublicState {
    match &record.state {
        State::Content(state) => public_state_of_content(page, state),
        State::Redirect(state) => public_state_of_redirect(state),
        State::Dead => PublicState::of(Status::Dead),
        State::Purged => PublicState::of(Status::Unknown),
    }
}

fn public_state_of_content(page: PageId, state: &ContentState) -> PublicState {
    let membership = state.membership.as_ref();
    let winner = membership.and_then(|m| m.winner.as_ref());
    let verdict = membership
        .and_then(|m| m.verdict)
        .filter(|v| winner.is_some_and(|w| w.content == v.content && w.page != page));
    let similar = verdict.filter(|verdict| verdict.similar);
    // The cover was found for a page that differs from this winner, so it counts only with a verdict on this
    // winner.
    let covered_by = membership.and_then(|m| m.covered_by.as_ref()).filter(|_| verdict.is_some());
    let (status, kept) = match (membership, winner) {
        _ if state.search == SearchState::Pending => (Status::Pending, None),
        (None, _) => (Status::Unique, None),
        // The page has minted or entered a group, and does not know the winner yet.
        (Some(_), None) => (Status::Pending, None),
        (Some(_), Some(winner)) if winner.page == page => (Status::Winner, None),
        (Some(_), Some(winner)) if winner.quarantined => (Status::Secondary, None),
        (Some(_), Some(winner)) => match (similar, covered_by) {
            (Some(with), _) => (Status::Duplicate, Some((&winner.url, with))),
            (None, Some(kept)) => (Status::Duplicate, Some((&kept.url, kept.with))),
            (None, None) => (Status::Secondary, None),
        },
    };
    let similarity = kept.map(|(_, with)| with.similarity);
    PublicState {
        status,
        group: membership.filter(|_| winner.is_some()).map(|m| m.group),
        winner: winner.map(|w| w.url.clone()),
        duplicate_of: kept.map(|(url, _)| url.clone()),
        similarity,
        reason: None,
    }
}

fn public_state_of_redirect(state: &RedirectState) -> PublicState {
    let pending = PublicState::of(Status::Pending);
    match (state.resolution, &state.target) {
        (None, _) | (Some(Resolution::Content(_)), None) => pending,
        (Some(Resolution::Unresolved(reason)), _) => {
            PublicState { status: Status::Unresolved, reason: Some(reason), ..pending }
        }
        (Some(Resolution::Content(_)), Some(target)) => {
            let status = match target.status {
                Status::Winner | Status::Secondary | Status::Duplicate => Status::Duplicate,
                // A target without a group is about to get one, because this redirect is attached to it.
                _ => Status::Pending,
            };
            let TargetState { group, winner, kept, .. } = target.clone();
            let duplicate_of = kept.filter(|_| status == Status::Duplicate);
            PublicState { status, group, winner, duplicate_of, ..pending }
        }
    }
}
