//! JSON lines of pages: split, extracted and recorded in chunks, answered in order.
//!
//! Invariants: chunks reach tier 1 in the order of their lines, each in one call; while one is being
//! made durable the next is being extracted; every line that is not blank has exactly one answer. Once
//! a chunk is refused no later line is recorded, so what a caller sends again keeps its order.

use std::iter::Peekable;

use axum::body::Bytes;
use doppel_common::api::{Outcome, Refused};
use doppel_common::model::PageUrl;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::ingest::{Batch, IngestError, Ingested, Source};
use crate::limits::CHUNK_BYTES;
use crate::metrics::Metrics;
use crate::pages::Taken;
use crate::problem::Problem;

/// The answer to one line.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum LineAnswer {
    /// It was taken.
    Taken(Taken),
    /// It was not.
    NotTaken(NotTaken),
}

/// A line that was not taken.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NotTaken {
    /// Its number, the first line of the body being 1.
    line: usize,
    /// Its page, where that can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// What is wrong.
    error: LineError,
}

/// Why a line was not taken.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LineError {
    /// Whether the line is at fault or the moment.
    code: LineCode,
    /// The field that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// In words.
    reason: String,
}

/// The kinds of [`LineError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LineCode {
    /// The line is no page.
    Invalid,
    /// The service takes no more at the moment; send the line again later.
    Retry,
    /// The service failed on this line; its log says more.
    Internal,
}

/// One line and its place.
#[derive(Debug, Clone)]
struct Line {
    number: usize,
    json: Bytes,
}

/// A chunk whose lines are being extracted.
struct Started {
    lines: Vec<Line>,
    batch: Batch,
}

/// The answers so far, a line each.
struct Answers<'m> {
    metrics: &'m Metrics,
    bytes: Vec<u8>,
    any_taken: bool,
}

/// Takes the lines of `body` and gives the answers, a line each. Blocks.
///
/// # Errors
/// When there are too many lines, or tier 1 refused before anything was taken.
pub(crate) fn take(app: &App, body: &Bytes) -> Result<Vec<u8>, Problem> {
    let limits = app.limits();
    if lines(body).take(limits.lines + 1).count() > limits.lines {
        let detail = format!("more than {} lines; send them in parts", limits.lines);
        return Err(Problem::too_large(detail));
    }
    let mut answers = Answers { metrics: app.metrics(), bytes: Vec::new(), any_taken: false };
    let mut rest = lines(body).peekable();
    let start = |lines: Vec<Line>| {
        let sources = lines.iter().map(|line| Source::Json(line.json.clone())).collect();
        Started { batch: app.ingest().start(sources, app.now()), lines }
    };
    let mut next = chunk(&mut rest, limits.chunk_lines).map(start);
    while let Some(Started { lines, batch }) = next {
        next = chunk(&mut rest, limits.chunk_lines).map(start);
        let Err(refused) = record(app, &lines, batch.wait(), &mut answers)? else { continue };
        if !answers.any_taken {
            return Err(refused.into());
        }
        let started = next.take().map(|started| started.lines).unwrap_or_default();
        for line in started.into_iter().chain(rest.by_ref()) {
            answers.retry(&line, None, &refused);
        }
    }
    Ok(answers.bytes)
}

/// Records the valid lines of a chunk in one call and answers all of its lines.
fn record(
    app: &App,
    lines: &[Line],
    extracted: Vec<Ingested>,
    answers: &mut Answers<'_>,
) -> Result<Result<(), Refused>, Problem> {
    let mut submissions = Vec::with_capacity(extracted.len());
    let mut pages = Vec::with_capacity(extracted.len());
    for one in extracted {
        pages.push(one.map(|submission| {
            let url = submission.url.to_string();
            submissions.push(submission);
            url
        }));
    }
    let recorded = if submissions.is_empty() { Ok(Vec::new()) } else { app.submit(submissions) };
    let mut outcomes = recorded.iter().flatten();
    for (line, page) in lines.iter().zip(pages) {
        match (page, &recorded) {
            (Err(error), _) => answers.not_taken(line, &error),
            (Ok(url), Err(refused)) => answers.retry(line, Some(url), refused),
            (Ok(url), Ok(_)) => match outcomes.next() {
                Some(&outcome) => answers.taken(url, outcome),
                None => {
                    tracing::error!(url, "tier 1 gave no outcome for a submission");
                    return Err(Problem::internal());
                }
            },
        }
    }
    Ok(recorded.map(drop))
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

impl Answers<'_> {
    fn taken(&mut self, url: String, outcome: Outcome) {
        self.any_taken = true;
        self.push(&LineAnswer::Taken(Taken { url, outcome }));
    }

    fn not_taken(&mut self, line: &Line, error: &IngestError) {
        let (code, field) = match error {
            IngestError::Item(item) => (LineCode::Invalid, item.field.as_deref().map(str::to_owned)),
            IngestError::TooLong(_) => (LineCode::Invalid, None),
            IngestError::Panicked => (LineCode::Internal, None),
        };
        let reason = match error {
            IngestError::Item(item) => item.reason.to_string(),
            other => other.to_string(),
        };
        self.refuse(line, line.url(), LineError { code, field, reason });
    }

    fn retry(&mut self, line: &Line, url: Option<String>, refused: &Refused) {
        self.refuse(line, url, LineError { code: LineCode::Retry, field: None, reason: refused.to_string() });
    }

    fn refuse(&mut self, line: &Line, url: Option<String>, error: LineError) {
        self.metrics.not_taken(error.code);
        self.push(&LineAnswer::NotTaken(NotTaken { line: line.number, url, error }));
    }

    fn push(&mut self, answer: &LineAnswer) {
        if let Err(error) = serde_json::to_writer(&mut self.bytes, answer) {
            // Strings and numbers always serialise into memory.
            tracing::error!(%error, "an answer was not written");
        }
        self.bytes.push(b'\n');
    }
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
