//! The answers to the JSON lines of a request, one line for each, within the memory budget.
//!
//! Invariant: a share of the budget covers the answers written so far, plus [`LINE_ANSWER_BYTES`] for every
//! line that has no answer yet. The service can therefore answer "retry" to any line at any time, and it
//! never records a page that it could not answer for lack of memory.

use axum::body::Bytes;
use doppel_contract::SubmissionOutcome;
use doppel_contract::answer::{AcceptedPage, LineAnswer, LineCode, LineError, RejectedLine};

use crate::app::App;
use crate::limits::{LINE_ANSWER_BYTES, RETRY_REASON_BYTES};
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::request::memory::BodyMemory;
use crate::request::memory::MemoryShare;
use doppel_engine::ingest::IngestError;

/// The answers written so far.
pub(crate) struct LineAnswers<'m> {
    metrics: &'m Metrics,
    bytes: Vec<u8>,
    share: MemoryShare,
    /// Number of lines that have no answer yet.
    unanswered: usize,
    has_taken: bool,
    needs_retry: bool,
}

/// The complete answers. They hold their share of the memory budget until they are sent.
pub(crate) struct CompleteAnswers {
    pub(crate) bytes: Bytes,
    /// Whether the client must send some lines again.
    pub(crate) needs_retry: bool,
}

/// Builds the answer to a line that is not a valid page.
pub(crate) fn not_taken(line: usize, url: Option<String>, error: &IngestError) -> RejectedLine {
    let (code, field) = match error {
        IngestError::Item(item) => (LineCode::Invalid, item.field.as_deref().map(str::to_owned)),
        IngestError::TooLong(_) => (LineCode::Invalid, None),
        IngestError::NoText { field, .. } => (LineCode::Invalid, field.map(str::to_owned)),
        IngestError::NoSite(_) => (LineCode::Invalid, Some("url".to_owned())),
        IngestError::Panicked => (LineCode::Internal, None),
    };
    let reason = match error {
        IngestError::Item(item) => item.reason.to_string(),
        other => other.to_string(),
    };
    RejectedLine { line, url, error: LineError { code, field, reason } }
}

/// Upper bound on the bytes that the texts of an answer take in JSON.
fn text_bytes(not_taken: &RejectedLine) -> usize {
    let RejectedLine { url, error: LineError { field, reason, .. }, .. } = not_taken;
    [url.as_deref(), field.as_deref(), Some(reason)].into_iter().flatten().map(json_bytes).sum()
}

impl<'m> LineAnswers<'m> {
    /// Reserves memory for the answers to `lines` lines, not counting the texts that the answers repeat.
    ///
    /// # Errors
    /// 503 if there is not enough memory.
    pub(crate) fn new(app: &'m App, memory: &BodyMemory, lines: usize) -> Result<Self, Problem> {
        let (mut share, room) = (memory.share(), lines * LINE_ANSWER_BYTES);
        if !share.grow_to(room) {
            return Err(Problem::memory_full());
        }
        let bytes = Vec::with_capacity(room);
        Ok(Self {
            metrics: app.metrics(),
            bytes,
            share,
            unanswered: lines,
            has_taken: false,
            needs_retry: false,
        })
    }

