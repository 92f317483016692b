//! `doppel-eval policies`: every policy on people's grades, judged pairs and transplants, and what it costs.
//!
//! The kinds of truth are never mixed: each has its own columns, with the pairs that a figure rests on. Policies are compared
//! as the product compares pages, also those of fewer than 20 words.

mod cost;
mod summary;

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::ensure;
use clap::Args;
use doppel::args::InputArgs;
use doppel::output::share;
use doppel::progress;
use doppel::svg::{Panel, Series};
use doppel_join::{ContentIndex, Contents};
use doppel_model::PageUrl;
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_text::Extractor;
use serde::Serialize;

use crate::kind::Kind;
use crate::labelled::{self, Crawled, Pair, Truth};
use crate::report::{Report, Table};
use crate::score::Score;
use crate::transplants::Transplants;
use cost::Cost;
use doppel::processor;

/// Compare all policies on pairs of pages whose truth is known, and by what they cost.
///
/// There are three kinds of truth. People's grades: pages of which people said how alike they are; grade 0 is no duplicate. Judged
/// pairs: a language model judged them by a written rule; each stands for a number of pairs, and undecided ones do not count.
/// Transplants: the main content of a page of one host was put into a page of another, so what is the same is known by
/// construction. Pairs on one host and on two are told apart.
///
/// A pair is found when F holds of it. It is joined when both pages are in one group of all pages of the inputs: groups are
/// transitive, so that says what closure adds.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel-eval policies --graded web.labels.jsonl --judged pairs.jsonl web.warc.gz crawl.warc.gz
  doppel-eval policies --transplants 500 --seed 2 crawl.warc.gz")]
pub(crate) struct Policies {
    #[command(flatten)]
    inputs: InputArgs,
    /// Pairs that people graded, as JSON lines with a, b and label.
    #[arg(long, value_name = "FILE")]
    graded: Vec<PathBuf>,
    /// Pairs that were judged, as JSON lines with a, b, label and weight.
    #[arg(long, value_name = "FILE")]
    judged: Vec<PathBuf>,
    /// Sets of four transplanted pairs; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 200)]
    transplants: usize,
    /// Seed of the transplants.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
    /// Compare this policy, with its parameters; may be given several times. All with their defaults unless it is, and shingling
    /// of five words and a single lexicon as baselines.
    #[arg(long = "policy", value_name = "NAME[:KEY=VALUE,...]")]
    policies: Vec<Policy>,
}

/// All policies.
#[derive(Debug, Serialize)]
pub(crate) struct PoliciesResult {
    pages: usize,
    truths: Vec<TruthSet>,
    policies: Vec<OfPolicy>,
    /// Hosts with the pages whose main content can be moved.
    transplant_hosts: BTreeMap<String, usize>,
    seconds: f64,
}

/// The pairs of one kind.
#[derive(Debug, Serialize)]
struct TruthSet {
    kind: Kind,
    same: usize,
    other: usize,
    undecided: usize,
}

/// One policy.
#[derive(Debug, Serialize)]
struct OfPolicy {
    policy: Policy,
    /// By kind of truth, in the order of `truths`.
    pairs: Vec<Scores>,
    cost: Cost,
    /// The share of the pages that are in groups, but for one of each: more than the product removes, which keeps those that are not
    /// like a kept one.
    beside: f64,
}

/// What F finds, and what groups join.
#[derive(Debug, Clone, Copy, Serialize)]
struct Scores {
    f: Score,
    /// None for transplants, which are not among the pages that are grouped.
    grouped: Option<Score>,
}

/// Pairs of one kind.
type Set = (Kind, Vec<Pair>);

