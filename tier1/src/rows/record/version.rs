//! Conversion between a page's record and its versions.
//!
//! A record keeps the version that stands for the page: the version with the greatest place in the version
//! order. All versions count for the date of first sight and for the popularity.

use doppel_protocol::{DatedPopularity, FetchResult, Submission, VersionDetails, VersionPlace};

use super::{PageRecord, State};

/// Tells which parts of a record a version has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordChanges {
    /// Whether any part has changed, so that the row must be stored.
    pub(crate) row: bool,
    /// Whether the part that decides the winner order has changed.
    pub(crate) rank: bool,
}

impl PageRecord {
    /// Returns the place of the version that stands for the page; `None` for a purged page.
    pub(crate) fn place(&self) -> Option<VersionPlace<'_>> {
        let result = match &self.state {
            State::Content(state) => FetchResult::Content(state.content),
            State::Redirect(state) => FetchResult::Redirect(&state.to),
            State::Dead => FetchResult::Dead,
            State::Purged => return None,
        };
        Some(VersionPlace { fetched_at: self.fetched_at, result })
    }

    /// Returns the attributes of the version that stands for the page.
    pub(crate) fn details(&self) -> VersionDetails<'_> {
        (self.language.as_deref(), self.canonical.as_ref())
    }

    /// Returns the popularity with its date.
    pub(crate) fn dated_popularity(&self) -> Option<DatedPopularity> {
        let (value, at) = self.rank.popularity.zip(self.popularity_at)?;
        Some(DatedPopularity { at, value })
    }

    /// Records what every version says about the page, regardless of its place: the date of sight and the
    /// popularity.
    pub(crate) fn note(&mut self, version: &Submission) -> RecordChanges {
        let (first_seen, popularity) = (self.rank.first_seen, self.dated_popularity());
        self.rank.first_seen = first_seen.min(version.fetched_at);
        let later = DatedPopularity::later(popularity, version.dated_popularity());
        let value = |popularity: Option<DatedPopularity>| popularity.map(|popularity| popularity.value);
        self.rank.popularity = value(later);
        self.popularity_at = later.map(|popularity| popularity.at);
        let is_seen_earlier = self.rank.first_seen != first_seen;
        RecordChanges {
            row: is_seen_earlier || later != popularity,
            rank: is_seen_earlier || value(later) != value(popularity),
        }
    }
}
