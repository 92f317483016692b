//! Status requests for many pages. Pages that the status table covers are answered from memory at once. For
//! the other pages, several threads read the rows of tier 1.
//!
//! Invariant: all answers are sent together, and none of them is then older than the promised age. An answer
//! that becomes too old while the others are made is made again.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, scope};
use std::time::{Duration, Instant};

use doppel_contract::Market;
use doppel_contract::answer::{Advice, StatusAnswer};
use doppel_model::PageUrl;
use doppel_protocol::{AgeError, AnswerTimes, Question};

use crate::app::App;
use crate::limits::{STATUS_HELPERS, STATUS_PAGES_EACH, STATUS_THREADS};
use crate::problem::Problem;
use crate::response::answer_age::{AnswerAttempts, millis};

/// An entry of the request.
pub(crate) enum BatchEntry {
    Page(BatchPage),
    /// A text that is not a page URL, and the reason.
    Invalid {
        url: String,
        error: String,
    },
}

/// A page, with its advice once that is known.
pub(crate) struct BatchPage {
    url: String,
    page: PageUrl,
    advice: Option<(Box<Advice>, AnswerTimes)>,
}

/// Parses the URLs, and looks them up in the status table if `by_table`.
pub(crate) fn look_up(app: &App, by_table: bool, urls: Vec<String>) -> Vec<BatchEntry> {
    let from = AnswerTimes::of_owners(Instant::now());
    let parse = |url: String| match PageUrl::parse(&url) {
        Ok(page) => {
            let known = if by_table { app.tier1().known_advice(&page) } else { None };
            BatchEntry::Page(BatchPage { url, page, advice: known.map(|advice| (Box::new(advice), from)) })
        }
        Err(error) => BatchEntry::Invalid { url, error: error.to_string() },
    };
    urls.into_iter().map(parse).collect()
}

/// Returns the answers if the status table covered all pages, or else gives the entries back. The answers are
/// fresh, because the caller has just read the table.
pub(crate) fn answers_if_complete(entries: Vec<BatchEntry>) -> Result<Vec<StatusAnswer>, Vec<BatchEntry>> {
    let has_answer = |entry: &BatchEntry| {
        matches!(entry, BatchEntry::Invalid { .. } | BatchEntry::Page(BatchPage { advice: Some(_), .. }))
    };
    if entries.iter().all(has_answer) { Ok(into_answers(entries, &[])) } else { Err(entries) }
}

/// Answers all entries by reading rows where necessary. Blocks.
pub(crate) fn answer_all(
    app: &App,
    mut entries: Vec<BatchEntry>,
    market: Option<&Market>,
) -> Result<Vec<StatusAnswer>, Problem> {
    let mut attempts = AnswerAttempts::new(app.limits().call_time);
    loop {
        let mut left: Vec<&mut BatchPage> =
            pages(&mut entries).filter(|page| page.advice.is_none()).collect();
        let requested = left.len();
        match market {
            None => advise(app, &mut left)?,
            Some(market) => advise_for(app, market, &mut left)?,
        }
        match ages(&mut entries) {
            Ok(ages) => {
                app.metrics().answered_by_replicas(ages.iter().flatten().count() as u64);
                return Ok(into_answers(entries, &ages));
            }
            Err(too_old) => {
                let left = pages(&mut entries).filter(|page| page.advice.is_none()).count();
                attempts.record_too_old(too_old, left < requested)?;
            }
        }
    }
}

fn pages(entries: &mut [BatchEntry]) -> impl Iterator<Item = &mut BatchPage> {
    entries.iter_mut().filter_map(|entry| match entry {
        BatchEntry::Page(page) => Some(page),
        BatchEntry::Invalid { .. } => None,
    })
}

/// Returns the ages of the pages' advice. Removes advice that is too old, and reports that as an error.
fn ages(entries: &mut [BatchEntry]) -> Result<Vec<Option<Duration>>, AgeError> {
    let (mut ages, mut found) = (Vec::new(), None);
    for page in pages(entries) {
        match page.advice.as_ref().map(|(_, from)| from.age()) {
            Some(Err(too_old)) => {
                page.advice = None;
                found = Some(too_old);
            }
            Some(Ok(age)) => ages.push(age),
            None => ages.push(None),
        }
    }
    found.map_or(Ok(ages), Err)
}

