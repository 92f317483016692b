//! F of a new version and its page's representative, before it enters the machine.
//!
//! Runs in the caller's thread, so that the comparison is spread over the callers. What is read here
//! may be old by the time the command is applied; the machine checks the contents it names.

use doppel_protocol::{Body, Submission, Tier1Error};

use super::Tier1;
use super::worker::measure;
use crate::key;
use crate::machine::Hint;
use crate::record::{PageRecord, State};
use crate::txn::read;

impl Tier1 {
    pub(crate) fn hint(&self, submission: &Submission) -> Result<Option<Hint>, Tier1Error> {
        std::thread::yield_now();
        let Body::Content(signature) = &submission.body else { return Ok(None) };
        let page = submission.url.id();
        let Some(record) = read::<PageRecord>(&*self.store, &key::page(self.owner(page), page))? else {
            return Ok(None);
        };
        let State::Content(state) = &record.state else { return Ok(None) };
        if state.content == signature.content() || submission.fetched_at < record.fetched_at {
            return Ok(None);
        }
        // The winner of its group; a winner and a page on its own are represented by their last content.
        let (representative, content) = match state.membership.as_ref().and_then(|m| m.winner.as_ref()) {
            Some(winner) if winner.page != page => (winner.page, winner.content),
            _ => (page, state.content),
        };
        let Some(with) = self.read_signature(representative)?.filter(|s| s.content() == content) else {
            return Ok(None);
        };
        Ok(Some(Hint {
            previous: state.content,
            membership_number: record.membership_number,
            with: measure(self, signature, &with),
        }))
    }
}
