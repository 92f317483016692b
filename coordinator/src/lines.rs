//! JSON lines of pages: split, extracted and recorded in chunks, answered in order.
//!
//! Invariants: chunks reach tier 1 in the order of their lines, each in one call; while one is being
//! made durable the next is being extracted; every line that is not blank has exactly one answer. Once
//! a chunk is refused no later line is recorded, and once a line is refused no later one of the same page is, so
//! what a caller sends again keeps its order.

use std::collections::HashMap;
use std::iter::Peekable;

use axum::body::Bytes;
use doppel_model::PageUrl;
use serde::Deserialize;

use crate::access::Caller;
use crate::answers::{Answers, Written, not_taken};
use crate::app::App;
use crate::arrival::LineDates;
use crate::limits::CHUNK_BYTES;
use crate::problem::Problem;
use crate::submit::submit;
use doppel_engine::ingest::{Ingested, KeyedBatch, Source};

/// One line and its place.
#[derive(Debug, Clone)]
struct Line {
    number: usize,
    json: Bytes,
}

/// Takes the lines of `body`, which a caller has sent, and gives the answers, a line each. Blocks.
///
/// # Errors
/// When there are too many lines, or nothing was taken because tier 1 refused or memory was short.
pub(crate) fn take(app: &App, caller: &Caller, body: &Bytes) -> Result<Written, Problem> {
    let limits = app.limits();
    let count = lines(body).take(limits.lines + 1).count();
    if count > limits.lines {
        let detail = format!("more than {} lines; send them in parts", limits.lines);
        return Err(Problem::too_large(detail));
    }
    let mut answers = Answers::new(app, caller.memory(), count)?;
    let mut rest = lines(body).peekable();
    let start = |lines: Vec<Line>| {
        let keyed = |line: Line| {
            let source = Source::Json(line.json.clone());
            (line, source)
        };
        let arrival = app.arrivals().next();
        (app.ingest().start_keyed(lines.into_iter().map(keyed).collect(), arrival), arrival)
    };
    let mut refused = HashMap::new();
    let mut dates = LineDates::new(app.arrivals());
    let mut next = chunk(&mut rest, limits.chunk_lines).map(start);
    while let Some((batch, arrival)) = next {
        next = chunk(&mut rest, limits.chunk_lines).map(start);
        let mut extracted = batch.wait();
        for version in extracted.iter_mut().filter_map(|(_, one)| one.as_mut().ok()) {
            dates.date(version, arrival);
        }
        let Err(problem) = record(app, caller, extracted, &mut refused, &mut answers)? else {
            continue;
        };
        if !answers.any_taken() {
            return Err(problem);
        }
        let started = next.take().map(|(batch, _)| KeyedBatch::into_keys(batch)).unwrap_or_default();
        for line in started.into_iter().chain(rest.by_ref()) {
            answers.retry(line.number, None, &problem);
        }
    }
    Ok(answers.end())
}

/// Records the valid lines of a chunk in one call and answers all of its lines. The inner error says why
/// no line was recorded, and that none can be at the moment.
fn record(
    app: &App,
    caller: &Caller,
    extracted: Vec<(Line, Ingested)>,
    refused_pages: &mut HashMap<String, Problem>,
    answers: &mut Answers<'_>,
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
    // What is recorded must be answered, so the room comes first.
    if !answers.make_room(pages.iter().map(|(_, page)| page)) {
        let problem = Problem::memory_full();
        pages.iter().for_each(|(line, _)| answers.retry(*line, None, &problem));
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
            (Err(not_taken), _) => answers.not_taken(not_taken),
            (Ok(url), Some((_, Ok(outcome)))) => answers.taken(url, outcome),
            (Ok(url), Some((_, Err(refused)))) => {
                let problem = Problem::from(refused);
                answers.retry(line, Some(url.clone()), &problem);
                refused_pages.insert(url, problem);
            }
            (Ok(url), None) if refused_pages.contains_key(&url) => {
                let problem = &refused_pages[&url];
                answers.retry(line, Some(url), problem);
            }
            (Ok(url), None) => {
                tracing::error!(line, url, "a line that was recorded has no outcome");
                return Err(Problem::internal());
            }
        }
    }
    Ok(refused.map_or(Ok(()), Err))
}

/// The lines that are not blank, numbered from 1.
fn lines(body: &Bytes) -> impl Iterator<Item = Line> {
    let (mut begin, mut number) = (0, 0);
    std::iter::from_fn(move || {
        while begin < body.len() {
            let end = memchr::memchr(b'\n', &body[begin..]).map_or(body.len(), |at| begin + at);
            let range = begin..end;
            begin = end + 1;
            number += 1;
            if !body[range.clone()].trim_ascii().is_empty() {
                return Some(Line { number, json: body.slice(range) });
            }
        }
        None
    })
}

/// The next lines, up to `count` of them and [`CHUNK_BYTES`] (one line may be longer); none at the end.
fn chunk(rest: &mut Peekable<impl Iterator<Item = Line>>, count: usize) -> Option<Vec<Line>> {
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

impl Line {
    /// The page's URL where the line is JSON and has a valid one.
    fn url(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Url {
            url: String,
        }
        let Url { url } = serde_json::from_slice(&self.json).ok()?;
        PageUrl::parse(&url).ok().map(|_| url)
    }
}
