//! Compares each record of the inputs with all reference sets.

use std::ops::ControlFlow;
use std::path::Path;

use doppel_contract::Status;
use doppel_crawls::copy::{RecordName, Removal};
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::records::record_names::{RecordLabel, RecordNames};
use doppel_inputs::tally::Tally;
use doppel_join::{ContentIndex, JoinError, ReferencePartner, SearchScratch};
use doppel_model::PageUrl;
use doppel_model::pairwise::{Comparison, Signer};
use doppel_protocol::{Body, Line};
use doppel_tier1::bulk::Unit;
use rayon::prelude::*;
use serde::Serialize;

use super::ReferenceSet;
use crate::accounts::{Accounts, DecisionCounts};
use crate::extracted::{self, ExtractedPage};
use crate::results::{JudgedRecord, RecordDecisions, TakenRecords};

/// Number of records that are compared at once.
const PAGES_AT_ONCE: usize = 64;

/// The records of the inputs, compared with reference sets.
#[derive(Debug)]
pub struct ComparedRecords<'s> {
    sets: &'s [ReferenceSet],
    /// Usable records, in the order of the inputs.
    records: Vec<ComparedRecord>,
    names: RecordNames,
    /// By set: what was found in it.
    found: Vec<FoundPairs>,
    /// Whether all pairs were found, and not only the first of each record and set.
    finds_all: bool,
    /// Records that were read.
    pub tally: Tally,
}

/// How many near-duplicates of the records were found in one set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FoundPairs {
    /// Number of records with a near-duplicate in the set.
    pub records: u64,
    /// Number of the pairs of a record and a content of the set that were found.
    pub pairs: u64,
}

#[derive(Debug)]
struct ComparedRecord {
    number: u64,
    original: Option<u64>,
    url: PageUrl,
    status: Status,
    /// The first near-duplicate, in the order of the sets and of their records.
    partner: Option<Partner>,
}

/// A content of a set that is a near-duplicate of a record.
#[derive(Debug, Clone, Copy)]
struct Partner {
    /// Index of the set.
    set: usize,
    content: ContentIndex,
    comparison: Comparison,
}

/// A line of `--pairs`: a record and a content of a set that are near-duplicates.
#[derive(Debug, Serialize)]
pub struct PairLine<'l> {
    /// URL or name of the record.
    url: &'l str,
    record: Option<RecordLabel<'l>>,
    /// Path of the set, as the user named it.
    reference: &'l Path,
    /// URL or name of the first record of the set that has the content.
    reference_url: &'l str,
    reference_record: Option<RecordLabel<'l>>,
    similarity: f64,
    /// Whether the two contents are equal.
    same_content: bool,
}

/// A line of `--out`.
#[derive(Debug, Serialize)]
pub struct ComparedLine<'l> {
    url: &'l str,
    status: Status,
    /// URL or name of the first near-duplicate in a set.
    duplicate_of: Option<&'l str>,
    similarity: Option<f64>,
    record: Option<RecordLabel<'l>>,
    duplicate_of_record: Option<RecordLabel<'l>>,
    /// Path of the set.
    reference: Option<&'l Path>,
}

/// Takes a pair.
type TakePair<'t> = dyn FnMut(&PairLine<'_>) -> anyhow::Result<()> + 't;

/// Compares the records of the inputs with all sets. With `each_pair`, calls it for every pair, in the order of the
/// inputs. Without it, the search for a record ends at the first near-duplicate in each set.
///
/// # Errors
/// If an input cannot be opened, or a temporary file cannot be read; or the error of `each_pair`.
pub fn compare<'s>(
    inputs: &InputArgs,
    signer: &Signer,
    sets: &'s [ReferenceSet],
    mut each_pair: Option<&mut TakePair<'_>>,
) -> anyhow::Result<ComparedRecords<'s>> {
    let (mut records, mut names) = (Vec::new(), RecordNames::default());
    let mut found = vec![FoundPairs::default(); sets.len()];
    let finds_all = each_pair.is_some();
    let tally = extracted::pages(inputs, (signer.clone(), false), |pages| {
        let mut pages = pages.into_iter();
        loop {
            // Few at a time, because a record can have as many pairs as the references have contents.
            let some: Vec<ExtractedPage> = pages.by_ref().take(PAGES_AT_ONCE).collect();
            if some.is_empty() {
                return Ok(());
            }
            let search =
                |scratch: &mut SearchScratch, page: &ExtractedPage| partners(sets, page, finds_all, scratch);
            let partners: Result<Vec<Vec<Partner>>, JoinError> =
                some.par_iter().map_init(SearchScratch::default, search).collect();
            for (page, partners) in some.into_iter().zip(partners?) {
                let original = page.original();
                let ExtractedPage { record: number, submission, origin, .. } = page;
                names.note(number, &origin);
                for of_set in partners.chunk_by(|a, b| a.set == b.set) {
                    let found = &mut found[of_set[0].set];
                    found.records += 1;
                    found.pairs += of_set.len() as u64;
                }
                if let Some(each_pair) = &mut each_pair {
                    for partner in &partners {
                        each_pair(&pair_line(sets, partner, (&submission.url, names.label(number))))?;
                    }
                }
                let status = match (partners.is_empty(), &submission.body) {
                    (false, _) => Status::Duplicate,
                    (true, Body::Content(_)) => Status::Unique,
                    (true, Body::Redirect(_)) => Status::Unresolved,
                    (true, Body::Dead) => Status::Dead,
                };
                let partner = partners.into_iter().next();
                records.push(ComparedRecord { number, original, url: submission.url, status, partner });
            }
        }
    })?;
    Ok(ComparedRecords { sets, records, names, found, finds_all, tally })
}

