//! Clients: their batches, which may be repeated or given up, their acknowledged versions, and a reader of
//! the feed.

use std::collections::BTreeMap;
use std::time::Duration;

use doppel_model::{PageUrl, Timestamp};
use doppel_protocol::{Body as Sent, Line, Submission, Tier1Api, Tier1Error};
use doppel_tier1::simulation::SubmissionHint;

use super::contents::Contents;
use super::model::{Body, Version, url};

/// A batch on its way, with the comparisons that the coordinator made when it accepted the batch.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) versions: Vec<(Version, Option<SubmissionHint>)>,
}

/// Converts a version to the submission that tier 1 accepts.
pub(crate) fn submission(version: &Version, contents: &Contents) -> Submission {
    let Version { page, date, popularity, body } = *version;
    Submission {
        url: url(page),
        fetched_at: Timestamp::from_millis(date),
        popularity,
        language: None,
        canonical: None,
        body: match body {
            Body::Content(content) => Sent::Content(std::sync::Arc::clone(&contents.signatures[content])),
            Body::Redirect(to) => Sent::Redirect(url(to)),
            Body::Dead => Sent::Dead,
        },
    }
}

/// A consumer that follows the feed and keeps a copy of every page's state.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    pub(crate) cursor: Option<String>,
    pub(crate) lines: BTreeMap<PageUrl, Line>,
}

impl Reader {
    /// Reads once. Returns true if the feed has no more events.
    pub(crate) fn read(&mut self, tier1: &dyn Tier1Api, limit: usize) -> Result<bool, Tier1Error> {
        let changes = match tier1.changes(self.cursor.as_deref(), limit, Duration::ZERO) {
            // Retention has dropped events since the last read, so the reader starts from the beginning.
            Err(Tier1Error::CursorGone) => {
                *self = Self::default();
                return Ok(false);
            }
            changes => changes?,
        };
        for change in changes.changes {
            self.lines.insert(change.line.url.clone(), change.line);
        }
        self.cursor = Some(changes.cursor);
        Ok(changes.at_end)
    }
}
