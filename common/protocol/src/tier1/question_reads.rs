//! Reads of tier 1 that answer a question of a caller. Every read notes in the [`Question`] when it was made
//! and whether an owner or a replica answered, so that the answer can state its age.

use std::sync::Arc;
use std::time::Instant;

use doppel_contract::answer::Advice;
use doppel_model::signature::Signature;
use doppel_model::{GroupId, PageId, PageUrl};

use super::{
    DatedAnswer, GroupPosition, GroupSummary, GroupView, PageView, Question, Tier1Api, Tier1Error, Tier1Reads,
};

impl Question {
    /// Notes that owners answered from memory, without reading rows. Does nothing if `known` contains no
    /// advice, because then the answer contains nothing from this call.
    pub fn take_known(&self, known: &[Option<Advice>], asked: Instant) {
        if known.iter().any(Option::is_some) {
            self.take(DatedAnswer::of_owner(()), asked);
        }
    }

    /// Reads tier 1 for this question. If tier 1 has replicas, the read may use them.
    ///
    /// # Errors
    /// Returns the error of `read`.
    pub fn ask<T, E>(
        &self,
        tier1: &dyn Tier1Api,
        read: impl FnOnce(&dyn Tier1Reads) -> Result<T, E>,
    ) -> Result<T, E> {
        match tier1.for_question(self) {
            Some(reads) => read(&*reads),
            None => read(&OwnerReads { tier1, question: self }),
        }
    }
}

/// Reads from owners, for a tier 1 without replicas. Notes the time of each read in the question.
struct OwnerReads<'q> {
    tier1: &'q dyn Tier1Api,
    question: &'q Question,
}

impl<'q> OwnerReads<'q> {
    fn read<T>(&self, read: impl FnOnce(&'q dyn Tier1Api) -> T) -> T {
        self.question.take(DatedAnswer::of_owner(()), Instant::now());
        read(self.tier1)
    }
}

impl Tier1Reads for OwnerReads<'_> {
    fn pages(&self, pages: &[PageId]) -> Result<Vec<Option<PageView>>, Tier1Error> {
        self.read(|tier1| tier1.pages(pages))
    }

    fn known_advice(&self, page: &PageUrl) -> Option<Advice> {
        let asked = Instant::now();
        let known = self.tier1.known_advice(page);
        self.question.take_known(std::slice::from_ref(&known), asked);
        known
    }

    fn known_advices(&self, pages: &[PageUrl]) -> Result<Vec<Option<Advice>>, Tier1Error> {
        let asked = Instant::now();
        let known = self.tier1.known_advices(pages)?;
        self.question.take_known(&known, asked);
        Ok(known)
    }

    fn first_spelling(&self, form: PageId, except: Option<PageId>) -> Result<Option<PageId>, Tier1Error> {
        self.read(|tier1| tier1.first_spelling(form, except))
    }

    fn signature(&self, page: PageId) -> Result<Option<Arc<Signature>>, Tier1Error> {
        self.read(|tier1| tier1.signature(page))
    }

    fn group_summary(&self, group: GroupId) -> Result<Option<GroupSummary>, Tier1Error> {
        self.read(|tier1| tier1.group_summary(group))
    }

    fn group(
        &self,
        group: GroupId,
        after: Option<GroupPosition>,
        limit: usize,
        redirects: bool,
    ) -> Result<Option<GroupView>, Tier1Error> {
        self.read(|tier1| tier1.group(group, after, limit, redirects))
    }
}