impl Policies {
    pub(crate) fn run(self) -> anyhow::Result<PoliciesResult> {
        let begin = Instant::now();
        let crawled = Crawled::read(&self.inputs)?;
        let transplants = Transplants::new(&crawled, self.transplants, self.seed);
        let sets = self.sets(&transplants)?;
        ensure!(!sets.is_empty(), "there is no pair: give --graded, --judged or --transplants");
        let policies: Vec<Policy> =
            if self.policies.is_empty() { all_and_baselines()? } else { self.policies };
        let bar = progress::pages((policies.len() * crawled.pages.len()) as u64, "comparing");
        let mut results = Vec::new();
        for policy in policies {
            results.push(of_policy(policy, &crawled, &transplants.made, &sets)?);
            bar.inc(crawled.pages.len() as u64);
        }
        bar.finish_and_clear();
        let truth_set = |(kind, pairs): &Set| {
            let count = |truth| pairs.iter().filter(|pair| pair.truth == truth).count();
            let (same, other, undecided) = (count(Truth::Same), count(Truth::Other), count(Truth::Undecided));
            TruthSet { kind: *kind, same, other, undecided }
        };
        Ok(PoliciesResult {
            pages: crawled.pages.len(),
            truths: sets.iter().map(truth_set).collect(),
            policies: results,
            transplant_hosts: transplants.hosts,
            seconds: begin.elapsed().as_secs_f64(),
        })
    }

    /// The pairs by kind; kinds without any are left out.
    fn sets(&self, transplants: &Transplants) -> anyhow::Result<Vec<Set>> {
        let read = |paths: &[PathBuf]| {
            let read: anyhow::Result<Vec<_>> = paths.iter().map(|path| labelled::pairs(path)).collect();
            read.map(|pairs| pairs.concat())
        };
        let (graded, judged) = (read(&self.graded)?, read(&self.judged)?);
        let on_hosts = |pairs: &[Pair], one| -> Vec<Pair> {
            pairs.iter().filter(|pair| pair.is_on_one_host() == one).cloned().collect()
        };
        let pairs = |kind| match kind {
            Kind::Graded => graded.clone(),
            Kind::JudgedOneHost => on_hosts(&judged, true),
            Kind::JudgedTwoHosts => on_hosts(&judged, false),
            Kind::TransplantsOneHost => on_hosts(&transplants.pairs, true),
            Kind::TransplantsTwoHosts => on_hosts(&transplants.pairs, false),
        };
        let sets = Kind::ALL.into_iter().map(|kind| (kind, pairs(kind)));
        Ok(sets.filter(|(_, pairs)| !pairs.is_empty()).collect())
    }
}

/// All with their defaults, and what the literature compares with.
fn all_and_baselines() -> anyhow::Result<Vec<Policy>> {
    let baselines = ["supershingle:words=5", "imatch:lexicons=0"].map(str::parse);
    let baselines = baselines.into_iter().collect::<Result<Vec<Policy>, _>>()?;
    Ok(Policy::all().chain(baselines).collect())
}

/// Pages under a policy: their contents, and the group of each.
struct Collection<'c> {
    crawled: &'c Crawled,
    made: &'c Crawled,
    /// By page of the crawl; none for one that redirects.
    contents: Vec<Option<ContentIndex>>,
    signatures: Vec<Arc<Signature>>,
    /// By content.
    roots: Vec<ContentIndex>,
}

fn of_policy(policy: Policy, crawled: &Crawled, made: &Crawled, sets: &[Set]) -> anyhow::Result<OfPolicy> {
    let mut extractor = Extractor::signing(crawled.signer(policy)?);
    let mut contents = Contents::new(policy);
    let (mut of_pages, mut signatures, mut bytes) = (Vec::new(), Vec::new(), 0);
    let begin = processor::seconds();
    for page in &crawled.pages {
        let signature = labelled::sign(&mut extractor, page);
        bytes += signature.as_ref().map_or(0, |signature| signature.as_bytes().len());
        of_pages.push(signature.map(|signature| {
            let (content, is_new) = contents.add(&signature);
            if is_new {
                signatures.push(Arc::new(signature));
            }
            content
        }));
    }
    let signed = processor::seconds();
    let read = |content: ContentIndex| Ok::<_, Infallible>(Arc::clone(&signatures[content.0 as usize]));
    let Ok(roots) = contents.components(&read, |_| true);
    let found = processor::seconds();
    let pages = of_pages.iter().flatten().count();
    let cost = Cost::new(pages, bytes, signed - begin, found - signed);
    let number = |content: &ContentIndex| content.0 as usize;
    // Pages without words are in no group.
    let grouped: Vec<_> =
        of_pages.iter().flatten().filter(|content| signatures[number(content)].tokens() > 0).collect();
    let kept: HashSet<ContentIndex> = grouped.iter().map(|content| roots[number(content)]).collect();
    let beside = share((grouped.len() - kept.len()) as u64, pages as u64);
    let collection = Collection { crawled, made, contents: of_pages, signatures, roots };
    let pairs = sets.iter().map(|(kind, pairs)| collection.scores(policy, &mut extractor, *kind, pairs));
    Ok(OfPolicy { policy, pairs: pairs.collect::<anyhow::Result<_>>()?, cost, beside })
}

