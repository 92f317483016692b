//! Status requests for many pages. Pages that the status table covers are answered from memory at once. For
//! the other pages, several threads read the rows of tier 1.
//!
//! Invariant: all answers are sent together, and none of them is then older than the promised age. An answer
//! that becomes too old while the others are made is made again.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, scope};
use std::time::{Duration, Instant};

use doppel_model::PageUrl;
use doppel_protocol::answer::{Advice, StatusAnswer};
use doppel_protocol::{Market, Moments, Question, TooOld};

use crate::app::App;
use crate::limits::{STATUS_HELPERS, STATUS_PAGES_EACH, STATUS_THREADS};
use crate::problem::Problem;
use crate::response::answer_age::{Turns, millis};

/// An entry of the request.
pub(crate) enum Asked {
    Page(Page),
    /// A text that is not a page URL, and the reason.
    Bad {
        url: String,
        error: String,
    },
}

/// A page, with its advice once that is known.
pub(crate) struct Page {
    url: String,
    page: PageUrl,
    told: Option<(Box<Advice>, Moments)>,
}

/// Parses the URLs, and looks them up in the status table if `by_table`.
pub(crate) fn look(app: &App, by_table: bool, urls: Vec<String>) -> Vec<Asked> {
    let from = Moments::of_owners(Instant::now());
    let look = |url: String| match PageUrl::parse(&url) {
        Ok(page) => {
            let known = if by_table { app.tier1().known_advice(&page) } else { None };
            Asked::Page(Page { url, page, told: known.map(|advice| (Box::new(advice), from)) })
        }
        Err(error) => Asked::Bad { url, error: error.to_string() },
    };
    urls.into_iter().map(look).collect()
}

/// Returns the answers if the status table covered all pages, or else gives the entries back. The answers are
/// fresh, because the caller has just read the table.
pub(crate) fn at_once(asked: Vec<Asked>) -> Result<Vec<StatusAnswer>, Vec<Asked>> {
    let is_told =
        |asked: &Asked| matches!(asked, Asked::Bad { .. } | Asked::Page(Page { told: Some(_), .. }));
    if asked.iter().all(is_told) { Ok(answers_of(asked, &[])) } else { Err(asked) }
}

/// Answers all entries by reading rows where necessary. Blocks.
pub(crate) fn answers(
    app: &App,
    mut asked: Vec<Asked>,
    market: Option<&Market>,
) -> Result<Vec<StatusAnswer>, Problem> {
    let mut turns = Turns::new(app.limits().call_time);
    loop {
        let mut left: Vec<&mut Page> = pages(&mut asked).filter(|page| page.told.is_none()).collect();
        let asked_for = left.len();
        match market {
            None => advise(app, &mut left)?,
            Some(market) => advise_for(app, market, &mut left)?,
        }
        match ages(&mut asked) {
            Ok(ages) => {
                app.metrics().answered_by_replicas(ages.iter().flatten().count() as u64);
                return Ok(answers_of(asked, &ages));
            }
            Err(too_old) => {
                let left = pages(&mut asked).filter(|page| page.told.is_none()).count();
                turns.next(too_old, left < asked_for)?;
            }
        }
    }
}

fn pages(asked: &mut [Asked]) -> impl Iterator<Item = &mut Page> {
    asked.iter_mut().filter_map(|asked| match asked {
        Asked::Page(page) => Some(page),
        Asked::Bad { .. } => None,
    })
}

/// Returns the ages of the pages' advice. Removes advice that is too old, and reports that as an error.
fn ages(asked: &mut [Asked]) -> Result<Vec<Option<Duration>>, TooOld> {
    let (mut ages, mut found) = (Vec::new(), None);
    for page in pages(asked) {
        match page.told.as_ref().map(|(_, from)| from.age()) {
            Some(Err(too_old)) => {
                page.told = None;
                found = Some(too_old);
            }
            Some(Ok(age)) => ages.push(age),
            None => ages.push(None),
        }
    }
    found.map_or(Ok(ages), Err)
}

