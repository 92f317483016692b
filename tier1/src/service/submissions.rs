//! Submissions of pages: whether they are accepted, and their way to the writers of their ranges.
//!
//! A submission is compared with the representative of its page in the thread of the caller ([`hint`]), so
//! comparisons are spread over the callers. Then the batch is split by range, and the writer of each range
//! decides its part.
//!
//! Invariant: every content counts against the limit of pending pages from the moment it is accepted until a
//! commit has recorded it, whether or not its caller still waits. One client gets at most half of that limit.

pub(in crate::service) mod arrivals;
pub(in crate::service) mod by_range;
pub(in crate::service) mod hint;
pub(in crate::service) mod winner_signatures;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use doppel_contract::SubmissionOutcome;
use doppel_model::{ClientId, RangeId};
use doppel_protocol::range_owner::PeerError;
use doppel_protocol::{Submission, Tier1Error};

use crate::machine::{Hint, newest_first};
use crate::service::ownership::OwnedRanges;
use crate::service::ownership::collection::CollectionFacts;
use crate::service::ownership::owner::Owner;
use crate::service::ownership::ranges::RangeRegistry;
use crate::service::ownership::refusals::Refusals;
use crate::service::questions::rows::RowReader;
use arrivals::{Arrivals, Arriving, has_content};
use by_range::{PartOutcomes, RangePart, in_order, split_by_range};
use winner_signatures::WinnerSignatures;

/// A submission and its comparison with the representative of its page.
type HintedSubmission = (Submission, Option<Hint>);

/// Accepts submissions for the ranges of this process.
pub(crate) struct Submissions {
    collection: CollectionFacts,
    ranges: Arc<RangeRegistry>,
    refusals: Arc<Refusals>,
    rows: RowReader,
    winner_signatures: WinnerSignatures,
    /// Contents that were handed in and are not yet committed.
    pub(in crate::service) arriving: Arc<Arrivals>,
    pending_max: u64,
}

impl Submissions {
    /// Creates the way of submissions to the ranges of a process. Past `pending_max` pending pages it refuses
    /// contents.
    pub(in crate::service) fn new(owned: &OwnedRanges, rows: RowReader, pending_max: u64) -> Self {
        Self {
            collection: owned.collection,
            ranges: Arc::clone(&owned.ranges),
            refusals: Arc::clone(&owned.refusals),
            rows,
            winner_signatures: WinnerSignatures::default(),
            arriving: Arc::default(),
            pending_max,
        }
    }

    /// Number of pending pages past which contents are refused.
    pub(in crate::service) fn pending_max(&self) -> u64 {
        self.pending_max
    }

    /// Whether this process owns the ranges of all submissions.
    pub(in crate::service) fn are_here(&self, submissions: &[Submission]) -> bool {
        let is_here = |submission: &Submission| self.ranges.local_owner(self.range_of(submission)).is_some();
        // If all ranges are here, no URL is hashed to find that out.
        self.ranges.owns_all() || submissions.iter().all(is_here)
    }

    /// The range that owns the page of a submission.
    pub(in crate::service) fn range_of(&self, submission: &Submission) -> RangeId {
        self.collection.map.of_page(submission.url.id())
    }

    /// Takes submissions for ranges of this process, and returns when all are committed. The outcomes are in
    /// the order of the submissions. If one range refuses its part, the others have recorded theirs
    /// nevertheless.
    pub(in crate::service) fn submit(
        &self,
        client: ClientId,
        submissions: Vec<Submission>,
    ) -> Result<Vec<SubmissionOutcome>, Tier1Error> {
        let mut arriving = self.admit(client, &submissions)?;
        self.refuse_in_vain(&submissions)?;
        let hints = self.hints(&submissions);
        let count = submissions.len();
        let mut waiting = Vec::new();
        let parts =
            split_by_range(submissions.into_iter().zip(hints), |(submission, _)| self.range_of(submission));
        for (range, part) in parts {
            // The writer keeps this count until the commit, also when the caller no longer waits for it.
            let contents = contents(part.items.iter().map(|(submission, _)| submission));
            let arriving = arriving.split_off(contents);
            let RangePart { indices, items } = newest_versions_first(part);
            let owner = self.ranges.answering_owner(range).map_err(Tier1Error::from);
            waiting.push((indices, owner.and_then(|owner| owner.submit(items, arriving))));
        }
        let answered = waiting.into_iter().map(|(indices, begun)| {
            let outcomes = begun.and_then(|answer| answer.wait()?);
            PartOutcomes { indices, outcomes }
        });
        // Collecting first waits for all ranges, also after one has refused.
        in_order(count, answered.collect())
    }

    /// Refuses a batch before it is compared in vain, if the ranges of all its submissions accept no commits
    /// at present.
    fn refuse_in_vain(&self, submissions: &[Submission]) -> Result<(), Tier1Error> {
        if submissions.is_empty() {
            return Ok(());
        }
        let refusal = |owner: &Arc<Owner>| Some((owner.id, owner.check_commits().err()?));
        let refusals: BTreeMap<RangeId, PeerError> =
            self.ranges.owners().iter().filter_map(refusal).collect();
        let Some(refused) = refusals.values().next() else { return Ok(()) };
        let is_refused = |submission: &Submission| refusals.contains_key(&self.range_of(submission));
        if submissions.iter().all(is_refused) { Err(refused.clone().into()) } else { Ok(()) }
    }

    /// Counts the contents of a batch against the limits of pending pages, for as long as the result is kept.
    ///
    /// Contents take room in the queue of pending pages, of which one client may take half. Redirects and
    /// dead pages take none, because the next commit decides them.
    pub(in crate::service) fn admit(
        &self,
        client: ClientId,
        submissions: &[Submission],
    ) -> Result<Arriving, Tier1Error> {
        self.refusals.check()?;
        let contents = contents(submissions.iter());
        let (arriving, before) = Arriving::count(&self.arriving, client, contents);
        // While the index is brought up to date, orders of decided pages wait for it, too. A pending page may
        // have two orders there: the first one, and a search that was repeated. The orders therefore count by
        // half, and the pages of one client do not fill the limit of all.
        let waiting =
            self.ranges.owners().iter().map(|owner| owner.waiting_orders.load(Ordering::Relaxed)).max();
        let pending = self.ranges.pending().max(waiting.unwrap_or(0) / 2) + before.all;
        if pending >= self.pending_max && contents > 0 {
            return Err(Tier1Error::Full { pending, limit: self.pending_max });
        }
        if client != ClientId::NONE && contents > 0 {
            let pending: u64 =
                self.ranges.owners().iter().map(|owner| owner.figures().pending_of(client)).sum();
            let (pending, limit) = (pending + before.of_client, self.pending_max.div_ceil(2));
            if pending >= limit {
                return Err(Tier1Error::ClientFull { pending, limit });
            }
        }
        Ok(arriving)
    }
}

/// Sorts the submissions of a range so that the newest version of each page comes first.
fn newest_versions_first(part: RangePart<HintedSubmission>) -> RangePart<HintedSubmission> {
    let Some(order) = newest_first(&part.items, |(submission, _)| submission) else { return part };
    let RangePart { indices, items } = part;
    let mut left: Vec<Option<HintedSubmission>> = items.into_iter().map(Some).collect();
    let items = order.iter().filter_map(|at| left[*at].take()).collect();
    RangePart { indices: order.iter().map(|at| indices[*at]).collect(), items }
}

/// Number of submissions that have a content.
fn contents<'s>(submissions: impl Iterator<Item = &'s Submission>) -> u64 {
    submissions.filter(|submission| has_content(submission)).count() as u64
}