impl Collection<'_> {
    fn scores(
        &self,
        policy: Policy,
        extractor: &mut Extractor,
        kind: Kind,
        pairs: &[Pair],
    ) -> anyhow::Result<Scores> {
        let (mut f, mut grouped) = (Score::default(), Score::default());
        for Pair { a, b, truth, weight } in pairs {
            let mut signed = |url: &PageUrl| self.signature(extractor, url);
            let (Some(first), Some(second)) = (signed(a), signed(b)) else {
                anyhow::bail!("the inputs do not have both pages of the pair {a} and {b}, or one redirects");
            };
            f.add(*truth, policy.similar(&first, &second), *weight);
            if !kind.is_made() {
                let group = |url| self.content(url).map(|content| self.roots[content.0 as usize]);
                // Pages without words are in no group.
                let is_joined = group(a) == group(b) && first.tokens() > 0;
                grouped.add(*truth, is_joined, *weight);
            }
        }
        Ok(Scores { f, grouped: (!kind.is_made()).then_some(grouped) })
    }

    fn content(&self, url: &PageUrl) -> Option<ContentIndex> {
        self.contents[self.crawled.number(url)?]
    }

    fn signature(&self, extractor: &mut Extractor, url: &PageUrl) -> Option<Arc<Signature>> {
        match self.content(url) {
            Some(content) => Some(Arc::clone(&self.signatures[content.0 as usize])),
            None => labelled::sign(extractor, self.made.page(url)?).map(Arc::new),
        }
    }
}

impl Report for PoliciesResult {
    fn tables(&self) -> Vec<Table> {
        let mut tables: Vec<Table> = self
            .truths
            .iter()
            .enumerate()
            .map(|(at, truth)| {
                let title = format!(
                    "{}: {} same, {} other, {} undecided; percent, with the pairs that a figure rests on",
                    truth.kind.name(),
                    truth.same,
                    truth.other,
                    truth.undecided
                );
                let is_grouped = self.policies.iter().any(|of| of.pairs[at].grouped.is_some());
                let mut head = vec!["policy", "precision", "recall", "F1"];
                if is_grouped {
                    head.extend(["joined: precision", "joined: recall", "joined: F1"]);
                }
                let mut table = Table::new(&title, head);
                for of in &self.policies {
                    let Scores { f, grouped } = &of.pairs[at];
                    let mut row = vec![of.policy.to_string()];
                    row.extend(f.cells());
                    row.extend(grouped.iter().flat_map(Score::cells));
                    table.row(row);
                }
                table
            })
            .collect();
        tables.push(summary::table(&self.truths, &self.policies, self.pages));
        tables
    }

    fn notes(&self) -> Vec<String> {
        let hosts: Vec<String> =
            self.transplant_hosts.iter().map(|(host, pages)| format!("{host} {pages}")).collect();
        vec![
            format!("pages whose main content can be moved: {}", hosts.join(", ")),
            format!("{:.0} s", self.seconds),
        ]
    }

    /// A point for every policy: recall and precision.
    fn panels(&self) -> Vec<Panel> {
        let panel = |(at, truth): (usize, &TruthSet)| {
            let series = self.policies.iter().filter_map(|of| {
                let score = &of.pairs[at].f;
                let (x, y) = (score.recall()? * 100.0, score.precision()? * 100.0);
                // A line of no length would not be drawn.
                Some(Series {
                    name: of.policy.to_string(),
                    dashed: false,
                    points: vec![(x - 0.6, y), (x + 0.6, y)],
                })
            });
            Panel {
                title: truth.kind.name().to_owned(),
                x: "recall, %".to_owned(),
                y: "precision, %".to_owned(),
                series: series.collect(),
                ..Panel::default()
            }
        };
        self.truths.iter().enumerate().map(panel).collect()
    }
}