    /// Reserves memory for the texts of the next answers: the URLs of pages, and the reasons why lines are
    /// not pages. Returns false if there is not enough memory.
    pub(crate) fn reserve_texts<'p>(
        &mut self,
        pages: impl Iterator<Item = &'p Result<String, RejectedLine>>,
    ) -> bool {
        let texts = pages.map(|page| page.as_ref().map_or_else(text_bytes, json_bytes));
        let more = texts.sum::<usize>() + self.unanswered * LINE_ANSWER_BYTES;
        let is_there = self.share.grow_to(self.bytes.len() + more);
        if is_there {
            self.bytes.reserve_exact(more);
        }
        is_there
    }

    /// Returns true if at least one line was accepted.
    pub(crate) fn has_taken(&self) -> bool {
        self.has_taken
    }

    pub(crate) fn push_taken(&mut self, url: String, outcome: SubmissionOutcome) {
        self.has_taken = true;
        self.push(&LineAnswer::Accepted(AcceptedPage { url, outcome }));
    }

    pub(crate) fn push_not_taken(&mut self, not_taken: RejectedLine) {
        self.metrics.not_taken(not_taken.error.code);
        self.push(&LineAnswer::Rejected(not_taken));
    }

    /// Refuses a line for now. The client may send the line again.
    pub(crate) fn push_retry(&mut self, line: usize, url: Option<String>, problem: &Problem) {
        self.needs_retry = true;
        let reason = shortened(problem.detail()).to_owned();
        let error = LineError { code: LineCode::Retry, field: None, reason };
        self.push_not_taken(RejectedLine { line, url, error });
    }

    fn push(&mut self, answer: &LineAnswer) {
        if let Err(error) = serde_json::to_writer(&mut self.bytes, answer) {
            // Strings and numbers always serialise into memory.
            tracing::error!(%error, "cannot write the answer to a line as JSON; the client gets an incomplete line");
        }
        self.bytes.push(b'\n');
        self.unanswered = self.unanswered.saturating_sub(1);
        debug_assert!(self.bytes.len() + self.unanswered * LINE_ANSWER_BYTES <= self.share.bytes());
    }

    /// Completes the answers and returns the memory that they do not need.
    pub(crate) fn complete(mut self) -> CompleteAnswers {
        self.bytes.shrink_to_fit();
        self.share.shrink_to(self.bytes.len());
        CompleteAnswers { bytes: self.share.hold(self.bytes), needs_retry: self.needs_retry }
    }
}

/// Returns the maximum number of bytes that a character takes in a JSON string.
fn json_width(character: char) -> usize {
    match character {
        '"' | '\\' => 2,
        '\0'..='\x1f' => 6,
        other => other.len_utf8(),
    }
}

fn json_bytes(text: impl AsRef<str>) -> usize {
    text.as_ref().chars().map(json_width).sum()
}

/// Truncates a text so that it takes at most [`RETRY_REASON_BYTES`] in a JSON string.
fn shortened(text: &str) -> &str {
    let mut bytes = 0;
    let is_beyond = |&(_, character): &(usize, char)| {
        bytes += json_width(character);
        bytes > RETRY_REASON_BYTES
    };
    let end = text.char_indices().find(is_beyond).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_takes_no_more_bytes_in_json_than_estimated(
            text in "\\PC*|[\0-\x7f]{0,90}|[\"\\\\ß\u{10348}]{0,99}",
        ) {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert!(json.len() - 2 <= json_bytes(&text));
            let short = shortened(&text);
            prop_assert!(json_bytes(short) <= RETRY_REASON_BYTES && text.starts_with(short));
            prop_assert!(short == text || json_bytes(short) > RETRY_REASON_BYTES - 6);
        }
    }

    #[test]
    fn an_answer_without_its_texts_fits_the_reserved_memory() {
        let text = || "x".repeat(100);
        let retry = RejectedLine {
            line: usize::MAX,
            url: Some(text()),
            error: LineError { code: LineCode::Retry, field: None, reason: "x".repeat(RETRY_REASON_BYTES) },
        };
        let json = serde_json::to_string(&LineAnswer::Rejected(retry)).unwrap();
        assert!(json.len() < LINE_ANSWER_BYTES + 100, "the reserved memory includes the reason of a retry");
        let error = LineError { code: LineCode::Internal, field: Some(text()), reason: text() };
        let invalid = RejectedLine { line: usize::MAX, url: Some(text()), error };
        let (texts, json) = (text_bytes(&invalid), serde_json::to_string(&invalid).unwrap());
        assert!(texts == 300 && json.len() < LINE_ANSWER_BYTES + texts);
        let taken =
            serde_json::to_string(&AcceptedPage { url: text(), outcome: SubmissionOutcome::Unchanged })
                .unwrap();
        assert!(taken.len() < LINE_ANSWER_BYTES + 100);
    }
}
