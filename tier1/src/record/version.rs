//! What a page's record says of its versions.

use doppel_protocol::{DatedPopularity, FetchResult, Submission, VersionDetails, VersionPlace};

use super::{PageRecord, State};

/// Which parts of a record a version has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Noted {
    /// Any part, so that the row must be stored.
    pub(crate) row: bool,
    /// The part that the winner order looks at.
    pub(crate) rank: bool,
}

impl PageRecord {
    /// The place of the version that stands for the page; none of a page that was purged.
    pub(crate) fn place(&self) -> Option<VersionPlace<'_>> {
        let result = match &self.state {
            State::Content(state) => FetchResult::Content(state.content),
            State::Redirect(state) => FetchResult::Redirect(&state.to),
            State::Dead => FetchResult::Dead,
            State::Purged => return None,
        };
        Some(VersionPlace { fetched_at: self.fetched_at, result })
    }

    /// The attributes of the version that stands for the page.
    pub(crate) fn details(&self) -> VersionDetails<'_> {
        (self.language.as_deref(), self.canonical.as_ref())
    }

    /// The popularity with its date.
    pub(crate) fn dated_popularity(&self) -> Option<DatedPopularity> {
        let (value, at) = self.rank.popularity.zip(self.popularity_at)?;
        Some(DatedPopularity { at, value })
    }

    /// Takes from a version what every version says of the page, whatever its place: that the page was seen then, and how popular it
    /// was.
    pub(crate) fn note(&mut self, version: &Submission) -> Noted {
        let (first_seen, popularity) = (self.rank.first_seen, self.dated_popularity());
        self.rank.first_seen = first_seen.min(version.fetched_at);
        let later = DatedPopularity::later(popularity, version.dated_popularity());
        let value = |popularity: Option<DatedPopularity>| popularity.map(|popularity| popularity.value);
        self.rank.popularity = value(later);
        self.popularity_at = later.map(|popularity| popularity.at);
        let is_seen_earlier = self.rank.first_seen != first_seen;
        Noted {
            row: is_seen_earlier || later != popularity,
            rank: is_seen_earlier || value(later) != value(popularity),
        }
    }
}
