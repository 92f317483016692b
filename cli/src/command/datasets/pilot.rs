//! `doppel pilot`: shows what every policy does with a crawl, before a collection is created and its policy
//! fixed.
//!
//! Policies are tried one after the other, and each reads the inputs again. The pilot needs the memory of one
//! `doppel dedup`, and in addition:
//! - 64 MB of pages for timing, and as much for words if tables are learned;
//! - for the first policy, the group of each grouped page;
//! - while `jaccard` is tried, the URL of every version that was read.
//!
//! Tables are learned from the inputs, as in `doppel dedup`.

mod examples;
mod families;
mod input_properties;
mod print;
mod sample;
mod spool;
mod trial;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use doppel_crawls::FetchedPage;
use doppel_inputs::arguments::{AtMost, InputArgs};
use doppel_inputs::reading::crawl;
use doppel_inputs::tally::Tally;
use doppel_model::Tau;
use doppel_model::pairwise::Policy;
use doppel_model::tables::{Tables, TermSample};
use doppel_node::directory::policy_tables;
use doppel_terminal::exit::Failure;
use doppel_terminal::output::{Output, say};
use doppel_terminal::scratch::Scratch;
use doppel_tier1::bulk::Unit;
use serde::Serialize;

use input_properties::InputProperties;
use sample::Sample as Timed;
use spool::Spool;
use trial::{Grouping, Reading, TablesRead, Trial};

/// Thresholds of `jaccard` that are tried.
const TAUS: [&str; 10] = ["0.5", "0.55", "0.6", "0.65", "0.7", "0.75", "0.8", "0.85", "0.9", "0.95"];

/// Limit of a pilot without `--whole`. Every policy reads the sample, and all policies together take less
/// than a minute on two cores. The limit is a number of records and bytes, not a time, so that the same
/// inputs give the same answers.
const SAMPLE: AtMost = AtMost { records: 20_000, bytes: 32 << 20 };

/// Try the policies on crawls on disk, before a collection is created and its policy fixed.
///
/// Prints one table over all policies, or over those of --policy: pages kept and removed, groups, and what a
/// page costs. It also shows what share of the pairs of pages in one group are not alike, but joined only
/// through other pages. Further tables show what exact copies alone, near-duplicates and redirects save, how
/// `jaccard` depends on its threshold, and which hosts mirror which under the first policy (with --json:
/// under each). Finally the command compares each other policy with the first one, by up to three pairs of
/// pages of each kind: near-duplicates of this policy in different groups of the first one, and the other way
/// round.
///
/// More removed is not better: the pilot does not know which pages are the same. Look at pairs with `doppel
/// dedup --policy NAME --out FILE` and `doppel explain` before you choose. The command stores nothing. It
/// finds the same groups as `doppel dedup`, and like it judges each record on its own.
///
/// For large inputs only the first records are tried, 20,000 records or 32 MiB of text and HTML in all, with
/// an equal share for each file. The first line then says so; --whole tries everything. A policy that would
/// give the same groups as another one on these inputs is left out, and a line says why. An example is
/// `content` if no page has markup. Name the policy with --policy to try it nevertheless.
///
/// Times are processor times. The time to sign a page, from HTML to signature, is measured on one core, on
/// 500 pages drawn by their URLs. The time to find the groups is the sum over all cores, divided by the
/// number of live pages with content.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel pilot crawl.warc.gz
  doppel pilot --policy jaccard --policy by-site:site=host crawl.warc.gz
  doppel pilot --json crawl-1.warc.gz crawl-2.warc.gz > pilot.json")]
