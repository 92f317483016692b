//! A question about many pages: those that the status table has are told at once, the others by their rows, on some threads.
//!
//! Invariant: the answers leave together, and none of them is older then than promised. Those that have grown too old while the
//! others were made are made again.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, scope};
use std::time::{Duration, Instant};

use doppel_model::PageUrl;
use doppel_protocol::answer::{Advice, StatusAnswer};
use doppel_protocol::{Market, Moments, Question, TooOld};

use crate::again::{Turns, millis};
use crate::app::App;
use crate::limits::{STATUS_HELPERS, STATUS_PAGES_EACH, STATUS_THREADS};
use crate::problem::Problem;

/// What is asked for.
pub(crate) enum Asked {
    Page(Page),
    /// Not a page URL, and why.
    Bad {
        url: String,
        error: String,
    },
}

/// A page, and what is told of it so far.
pub(crate) struct Page {
    url: String,
    page: PageUrl,
    told: Option<(Box<Advice>, Moments)>,
}

/// Looks for URLs in the status table, unless they are asked for by rows.
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

/// The answers, if the table has had them all; the list itself otherwise. No more than a moment has passed since.
pub(crate) fn at_once(asked: Vec<Asked>) -> Result<Vec<StatusAnswer>, Vec<Asked>> {
    let is_told =
        |asked: &Asked| matches!(asked, Asked::Bad { .. } | Asked::Page(Page { told: Some(_), .. }));
    if asked.iter().all(is_told) { Ok(answers_of(asked, &[])) } else { Err(asked) }
}

/// Answers a list; blocks.
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

/// The ages of what is told of the pages. What is too old is told no more.
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

/// The answers, with the ages of those about pages, as far as they have some.
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

/// Advice about pages: with one call for those that need no rows, then by rows.
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
            // Where all are at work the caller's thread does it.
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
                tracing::error!(%error, "no thread for a part of a question");
                Problem::busy("too many threads are at work; try again later")
            }));
        }
        let own: Result<(), Problem> = own.into_iter().try_for_each(|part| by_rows(app, part));
        let others =
            others.into_iter().map(|other| other?.join().unwrap_or_else(|panic| resume_unwind(panic)));
        // All are waited for, also where one has failed.
        let others: Vec<Result<(), Problem>> = others.collect();
        [own].into_iter().chain(others).collect()
    })
}

/// Threads that read rows for questions about many pages, of the whole process.
static HELPERS: AtomicUsize = AtomicUsize::new(0);

/// One of them, until it is dropped.
struct Helper;

impl Helper {
    /// None when there are as many as may be.
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

/// Reads one page after the other.
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

/// The same for a market. What was read of a group is used for all pages after, so these are as old as it.
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
