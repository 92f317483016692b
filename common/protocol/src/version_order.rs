//! The order of the versions of a page, and which attributes of earlier versions survive.
//!
//! A replay, a reordered batch, or a late crawl must not change which version stands for a page. Therefore
//! the order depends only on the versions and never on their arrival. The last version in the order stands
//! for the page.

use std::cmp::Ordering;

use doppel_model::{ContentHash, PageUrl, Timestamp};
use serde::{Deserialize, Serialize};

use super::tier1::{Body, Submission};

/// The place of a version among the versions of its page. The version with the greatest place stands for the
/// page. Versions with equal places are the same version.
///
/// The date of the fetch decides first. Among versions of one date, a redirect comes before a content, and a
/// content before a death. Redirects of one date are ordered by the bytes of their targets, contents of one
/// date by their hashes.
///
/// A page that sets a cookie often redirects to itself or to a login first. The page then returns its content
/// within the same second, which is the precision of most crawls. Therefore a content comes after a redirect.
/// A death comes last so that a replay never revives a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct VersionPlace<'v> {
    /// Time of the fetch.
    pub fetched_at: Timestamp,
    /// Result of the fetch.
    pub result: FetchResult<'v>,
}

/// Result of a fetch, reduced to what determines the order of versions. The order of the variants is the
/// order of versions of one date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FetchResult<'v> {
    /// A redirect to this target.
    Redirect(&'v PageUrl),
    /// A content with this hash.
    Content(ContentHash),
    /// The page no longer exists.
    Dead,
}

/// The attributes of a version that do not affect its place: language and canonical URL. Versions with equal
/// places may differ in them; the greatest values count.
pub type VersionDetails<'v> = (Option<&'v str>, Option<&'v PageUrl>);

/// A popularity with the date of the version that supplied it. The popularity of a page is the one with the
/// latest date, so it comes from the newest version that has one. For equal dates, the larger value counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DatedPopularity {
    /// Time of the fetch of the version that supplied the popularity.
    pub at: Timestamp,
    /// Value of the popularity.
    pub value: f64,
}

impl<'v> VersionPlace<'v> {
    /// Creates the place of a version with this date and result.
    #[must_use]
    pub fn new(fetched_at: Timestamp, body: &'v Body) -> Self {
        Self { fetched_at, result: body.result() }
    }
}

impl Body {
    /// Returns the result, reduced to what determines the order of versions.
    #[must_use]
    pub fn result(&self) -> FetchResult<'_> {
        match self {
            Self::Content(signature) => FetchResult::Content(signature.content()),
            Self::Redirect(target) => FetchResult::Redirect(target),
            Self::Dead => FetchResult::Dead,
        }
    }
}

impl Submission {
    /// Returns the place among the versions of the page.
    #[must_use]
    pub fn place(&self) -> VersionPlace<'_> {
        VersionPlace::new(self.fetched_at, &self.body)
    }

    /// Returns the attributes that do not affect the place. A dead page has no such attributes.
    #[must_use]
    pub fn details(&self) -> VersionDetails<'_> {
        match self.body {
            Body::Content(_) | Body::Redirect(_) => (self.language.as_deref(), self.canonical.as_ref()),
            Body::Dead => (None, None),
        }
    }

    /// Returns the popularity with the date of this version.
    #[must_use]
    pub fn dated_popularity(&self) -> Option<DatedPopularity> {
        self.popularity.map(|value| DatedPopularity { at: self.fetched_at, value })
    }
}

impl DatedPopularity {
    /// Selects the popularity that counts, given the popularities of two versions or sets of versions of a
    /// page.
    #[must_use]
    pub fn later(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(one), Some(other)) => Some(if one.compare(other) == Ordering::Less { other } else { one }),
            (one, other) => one.or(other),
        }
    }

    fn compare(self, other: Self) -> Ordering {
        self.at.cmp(&other.at).then(self.value.total_cmp(&other.value))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn versions_of_one_date_are_ordered_by_their_results() {
        let url = |text: &str| PageUrl::parse(text).unwrap();
        let (near, far) = (url("http://a/"), url("http://z/"));
        let hash = |byte| FetchResult::Content(ContentHash([byte; 16]));
        let ascending = [
            (1, FetchResult::Dead),
            (2, FetchResult::Redirect(&near)),
            (2, FetchResult::Redirect(&far)),
            (2, hash(0)),
            (2, hash(255)),
            (2, FetchResult::Dead),
            (3, FetchResult::Redirect(&near)),
        ];
        let places: Vec<_> = ascending
            .into_iter()
            .map(|(date, result)| VersionPlace { fetched_at: at(date), result })
            .collect();
        assert!(places.is_sorted_by(|a, b| a < b), "{places:?}");
    }

    #[test]
    fn a_dead_page_has_no_details_and_may_have_a_popularity() {
        let version = |body| Submission {
            url: PageUrl::parse("http://a/").unwrap(),
            fetched_at: at(3),
            popularity: Some(2.0),
            language: Some("de".into()),
            canonical: None,
            body,
        };
        let dead = version(Body::Dead);
        assert_eq!(dead.details(), (None, None));
        assert_eq!(dead.dated_popularity(), Some(DatedPopularity { at: at(3), value: 2.0 }));
        let moved = version(Body::Redirect(PageUrl::parse("http://b/").unwrap()));
        assert_eq!(moved.details(), (Some("de"), None));
        assert!(moved.place() < dead.place());
    }

    proptest! {
        #[test]
        fn the_newest_popularity_counts_in_any_order_of_arrival(
            given in proptest::collection::vec((0..4_i64, proptest::option::of(0..3_u8)), 0..8)
                .prop_flat_map(|versions| (Just(versions.clone()), Just(versions).prop_shuffle())),
        ) {
            let fold = |versions: &[(i64, Option<u8>)]| {
                versions.iter().fold(None, |known, (date, value)| {
                    let given = value.map(|value| DatedPopularity { at: at(*date), value: value.into() });
                    DatedPopularity::later(known, given)
                })
            };
            let (versions, shuffled) = given;
            let newest = versions.iter().filter_map(|(date, value)| Some((*date, (*value)?))).max();
            let expected = newest.map(|(date, value)| DatedPopularity { at: at(date), value: value.into() });
            prop_assert_eq!(fold(&versions), expected);
            prop_assert_eq!(fold(&shuffled), expected);
        }
    }
}
