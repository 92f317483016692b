//! Tries one policy on the crawl.

use std::collections::BTreeMap;
use std::path::Path;

use doppel_contract::SubmissionOutcome;
use doppel_contract::answer::Savings;
use doppel_dataset::accounts::{Accounts, DecisionCounts};
use doppel_dataset::extracted::{self, ExtractedPage};
use doppel_dataset::weights::Weights;
use doppel_engine::savings::{CountedPage, SavingsCounter};
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::processor;
use doppel_inputs::tally::Tally;
use doppel_model::pairwise::{Policy, Signer};
use doppel_model::tables::TablesHash;
use doppel_protocol::{Body, WinnerOrder};
use doppel_terminal::output::plural;
use doppel_terminal::progress;
use doppel_tier1::bulk::{Bulk, BulkConfig, BulkOutput, GroupedCollection, PairAgreement, Unit};
use serde::Serialize;

use super::examples::{Examples, FirstPolicyGroups};
use super::sample::{MainContents, Sample};
use super::spool::{SIGNATURES_MAX, Spool};

/// Largest number of pairs within groups that are compared.
const PAIRS_MAX: usize = 100_000;

/// Results of a policy on the crawl, and its costs.
#[derive(Debug, Serialize)]
pub(super) struct Trial {
    /// Number of records by what the policy decides.
    pub(super) records: Accounts,
    #[serde(flatten)]
    pub(super) grouping: Grouping,
    /// Number of accepted versions with content.
    #[serde(skip)]
    versions: u64,
    /// Mean size of a signature in bytes, over all versions with content.
    pub(super) signature_bytes: f64,
    /// Microseconds of processor time for a page, from HTML to signature; null if no page has content.
    pub(super) sign_us: Option<f64>,
    /// Microseconds of processor time for a live page with content, when all pages are grouped at once.
    pub(super) find_us: f64,
    /// Pages that the policy refuses, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) refused: BTreeMap<String, u64>,
    /// Tables that the policy read, if it needs any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tables: Option<TablesRead>,
    /// For policies that compare the main content: how many of the drawn pages have too little of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) main_content: Option<MainContents>,
    /// How the policy differs from the first one; `None` for the first policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) examples: Option<Examples>,
}

impl Trial {
    pub(super) fn policy(&self) -> &str {
        &self.grouping.savings.policy
    }

    /// Whether there were pages with content, and the policy refused all of them.
    pub(super) fn has_used_none(&self) -> bool {
        self.versions == 0 && !self.refused.is_empty()
    }

    /// Says why no page could be compared, if [`Self::has_used_none`] is true.
    pub(super) fn why_none(&self) -> String {
        let reasons = self.refused.iter();
        let reasons = reasons.map(|(reason, pages)| format!("{} refused: {reason}", plural(*pages, "page")));
        format!("no page could be compared: {}", reasons.collect::<Vec<_>>().join("; "))
    }
}

/// Tables that a policy read.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct TablesRead {
    pub(super) hash: TablesHash,
    /// Whether the tables were learned from the input.
    pub(super) learnt: bool,
}

/// Groups that a policy finds.
#[derive(Debug, Serialize)]
pub(super) struct Grouping {
    pub(super) kept: u64,
    pub(super) removed: u64,
    pub(super) groups: u64,
    /// Number of pages in the largest group.
    pub(super) largest: u64,
    /// Groups that are quarantined because they have too many contents.
    pub(super) quarantined: u64,
    /// Pages with content in quarantined groups, all of which are kept.
    pub(super) quarantined_pages: u64,
    /// Pairs of pages with content that are in one group.
    pub(super) pairs: u64,
    /// Number of pairs that were compared. If there are more than [`PAIRS_MAX`] pairs, only a sample is
    /// compared.
    pub(super) pairs_compared: u64,
    /// Compared pairs for which F does not hold: joined through other pages, but not alike.
    pub(super) pairs_unlike: u64,
    pub(super) savings: Savings,
}

/// How the input is read for a trial.
#[derive(Clone, Copy)]
pub(super) struct Reading<'r> {
    pub(super) inputs: &'r InputArgs,
    /// Result of the first reading.
    pub(super) input: &'r Tally,
    /// Whether pages or records are judged.
    pub(super) unit: Unit,
    pub(super) group_members_max: u64,
    pub(super) temp_dir: &'r Path,
}

