//! The distinct contents of a replay and the pairs among them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use doppel_baseline::ContentId;
use doppel_control::layout;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageUrl, Tau, Timestamp};
use doppel_protocol::Body;
use doppel_terminal::exit::Failure;
use serde::Serialize;

use crate::papers::clustering::collection::{Version, all_pairs};
use crate::papers::clustering::replay::{Fetch, Replay};

/// The number of bins of the length distribution per doubling of the length.
const BINS: f64 = 2.0;

/// Each distinct content that is live in the end.
pub(super) struct Collection {
    /// In the order of their hashes.
    pub(super) contents: Vec<Arc<Signature>>,
    /// Their indices, by the baseline's ids.
    places: HashMap<ContentId, u32>,
}

/// Contents of about the same length.
#[derive(Debug, Serialize)]
pub(super) struct Bin {
    /// The least number of distinct shingles.
    pub(super) from: u32,
    pub(super) contents: usize,
}

impl Collection {
    /// # Errors
    /// When no content is live in the end.
    pub(super) fn new(replay: &Replay) -> Result<Self, Failure> {
        let mut newest: HashMap<&PageUrl, (Timestamp, &Fetch)> = HashMap::new();
        for fetch in &replay.fetches {
            let page = &fetch.submission;
            let known = newest.get(&page.url).map(|(at, _)| *at);
            if known.is_none_or(|known| known <= page.fetched_at) {
                newest.insert(&page.url, (page.fetched_at, fetch));
            }
        }
        let mut distinct: BTreeMap<ContentHash, (Arc<Signature>, ContentId)> = BTreeMap::new();
        for (_, fetch) in newest.into_values() {
            if let (Body::Content(signature), Version::Content(id)) = (&fetch.submission.body, &fetch.version)
                && signature.tokens() > 0
            {
                distinct.insert(signature.content(), (Arc::clone(signature), *id));
            }
        }
        if distinct.is_empty() {
            return Err(layout::no_content("the input"));
        }
        let places = (0..).zip(distinct.values()).map(|(place, (_, id))| (*id, place)).collect();
        Ok(Self { contents: distinct.into_values().map(|(signature, _)| signature).collect(), places })
    }

    /// Every pair of contents for which F is true, by their indices.
    pub(super) fn pairs(&self, replay: &Replay, tau: Tau) -> Vec<(u32, u32)> {
        let place = |id: &ContentId| self.places.get(id).copied();
        let pairs = all_pairs(&replay.contents, tau);
        pairs.iter().filter_map(|(a, b)| Some((place(a)?, place(b)?))).collect()
    }

    /// The number of contents of each length.
    pub(super) fn lengths(&self) -> Vec<Bin> {
        let mut bins: Vec<Bin> = Vec::new();
        let mut lengths: Vec<u32> = self.contents.iter().map(|content| content.size()).collect();
        lengths.sort_unstable();
        for power in 0.. {
            let from = |power: i32| 2_f64.powf(f64::from(power) / BINS).round() as u32;
            let below = |end| lengths.partition_point(|length| *length < end);
            let (this, next) = (from(power), from(power + 1));
            if below(this) == lengths.len() {
                break;
            }
            if next > this {
                bins.push(Bin { from: this, contents: below(next) - below(this) });
            }
        }
        bins
    }
}