/// Builds the answers. `ages` lists the age of each page's advice, in order.
fn into_answers(entries: Vec<BatchEntry>, ages: &[Option<Duration>]) -> Vec<StatusAnswer> {
    let mut ages = ages.iter();
    let answer = |entry| match entry {
        BatchEntry::Invalid { url, error } => StatusAnswer::Bad { url, error },
        BatchEntry::Page(BatchPage { url, page, advice }) => {
            let age_ms = ages.next().copied().flatten().map(millis);
            let advice =
                advice.map_or_else(|| Box::new(Advice::unknown(page.to_string())), |(advice, _)| advice);
            StatusAnswer::Advice(Box::new(Advice { url, age_ms, ..*advice }))
        }
    };
    entries.into_iter().map(answer).collect()
}

/// Fills in the advice of pages: first with one call for all pages that need no rows, then by reading rows on
/// several threads.
fn advise(app: &App, pages: &mut Vec<&mut BatchPage>) -> Result<(), Problem> {
    if pages.is_empty() {
        return Ok(());
    }
    let question = Question::default();
    let urls: Vec<PageUrl> = pages.iter().map(|page| page.page.clone()).collect();
    let known = question.ask(app.tier1(), |reads| reads.known_advices(&urls))?;
    let from = question.moments();
    for (page, advice) in pages.iter_mut().zip(known) {
        page.advice = advice.map(|advice| (Box::new(advice), from));
    }
    pages.retain(|page| page.advice.is_none());
    let each = pages.len().div_ceil(STATUS_THREADS).max(STATUS_PAGES_EACH);
    let mut parts = pages.chunks_mut(each);
    let Some(own) = parts.next() else { return Ok(()) };
    scope(|scope| {
        let (mut own, mut others) = (vec![own], Vec::new());
        for part in parts {
            // If no helper is free, the caller's thread does this part.
            let Some(helper) = HelperPermit::begin() else {
                own.push(part);
                continue;
            };
            let work = move || {
                let _helper = helper;
                advise_by_rows(app, part)
            };
            let begun = Builder::new().name("status".to_owned()).spawn_scoped(scope, work);
            others.push(begun.map_err(|error| {
                tracing::error!(%error, "cannot start a thread for a status request; the request gets 503");
                Problem::busy("the service cannot start another thread; try again later")
            }));
        }
        let own: Result<(), Problem> = own.into_iter().try_for_each(|part| advise_by_rows(app, part));
        let others =
            others.into_iter().map(|other| other?.join().unwrap_or_else(|panic| resume_unwind(panic)));
        // Collecting waits for every thread, even if one of them has failed.
        let others: Vec<Result<(), Problem>> = others.collect();
        [own].into_iter().chain(others).collect()
    })
}

/// Number of helper threads that read rows for status requests, in the whole process.
static HELPERS: AtomicUsize = AtomicUsize::new(0);

/// Permit for one helper thread, until this value is dropped.
struct HelperPermit;

impl HelperPermit {
    /// Returns `None` if [`STATUS_HELPERS`] threads are running.
    fn begin() -> Option<Self> {
        let more = |helpers: usize| (helpers < STATUS_HELPERS).then_some(helpers + 1);
        HELPERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Self)
    }
}

impl Drop for HelperPermit {
    fn drop(&mut self) {
        HELPERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Fills in the advice of pages by reading their rows, one page after the other.
fn advise_by_rows(app: &App, pages: &mut [&mut BatchPage]) -> Result<(), Problem> {
    let question = Question::default();
    question.ask(app.tier1(), |reads| {
        let mut advisor = app.advisor(reads, None);
        for page in pages {
            let advice = advisor.advise(&page.page)?;
            page.advice = Some((Box::new(advice), question.next_part()));
        }
        Ok(())
    })
}

/// Like [`advise_by_rows`], but for a market. The advisor reuses the records of a group for later pages. The
/// advice of a later page is therefore as old as the records of all earlier pages.
fn advise_for(app: &App, market: &Market, pages: &mut [&mut BatchPage]) -> Result<(), Problem> {
    let question = Question::default();
    question.ask(app.tier1(), |reads| {
        let mut advisor = app.advisor(reads, Some(market));
        let mut from = AnswerTimes::default();
        for page in pages {
            let advice = advisor.advise(&page.page)?;
            from = from.with(question.next_part());
            page.advice = Some((Box::new(advice), from));
        }
        Ok(())
    })
}