/// Reads all pages and groups them under a policy. Also stores the pages in `spool`, and the groups of the
/// first policy in `first`.
pub(super) fn of_policy(
    (signer, tables): (&Signer, Option<TablesRead>),
    Reading { inputs, input, unit, group_members_max, temp_dir }: Reading<'_>,
    sample: &Sample,
    mut spool: Option<&mut Spool>,
    first: &mut Option<FirstPolicyGroups>,
) -> anyhow::Result<(Trial, Weights)> {
    let policy = signer.policy();
    let mut bulk = Bulk::new(&config((policy, unit), group_members_max, temp_dir))?;
    let (mut weights, mut versions, mut bytes) = (Weights::by_record(), 0_u64, 0_u64);
    let (mut submitting, mut taken) = (0.0, 0);
    let tally = extracted::pages(inputs, (signer.clone(), false), |pages| {
        for page in pages {
            let (input, is_redirect) = (page.input_record(), page.is_redirect());
            let ExtractedPage { record, submission, bytes: own, .. } = page;
            taken += 1;
            if let Body::Content(signature) = &submission.body {
                versions += 1;
                bytes += signature.as_bytes().len() as u64;
            }
            if let Some(spool) = &mut spool {
                spool.push(input, &submission)?;
            }
            let page = submission.url.id();
            let begin = processor::thread_seconds();
            let outcome = bulk.submit_record(input, submission)?;
            submitting += processor::thread_seconds() - begin;
            weights.note((record, page), own, (is_redirect, outcome));
        }
        Ok(())
    })?;
    if let Some(spool) = spool {
        spool.flush()?;
    }
    let ((grouped, within), grouping) = finish(bulk)?;
    let live = grouped.judged().filter(|judged| judged.content.is_some()).count() as u64;
    let each = |sum: f64, number: u64| if number == 0 { 0.0 } else { sum / number as f64 };
    let trial = Trial {
        records: Accounts::new(&tally, taken, 0, unit, DecisionCounts::of_grouped(&grouped, unit)),
        grouping: Grouping::of((policy, unit), (&grouped, within), &weights, temp_dir)?,
        versions,
        signature_bytes: each(bytes as f64, versions),
        sign_us: sample.microseconds(signer),
        find_us: each((submitting + grouping) * 1e6, live),
        refused: refused(tally, input),
        tables,
        main_content: policy.reads_main().then(|| sample.main_contents()),
        examples: first.as_ref().map(|first| first.examples(&grouped)),
    };
    first.get_or_insert_with(|| FirstPolicyGroups::of(&grouped));
    Ok((trial, weights))
}

/// Returns the pages that could be read, but are bad under this policy, by reason.
fn refused(tally: Tally, input: &Tally) -> BTreeMap<String, u64> {
    let unread = |reason: &String| input.bad.get(reason).copied().unwrap_or(0);
    let refused = tally.bad.into_iter().map(|(reason, pages)| {
        let unread = unread(&reason);
        (reason, pages.saturating_sub(unread))
    });
    refused.filter(|(_, pages)| *pages > 0).collect()
}

/// Groups the pages of a spool under a policy.
pub(super) fn of_spool(
    (policy, unit): (Policy, Unit),
    (group_members_max, temp_dir): (u64, &Path),
    spool: &Spool,
    weights: &Weights,
) -> anyhow::Result<Grouping> {
    let mut bulk = Bulk::new(&config((policy, unit), group_members_max, temp_dir))?;
    for page in spool.pages() {
        let (input, submission) = page?;
        let _: SubmissionOutcome = bulk.submit_record(input, submission)?;
    }
    let ((grouped, within), _) = finish(bulk)?;
    Grouping::of((policy, unit), (&grouped, within), weights, temp_dir)
}

fn config((policy, unit): (Policy, Unit), group_members_max: u64, temp_dir: &Path) -> BulkConfig<'_> {
    BulkConfig {
        policy,
        winners: WinnerOrder::DEFAULT,
        market: None,
        group_members_max,
        unit,
        keep: BulkOutput::Answer { memory_max: SIGNATURES_MAX, temp_dir },
    }
}

/// Finds the groups and how alike their pages are. Also returns the seconds of processor time that grouping
/// took, without the comparison.
fn finish(bulk: Bulk) -> anyhow::Result<((GroupedCollection, PairAgreement), f64)> {
    let spinner = progress::waiting("grouping");
    let begin = processor::seconds();
    let at_rest = bulk.at_rest()?;
    let grouping = processor::seconds() - begin;
    let within = at_rest.within(PAIRS_MAX)?;
    let begin = processor::seconds();
    let grouped = at_rest.finish()?;
    let spent = grouping + processor::seconds() - begin;
    spinner.finish_and_clear();
    Ok(((grouped, within), spent))
}

impl Grouping {
    fn of(
        (policy, unit): (Policy, Unit),
        (grouped, within): (&GroupedCollection, PairAgreement),
        weights: &Weights,
        temp_dir: &Path,
    ) -> anyhow::Result<Self> {
        let mut counting = SavingsCounter::new(policy, temp_dir);
        if unit == Unit::Record {
            counting = counting.keeping_redirects();
        }
        for page in grouped.pages_with_contents() {
            counting.add(&CountedPage {
                url: &page.line.url,
                status: page.line.status,
                of: page.line.duplicate_of.as_ref(),
                content: page.content,
                is_copy: page.is_copy(),
                bytes: weights.of(&page),
            })?;
        }
        let savings = counting.finish(false, &|| false)?;
        // If records are judged, records of dead pages are kept.
        let dead = if unit == Unit::Record { grouped.counters.dead } else { 0 };
        let quarantined: Vec<_> = grouped.groups.iter().filter(|group| group.quarantined).collect();
        Ok(Self {
            kept: savings.pages - savings.all.pages + dead,
            removed: savings.all.pages,
            groups: grouped.groups.len() as u64,
            largest: grouped.groups.iter().map(|group| group.pages).max().unwrap_or(0),
            quarantined: quarantined.len() as u64,
            quarantined_pages: quarantined.iter().map(|group| group.contents).sum(),
            pairs: within.pairs,
            pairs_compared: within.compared,
            pairs_unlike: within.unlike,
            savings,
        })
    }
}