pub(crate) struct Pilot {
    #[command(flatten)]
    inputs: InputArgs,
    /// Judge pages instead of records: the newest version of each URL stands for it, as in a collection.
    #[arg(long)]
    latest: bool,
    /// Try this policy (docs/reference/policies.md), with parameters as in by-site:site=host. May be given
    /// several times. Without it, all policies are tried with their defaults.
    #[arg(long = "policy", value_name = "NAME[:KEY=VALUE,...]")]
    policies: Vec<Policy>,
    /// Try the whole inputs, however long it takes, instead of at most 20,000 records and 32 MiB of text and
    /// HTML.
    #[arg(long)]
    whole: bool,
    #[arg(long, hide = true)]
    tau: Option<Tau>,
    /// Use these tables for the policy to which they belong. Other tables are learned from the inputs.
    #[arg(long, value_name = "FILE")]
    policy_tables: Option<PathBuf>,
    /// Number of pairs of hosts to print.
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Number of distinct contents above which a group is quarantined, at least 2. All pages of a quarantined
    /// group are kept. Copies of a content count once.
    #[arg(long, value_name = "CONTENTS", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(2..))]
    group_members_max: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Results of a pilot.
#[derive(Debug, Serialize)]
struct PilotFindings {
    input: Tally,
    policies: Vec<Trial>,
    /// Results of `jaccard` at several thresholds.
    taus: Vec<AtTau>,
    /// How large the inputs are, if only a sample of them was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<SampleOf>,
    /// Policies that were not tried: the input or the given tables say nothing about words, or the policy
    /// cannot differ from another one on this input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_tried: Vec<NotTried>,
    seconds: f64,
}

/// Size of the inputs of which only a part was tried.
#[derive(Debug, Serialize)]
struct SampleOf {
    /// Files and directories that were not read completely.
    cut_off: u64,
    /// Files and directories in all.
    inputs: u64,
    /// Bytes of the files, as far as their sizes are known.
    input_bytes: u64,
}

/// Why a policy was not tried.
#[derive(Debug, Serialize)]
struct NotTried {
    policy: String,
    reason: String,
    /// What the user can do about it.
    #[serde(skip)]
    remedy: &'static str,
}

const MORE_WORDS: &str = "give more pages, or --policy-tables FILE";
const NAME_IT: &str = "--policy tries it all the same";

/// Results of `jaccard` at one threshold.
#[derive(Debug, Serialize)]
struct AtTau {
    tau: Tau,
    #[serde(flatten)]
    grouping: Grouping,
}

impl Pilot {
    pub(crate) fn run(mut self) -> anyhow::Result<()> {
        let begin = Instant::now();
        if let Some(tau) = self.tau {
            return Err(Failure::Usage(format!(
                "doppel pilot does not accept --tau; use --policy jaccard:tau={tau}"
            ))
            .into());
        }
        let unit = if self.latest { Unit::Page } else { Unit::Record };
        self.inputs.records.fields.judges_records = unit == Unit::Record;
        let _copies = self.inputs.spool()?;
        if !self.whole {
            self.inputs.at_most = Some(SAMPLE);
            self.inputs.at_most = Some(families::at_most(&self.inputs, SAMPLE)?);
        }
        let scratch = Scratch::new()?;
        let tried = self.policies();
        let given = self.policy_tables.as_deref().map(policy_tables::read).transpose()?;
        let is_given = |policy: &Policy| given.iter().any(|tables| tables.policy() == policy.name());
        if let Some(tables) = given.as_ref().filter(|_| !tried.iter().any(is_given)) {
            let of = tables.policy();
            return Err(Failure::Usage(format!(
                "--policy-tables: the tables belong to the policy {of}, which is not tried; add --policy {of}"
            ))
            .into());
        }
        let learns = tried.iter().any(|policy| policy.reads_tables() && !is_given(policy));
        let mut sample = Timed::default();
        let mut properties = InputProperties::default();
        let (words, input) = self.read(learns, |page| {
            sample.take(page);
            properties.note(page);
        })?;
        if input.records == 0 {
            input.left_out("doppel pilot").inspect(|left_out| say!("doppel: {left_out}"));
            return Ok(input.verdict(self.inputs.strict, 0)?);
        }
        let (mut policies, mut taus, mut first, mut not_tried) = (Vec::new(), Vec::new(), None, Vec::new());
        for policy in tried.iter().copied() {
            if let Some(reason) = properties.why_not(policy, &tried).filter(|_| self.policies.is_empty()) {
                not_tried.push(NotTried { policy: policy.to_string(), reason, remedy: NAME_IT });
                continue;
            }
            let learn = |words: &TermSample| Arc::new(Tables::learn(policy.name(), words));
            let given = given.clone().filter(|_| is_given(&policy));
            let learnt = given.is_none();
            let words = words.as_ref().filter(|_| policy.reads_tables());
            let tables = given.or_else(|| words.map(learn));
            // As in `doppel dedup`, tables without a word count as missing.
            if let Some(reason) = tables.as_deref().and_then(policy_tables::why_empty) {
                not_tried.push(NotTried { policy: policy.to_string(), reason, remedy: MORE_WORDS });
                continue;
            }
            let read = tables.as_ref().map(|tables| TablesRead { hash: tables.hash(), learnt });
            let signer = policy_tables::signer(policy, tables)?;
            // Signatures of `jaccard` do not depend on the threshold, so they are kept until all thresholds
            // are tried.
            let swept = match policy {
                Policy::Jaccard { words, tokens, .. } if taus.is_empty() => Some((words, tokens)),
                _ => None,
            };
            let mut spool = swept.map(|_| Spool::new(scratch.path()));
            let (inputs, group_members_max, temp_dir) =
                (&self.inputs, self.group_members_max, scratch.path());
            let reading = Reading { inputs, input: &input, unit, group_members_max, temp_dir };
            let (trial, weights) =
                trial::of_policy((&signer, read), reading, &sample, spool.as_mut(), &mut first)?;
            policies.push(trial);
            if let (Some(spool), Some((words, tokens))) = (&mut spool, swept) {
                for text in TAUS {
                    let tau: Tau = text.parse()?;
                    let reading = (self.group_members_max, scratch.path());
                    let policy = Policy::Jaccard { tau, words, tokens };
                    let grouping = trial::of_spool((policy, unit), reading, spool, &weights)?;
                    taus.push(AtTau { tau, grouping });
                }
            }
        }
        if let (true, Some(NotTried { policy, reason, remedy })) = (policies.is_empty(), not_tried.first()) {
            return Err(Failure::BadInput(format!("{policy} cannot be tried: {reason}; {remedy}")).into());
        }
        let sample = self.sample_of(&input)?;
        let seconds = begin.elapsed().as_secs_f64();
        let found = PilotFindings { input, policies, taus, sample, not_tried, seconds };
        Output { json: self.json }.print(&found, |out| print::print(&found, self.top, out))?;
        let left_out = found.input.left_out("doppel pilot");
        left_out.inspect(|left_out| say!("doppel: {left_out}"));
        // If a part of the inputs could not be read, the rest was tried nevertheless.
        let refused = found.policies.iter().map(|trial| trial.refused.values().sum()).max();
        found.input.verdict(self.inputs.strict, refused.unwrap_or(0))?;
        let unused = found.policies.iter().find(|trial| trial.has_used_none());
        match unused.filter(|_| !self.policies.is_empty()) {
            Some(trial) => Err(Failure::BadInput(format!("{}: {}", trial.policy(), trial.why_none())).into()),
            None => Ok(()),
        }
    }