fn pair_line<'l>(
    sets: &'l [ReferenceSet],
    partner: &Partner,
    (url, record): (&'l PageUrl, Option<RecordLabel<'l>>),
) -> PairLine<'l> {
    let set = &sets[partner.set];
    PairLine {
        url: url.as_str(),
        record,
        reference: set.path(),
        reference_url: set.url(partner.content).as_str(),
        reference_record: set.label(partner.content),
        similarity: partner.comparison.similarity.as_f64(),
        same_content: partner.comparison.same_content,
    }
}

/// The near-duplicates of a record in the order of the sets and of their contents: all, or the first of each set.
fn partners(
    sets: &[ReferenceSet],
    page: &ExtractedPage,
    finds_all: bool,
    scratch: &mut SearchScratch,
) -> Result<Vec<Partner>, JoinError> {
    let Body::Content(signature) = &page.submission.body else { return Ok(Vec::new()) };
    let mut partners = Vec::new();
    for (set, searched) in sets.iter().enumerate() {
        searched.partners((signature, scratch), |ReferencePartner { content, comparison }| {
            partners.push(Partner { set, content, comparison });
            if finds_all { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    Ok(partners)
}

impl ComparedRecords<'_> {
    /// What was found in each set, in the order of the sets.
    pub fn found(&self) -> &[FoundPairs] {
        &self.found
    }

    /// Whether all pairs were found.
    pub fn finds_all(&self) -> bool {
        self.finds_all
    }

    /// The first near-duplicate of a record, with its set.
    fn partner(&self, record: &ComparedRecord) -> Option<(&ReferenceSet, Partner)> {
        record.partner.map(|partner| (&self.sets[partner.set], partner))
    }

    /// A line for each usable record, in the order of the inputs.
    pub fn lines(&self) -> impl Iterator<Item = ComparedLine<'_>> {
        self.records.iter().map(|record| {
            let partner = self.partner(record);
            ComparedLine {
                url: record.url.as_str(),
                status: record.status,
                duplicate_of: partner.map(|(set, partner)| set.url(partner.content).as_str()),
                similarity: partner.map(|(_, partner)| partner.comparison.similarity.as_f64()),
                record: self.names.label(record.number),
                duplicate_of_record: partner.and_then(|(set, partner)| set.label(partner.content)),
                reference: partner.map(|(set, _)| set.path()),
            }
        })
    }

    /// Counts the records by outcome.
    pub fn accounts(&self) -> Accounts {
        let mut decided = DecisionCounts::default();
        self.records.iter().for_each(|record| decided.count(record.partner.map(|_| Removal::Duplicate)));
        Accounts::new(&self.tally, self.records.len() as u64, 0, Unit::Record, decided)
    }

    /// Decides which records are kept. With `annotate`, also writes their annotations.
    ///
    /// # Errors
    /// If the temporary file of annotations cannot be written.
    pub fn decide(&self, annotate: bool) -> anyhow::Result<RecordDecisions> {
        let mut taken = TakenRecords::default();
        for record in &self.records {
            taken.note((record.number, record.original), record.url.id());
        }
        let judged = self.records.iter().map(|record| {
            let partner = self.partner(record);
            let line = Line {
                url: record.url.clone(),
                status: record.status,
                group: None,
                winner: None,
                duplicate_of: partner.map(|(set, partner)| set.url(partner.content).clone()),
                similarity: partner.map(|(_, partner)| partner.comparison.similarity.as_f64()),
                reason: None,
            };
            let kept = partner.map(|(set, partner)| set.name(partner.content)).unwrap_or_default();
            let removal = partner.map(|_| Removal::Duplicate);
            JudgedRecord { record: record.number, removal, line, winner: RecordName::default(), kept }
        });
        taken.decide_each(judged, annotate)
    }
}
