//! Hints: F of a new version and the representative of its page, computed before the version enters the
//! machine.
//!
//! The comparison runs in the thread of the caller, so comparisons are spread over the callers. The rows that
//! it reads may be out of date when the command is applied. The machine therefore checks the contents that
//! the hint names.

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_protocol::{Body, Submission, Tier1Error};

use crate::machine::Hint;
use crate::rows::record::{PageRecord, State};
use crate::service::submissions::Submissions;
use crate::service::upkeep::worker::measure;

/// Submissions whose rows are read together.
const TOGETHER: usize = 64;

/// A submission to compare with its representative.
struct HintRequest<'s> {
    /// Index of the submission.
    at: usize,
    page: PageId,
    signature: &'s Signature,
    previous: ContentHash,
    membership_number: u32,
    representative: PageId,
    content: ContentHash,
}

impl Submissions {
    /// The comparison for each submission, or `None` if there is nothing to compare. Tier 2 compares a page
    /// without a hint, so a damaged signature can be replaced.
    pub(crate) fn hints(&self, submissions: &[Submission]) -> Vec<Option<Hint>> {
        let mut hints = Vec::with_capacity(submissions.len());
        let mut is_away = false;
        for submissions in submissions.chunks(TOGETHER) {
            let mut of_these = vec![None; submissions.len()];
            // Each further read of a node that is away would wait again.
            if !is_away {
                let made = self.make_hints(submissions, &mut |at, hint| of_these[at] = Some(hint));
                if let Err(refused) = made {
                    tracing::warn!(%refused, "cannot compare updates with their representatives; tier 2 compares them");
                    is_away = matches!(refused, Tier1Error::Unavailable(_));
                }
            }
            hints.append(&mut of_these);
        }
        hints
    }

    fn make_hints(
        &self,
        submissions: &[Submission],
        each: &mut dyn FnMut(usize, Hint),
    ) -> Result<(), Tier1Error> {
        let contents = submissions.iter().enumerate().filter(|(_, s)| matches!(s.body, Body::Content(_)));
        let (places, pages): (Vec<usize>, Vec<PageId>) = contents.map(|(at, s)| (at, s.url.id())).unzip();
        let mut wanted = Vec::new();
        match self.rows.pages(&pages) {
            Ok(records) => {
                for (at, record) in places.into_iter().zip(records) {
                    wanted.extend(record.and_then(|record| representative_of(at, &submissions[at], &record)));
                }
            }
            // One row cannot be read. Try the submissions one by one.
            Err(_) if submissions.len() > 1 => {
                for (at, submission) in submissions.iter().enumerate() {
                    let made =
                        self.make_hints(std::slice::from_ref(submission), &mut |_, hint| each(at, hint));
                    if let Err(refused) = made {
                        tracing::warn!(%refused, url = %submission.url, "cannot compare an update with its representative; tier 2 compares it");
                    }
                }
                return Ok(());
            }
            Err(refused) => return Err(refused),
        }
        wanted.retain(|wanted| match self.winner_signatures.get(wanted.content) {
            Some(with) => {
                each(wanted.at, self.hint(wanted, &with));
                false
            }
            None => true,
        });
        // In order of shards, so that signatures of one range are read together.
        wanted.sort_unstable_by_key(|wanted| self.collection.shard_of(wanted.representative));
        while !wanted.is_empty() {
            let pages: Vec<PageId> = wanted.iter().map(|wanted| wanted.representative).collect();
            let read = self.rows.first_signatures(&pages)?;
            let rest = wanted.split_off(read.len().min(wanted.len()));
            for (wanted, with) in std::mem::replace(&mut wanted, rest).into_iter().zip(read) {
                std::thread::yield_now();
                match with {
                    Ok(Some(with)) if with.content() == wanted.content => {
                        if wanted.representative != wanted.page {
                            self.winner_signatures.keep(&with);
                        }
                        each(wanted.at, self.hint(&wanted, &with));
                    }
                    Ok(_) => {}
                    Err(refused) => {
                        tracing::warn!(%refused, url = %submissions[wanted.at].url, "cannot compare an update with its representative; tier 2 compares it");
                    }
                }
            }
        }
        Ok(())
    }

    fn hint(&self, wanted: &HintRequest<'_>, with: &Signature) -> Hint {
        let HintRequest { previous, membership_number, signature, .. } = *wanted;
        Hint { previous, membership_number, with: measure(self.collection.settings.policy, signature, with) }
    }
}

/// The representative to compare a submission with. `None` if the content has not changed or there is nothing
/// to compare with.
fn representative_of<'s>(
    at: usize,
    submission: &'s Submission,
    record: &PageRecord,
) -> Option<HintRequest<'s>> {
    let Body::Content(signature) = &submission.body else { return None };
    let State::Content(state) = &record.state else { return None };
    if state.content == signature.content() || Some(submission.place()) < record.place() {
        return None;
    }
    // The representative is the winner of the group. A winner, and a page without a group, are represented by
    // their last content.
    let page = submission.url.id();
    let (representative, content) = match state.membership.as_ref().and_then(|m| m.winner.as_ref()) {
        Some(winner) if winner.page != page => (winner.page, winner.content),
        _ => (page, state.content),
    };
    Some(HintRequest {
        at,
        page,
        signature,
        previous: state.content,
        membership_number: record.membership_number,
        representative,
        content,
    })
}
