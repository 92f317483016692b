//! Takes JSON lines of pages: splits the body into chunks, extracts and records each chunk, and answers the
//! lines in order.
//!
//! Invariants:
//!
//! - Chunks reach tier 1 in the order of their lines, each in one call. While tier 1 makes one chunk durable,
//!   the extractors work on the next.
//! - Every line that is not blank gets exactly one answer.
//! - After a chunk is refused, no later line is recorded. After a line is refused, no later line of the same
//!   page is recorded. Lines that the client sends again therefore keep their order.

use std::collections::HashMap;
use std::iter::Peekable;

use axum::body::Bytes;
use doppel_model::PageUrl;
use serde::Deserialize;

use crate::access::Caller;
use crate::app::App;
use crate::app::arrival_dates::LineDates;
use crate::limits::CHUNK_BYTES;
use crate::problem::Problem;
use crate::routes::pages::line_answers::{CompleteAnswers, LineAnswers, not_taken};
use crate::routes::pages::submission::submit;
use doppel_engine::ingest::{IngestResult, KeyedBatch, PageSource};

/// A line of the body and its number.
#[derive(Debug, Clone)]
struct BodyLine {
    number: usize,
    json: Bytes,
}

/// Records the pages in the lines of `body` for `caller`, and returns one answer for each line. Blocks.
///
/// # Errors
/// If there are too many lines, or if no line was recorded because tier 1 refused the lines or memory was
/// short.
pub(crate) fn record_lines(app: &App, caller: &Caller, body: &Bytes) -> Result<CompleteAnswers, Problem> {
    let limits = app.limits();
    let count = lines(body).take(limits.lines + 1).count();
    if count > limits.lines {
        let detail = format!("the body has more than {} lines; send them in parts", limits.lines);
        return Err(Problem::too_large(detail));
    }
    let mut answers = LineAnswers::new(app, caller.memory(), count)?;
    let mut rest = lines(body).peekable();
    let start = |lines: Vec<BodyLine>| {
        let keyed = |line: BodyLine| {
            let source = PageSource::Json(line.json.clone());
            (line, source)
        };
        let arrival = app.arrival_clock().next();
        (app.ingest().start_keyed(lines.into_iter().map(keyed).collect(), arrival), arrival)
    };
    let mut refused = HashMap::new();
    let mut dates = LineDates::new(app.arrival_clock());
    let mut next = chunk(&mut rest, limits.chunk_lines).map(start);
    while let Some((batch, arrival)) = next {
        next = chunk(&mut rest, limits.chunk_lines).map(start);
        let mut extracted = batch.wait();
        for version in extracted.iter_mut().filter_map(|(_, one)| one.as_mut().ok()) {
            dates.date(version, arrival);
        }
        let Err(problem) = record_chunk(app, caller, extracted, &mut refused, &mut answers)? else {
            continue;
        };
        if !answers.has_taken() {
            return Err(problem);
        }
        let started = next.take().map(|(batch, _)| KeyedBatch::into_keys(batch)).unwrap_or_default();
        for line in started.into_iter().chain(rest.by_ref()) {
            answers.push_retry(line.number, None, &problem);
        }
    }
    Ok(answers.complete())
}

/// Records the valid lines of a chunk in one call and answers all lines of the chunk. The inner error gives
/// the reason if no line was recorded, and means that no later line can be recorded either.
fn record_chunk(
    app: &App,
    caller: &Caller,
    extracted: Vec<(BodyLine, IngestResult)>,
    refused_pages: &mut HashMap<String, Problem>,
    answers: &mut LineAnswers<'_>,
) -> Result<Result<(), Problem>, Problem> {
    let mut submissions = Vec::with_capacity(extracted.len());
    let mut pages = Vec::with_capacity(extracted.len());
    for (line, one) in extracted {
        let page = match one {
            Ok(submission) => {
                let url = submission.url.to_string();
                if !refused_pages.contains_key(&url) {
                    submissions.push((line.number, submission));
                }
                Ok(url)
            }
            Err(error) => Err(not_taken(line.number, line.url(), &error)),
        };
        pages.push((line.number, page));
    }
    // Every recorded line must be answered, so the memory for the answers is reserved first.
    if !answers.reserve_texts(pages.iter().map(|(_, page)| page)) {
        let problem = Problem::memory_full();
        pages.iter().for_each(|(line, _)| answers.push_retry(*line, None, &problem));
        return Ok(Err(problem));
    }
    let recorded = if submissions.is_empty() { Ok(Vec::new()) } else { submit(app, caller, submissions) };
    let outcomes = recorded?;
    let mut refused = outcomes.first().and_then(|(_, outcome)| outcome.clone().err()).map(Problem::from);
    if outcomes.iter().any(|(_, outcome)| outcome.is_ok()) {
        refused = None;
    }
    let mut outcomes = outcomes.into_iter().peekable();
    for (line, page) in pages {
        let outcome = outcomes.next_if(|(of, _)| *of == line);
        match (page, outcome) {
            (Err(not_taken), _) => answers.push_not_taken(not_taken),
            (Ok(url), Some((_, Ok(outcome)))) => answers.push_taken(url, outcome),
            (Ok(url), Some((_, Err(refused)))) => {
                let problem = Problem::from(refused);
                answers.push_retry(line, Some(url.clone()), &problem);
                refused_pages.insert(url, problem);
            }
            (Ok(url), None) if refused_pages.contains_key(&url) => {
                let problem = &refused_pages[&url];
                answers.push_retry(line, Some(url), problem);
            }
            (Ok(url), None) => {
                tracing::error!(line, url, "tier 1 returned no outcome for a line; the request gets 500");
                return Err(Problem::internal());
            }
        }
    }
    Ok(refused.map_or(Ok(()), Err))
}

/// Iterates over the lines that are not blank. Lines are numbered from 1, and blank lines count.
fn lines(body: &Bytes) -> impl Iterator<Item = BodyLine> {
    let (mut begin, mut number) = (0, 0);
    std::iter::from_fn(move || {
        while begin < body.len() {
            let end = memchr::memchr(b'\n', &body[begin..]).map_or(body.len(), |at| begin + at);
            let range = begin..end;
            begin = end + 1;
            number += 1;
            if !body[range.clone()].trim_ascii().is_empty() {
                return Some(BodyLine { number, json: body.slice(range) });
            }
        }
        None
    })
}

/// Takes the next chunk: up to `count` lines and [`CHUNK_BYTES`]. A single longer line forms its own chunk.
/// Returns `None` at the end of the body.
fn chunk(rest: &mut Peekable<impl Iterator<Item = BodyLine>>, count: usize) -> Option<Vec<BodyLine>> {
    let first = rest.next()?;
    let mut bytes = first.json.len();
    let mut lines = vec![first];
    while lines.len() < count {
        let Some(line) = rest.next_if(|line| bytes + line.json.len() <= CHUNK_BYTES) else { break };
        bytes += line.json.len();
        lines.push(line);
    }
    Some(lines)
}

impl BodyLine {
    /// Returns the URL of the page, if the line is JSON with a valid URL.
    fn url(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Url {
            url: String,
        }
        let Url { url } = serde_json::from_slice(&self.json).ok()?;
        PageUrl::parse(&url).ok().map(|_| url)
    }
}