/// Builds the answers. `ages` lists the age of each page's advice, in order.
fn answers_of(asked: Vec<Asked>, ages: &[Option<Duration>]) -> Vec<StatusAnswer> {
    let mut ages = ages.iter();
    let answer = |asked| match asked {
        Asked::Bad { url, error } => StatusAnswer::Bad { url, error },
        Asked::Page(Page { url, page, told }) => {
            let age_ms = ages.next().copied().flatten().map(millis);
            let advice =
                told.map_or_else(|| Box::new(Advice::unknown(page.to_string())), |(advice, _)| advice);
            StatusAnswer::Advice(Box::new(Advice { url, age_ms, ..*advice }))
        }
    };
    asked.into_iter().map(answer).collect()
}

/// Fills in the advice of pages: first with one call for all pages that need no rows, then by reading rows on
/// several threads.
fn advise(app: &App, pages: &mut Vec<&mut Page>) -> Result<(), Problem> {
    if pages.is_empty() {
        return Ok(());
    }
    let question = Question::default();
    let urls: Vec<PageUrl> = pages.iter().map(|page| page.page.clone()).collect();
    let known = question.ask(app.tier1(), |reads| reads.known_advices(&urls))?;
    let from = question.moments();
    for (page, advice) in pages.iter_mut().zip(known) {
        page.told = advice.map(|advice| (Box::new(advice), from));
    }
    pages.retain(|page| page.told.is_none());
    let each = pages.len().div_ceil(STATUS_THREADS).max(STATUS_PAGES_EACH);
    let mut parts = pages.chunks_mut(each);
    let Some(own) = parts.next() else { return Ok(()) };
    scope(|scope| {
        let (mut own, mut others) = (vec![own], Vec::new());
        for part in parts {
            // If no helper is free, the caller's thread does this part.
            let Some(helper) = Helper::begin() else {
                own.push(part);
                continue;
            };
            let work = move || {
                let _helper = helper;
                by_rows(app, part)
            };
            let begun = Builder::new().name("status".to_owned()).spawn_scoped(scope, work);
            others.push(begun.map_err(|error| {
                tracing::error!(%error, "cannot start a thread for a status request; the request gets 503");
                Problem::busy("the service cannot start another thread; try again later")
            }));
        }
        let own: Result<(), Problem> = own.into_iter().try_for_each(|part| by_rows(app, part));
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
struct Helper;

impl Helper {
    /// Returns `None` if [`STATUS_HELPERS`] threads are running.
    fn begin() -> Option<Self> {
        let more = |helpers: usize| (helpers < STATUS_HELPERS).then_some(helpers + 1);
        HELPERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Self)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        HELPERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Fills in the advice of pages by reading their rows, one page after the other.
fn by_rows(app: &App, pages: &mut [&mut Page]) -> Result<(), Problem> {
    let question = Question::default();
    question.ask(app.tier1(), |reads| {
        let mut advisor = app.advisor(reads, None);
        for page in pages {
            let advice = advisor.advise(&page.page)?;
            page.told = Some((Box::new(advice), question.next_part()));
        }
        Ok(())
    })
}

/// Like [`by_rows`], but for a market. The advisor reuses the records of a group for later pages. The advice
/// of a later page is therefore as old as the records of all earlier pages.
fn advise_for(app: &App, market: &Market, pages: &mut [&mut Page]) -> Result<(), Problem> {
    let question = Question::default();
    question.ask(app.tier1(), |reads| {
        let mut advisor = app.advisor(reads, Some(market));
        let mut from = Moments::default();
        for page in pages {
            let advice = advisor.advise(&page.page)?;
            from = from.with(question.next_part());
            page.told = Some((Box::new(advice), from));
        }
        Ok(())
    })
}
