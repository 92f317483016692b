//! Questions of callers about pages, groups, repairs and changes, answered from the rows of any range.
//!
//! A question only reads. The owner of a range answers it while it may; if it may not, a replica answers, and
//! the caller learns how old the answer is ([`replica_reads`]). Questions never wait for a writer.
//!
//! Invariant: an answer that comes from an owner is checked after its rows were read. An owner whose lease
//! ran out in the meantime may have read rows that a later owner has changed, so that answer is refused.

pub(in crate::service) mod feed;
pub(in crate::service) mod groups;
pub(in crate::service) mod pages;
pub(in crate::service) mod question_reads;
pub(in crate::service) mod repair_trail;
pub(in crate::service) mod replica_reads;
pub(crate) mod rows;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use doppel_contract::answer::Advice;
use doppel_model::{PageId, PageUrl};
use doppel_protocol::Question;

use crate::service::ownership::OwnedRanges;
use crate::service::ownership::collection::CollectionFacts;
use crate::service::ownership::ranges::RangeRegistry;
use crate::statuses::Statuses;
use feed::Feed;
use question_reads::QuestionReads;
use rows::RowReader;

/// Answers questions from the status tables in memory and from the rows of all ranges.
pub(crate) struct Questions {
    collection: CollectionFacts,
    ranges: Arc<RangeRegistry>,
    pub(in crate::service) rows: RowReader,
    /// Statuses of pages, kept in memory. `None` if the service keeps none.
    pub(crate) statuses: Option<Arc<Statuses>>,
    pub(in crate::service) feed: Feed,
}

impl Questions {
    /// Creates the reader of the rows of all ranges.
    pub(in crate::service) fn new(
        owned: &OwnedRanges,
        rows: RowReader,
        statuses: Option<Arc<Statuses>>,
    ) -> Self {
        let feed = Feed::new(owned, rows.clone());
        Self { collection: owned.collection, ranges: Arc::clone(&owned.ranges), rows, statuses, feed }
    }

    /// The advice about a page, if the status tables know all of it.
    pub(in crate::service) fn known_advice(&self, page: &PageUrl) -> Option<Advice> {
        self.statuses.as_ref()?.advise(page)
    }

    /// Bytes of memory that the status tables take.
    pub(in crate::service) fn status_table_bytes(&self) -> u64 {
        self.statuses.as_ref().map_or(0, |statuses| statuses.bytes())
    }

    /// Reads that answer no particular question, from owners alone.
    pub(in crate::service) fn reads(&self) -> QuestionReads<'_> {
        QuestionReads::new(self, self.rows.clone(), None)
    }

    /// Reads that answer `question`, from owners or from replicas. `None` if this process owns all ranges for
    /// good.
    pub(in crate::service) fn reads_for(&self, question: &Question) -> Option<QuestionReads<'_>> {
        if self.ranges.directory.may_change() {
            question.note_deposable_owners();
        }
        let reads = QuestionReads::new(self, self.rows.for_question(question), Some(question.clone()));
        self.ranges.has_others().then_some(reads)
    }

    /// Tells the writers that callers ask for these pages, so that they make smaller commits for a while.
    fn note_asked(&self, pages: &[PageId]) {
        for page in pages {
            if let Ok(owner) = self.ranges.answering_owner(self.collection.map.of_page(*page)) {
                owner.asked.store(true, Ordering::Relaxed);
            }
        }
    }
}