    /// Reads the inputs for the first time, to draw pages for timing and, if tables are learned, words.
    fn read(
        &self,
        learns: bool,
        mut take: impl FnMut(&FetchedPage),
    ) -> anyhow::Result<(Option<TermSample>, Tally)> {
        if learns {
            let (words, tally) = policy_tables::sample(&self.inputs, take)?;
            return Ok((Some(words), tally));
        }
        let tally = crawl::read(&self.inputs, |page| {
            take(&page);
            Ok(())
        })?;
        Ok((None, tally))
    }

    /// Describes the inputs if only a sample was read; `None` if all records were read.
    fn sample_of(&self, input: &Tally) -> anyhow::Result<Option<SampleOf>> {
        let sources = &self.inputs.sources()?.all;
        let input_bytes = sources.iter().map(|source| source.bytes).sum();
        let sample = SampleOf { cut_off: input.cut_off, inputs: sources.len() as u64, input_bytes };
        Ok((input.cut_off > 0).then_some(sample))
    }

    /// Returns the policies that the user named, without repetitions, or all policies.
    fn policies(&self) -> Vec<Policy> {
        let mut seen = HashSet::new();
        let tried = self.policies.iter().copied().filter(|policy| seen.insert(*policy));
        let tried: Vec<Policy> = tried.collect();
        if tried.is_empty() { Policy::all().collect() } else { tried }
    }
}
