//! The reads of one question: pages, groups and signatures as the coordinator sees them.

use std::sync::Arc;
use std::time::Instant;

use doppel_contract::answer::Advice;
use doppel_model::signature::Signature;
use doppel_model::{GroupId, PageId, PageUrl};
use doppel_protocol::{
    BATCH_PAGES_MAX, GroupPosition, GroupSummary, GroupView, LIST_MAX, PageView, Question, Tier1Error,
    Tier1Reads,
};

use super::Questions;
use super::rows::RowReader;

/// Reads for one question, which notes how old each answer is.
pub(in crate::service) struct QuestionReads<'q> {
    questions: &'q Questions,
    rows: RowReader,
    /// The question that is answered. `None` for reads of owners alone.
    question: Option<Question>,
}

impl<'q> QuestionReads<'q> {
    pub(super) fn new(questions: &'q Questions, rows: RowReader, question: Option<Question>) -> Self {
        Self { questions, rows, question }
    }
}

impl Tier1Reads for QuestionReads<'_> {
    fn pages(&self, pages: &[PageId]) -> Result<Vec<Option<PageView>>, Tier1Error> {
        check_batch(pages.len())?;
        self.questions.note_asked(pages);
        self.rows.read_pages(pages)
    }

    fn known_advice(&self, page: &PageUrl) -> Option<Advice> {
        let asked = Instant::now();
        let known = self.questions.known_advice(page);
        if let Some(question) = &self.question {
            question.take_known(std::slice::from_ref(&known), asked);
        }
        known
    }

    fn first_spelling(&self, form: PageId, except: Option<PageId>) -> Result<Option<PageId>, Tier1Error> {
        self.rows.first_spelling(form, except)
    }

    fn signature(&self, page: PageId) -> Result<Option<Arc<Signature>>, Tier1Error> {
        self.rows.signature(page)
    }

    fn group_summary(&self, group: GroupId) -> Result<Option<GroupSummary>, Tier1Error> {
        self.rows.read_summary(group)
    }

    fn group(
        &self,
        group: GroupId,
        after: Option<GroupPosition>,
        limit: usize,
        redirects: bool,
    ) -> Result<Option<GroupView>, Tier1Error> {
        self.rows.read_group(group, after, limit.clamp(1, LIST_MAX), redirects)
    }
}

/// Refuses a list that is too long for one call.
pub(in crate::service) fn check_batch(found: usize) -> Result<(), Tier1Error> {
    if found > BATCH_PAGES_MAX {
        return Err(Tier1Error::BatchTooLarge { found, limit: BATCH_PAGES_MAX });
    }
    Ok(())
}
