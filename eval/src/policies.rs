//! `doppel-eval policies`: scores every policy on people's grades, judged pairs, transplants and exact
//! Jaccard, and measures its costs.
//!
//! Kinds of truth are never mixed: each has columns of its own, with the pairs that a figure rests on. The
//! product's code compares the pages, including pages of fewer than 20 words.

mod cost;
mod exact;
mod summary;

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::ensure;
use clap::Args;
use doppel_crawls::FetchedPage;
use doppel_inputs::arguments::InputArgs;
use doppel_join::{ContentIndex, Contents};
use doppel_model::PageUrl;
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_terminal::output::share;
use doppel_terminal::progress;
use doppel_terminal::svg::{Panel, PlotSeries};
use doppel_text::Extractor;
use serde::Serialize;

use crate::ground_truth::kind::TruthKind;
use crate::ground_truth::labelled::{self, CrawledPages, Pair, Truth};
use crate::ground_truth::score::Score;
use crate::ground_truth::transplants::Transplants;
use crate::report::{Report, Table};
use cost::Cost;
use doppel_inputs::processor;
use exact::ExactPairs;

/// Compare all policies on pairs of pages whose truth is known, and by what they cost.
///
/// There are four kinds of truth. People's grades: people said how alike two pages are; grade 0 is no
/// duplicate. Judged pairs: a language model judged them by a written rule. Each stands for a number of
/// pairs, and undecided pairs do not count. Transplants: the main content of a page of one host was put into
/// a page of another, so the truth is known by construction. Pairs on one host and on two are told apart.
/// Last, exact Jaccard above 0.8 of whole pages, between drawn pages and all others. It is circular for
/// `jaccard`, whose F it is.
///
/// A pair is found if F holds for it. A pair is joined if both pages are in one group of all pages of the
/// inputs; for transplants, the pages that were made are grouped too. Groups are transitive, so the
/// difference shows what closure adds.
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
    /// Pages that are drawn and compared with all others by exact Jaccard; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 300)]
    exact: usize,
    /// Seed of the transplants and of the pages that are drawn.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
    /// Compare this policy, with its parameters; may be given several times. The default is all policies with
    /// their defaults, and shingling of five words and a single lexicon as baselines.
    #[arg(long = "policy", value_name = "NAME[:KEY=VALUE,...]")]
    policies: Vec<Policy>,
}

/// Results of all policies.
#[derive(Debug, Serialize)]
pub(crate) struct PoliciesResult {
    pages: usize,
    truths: Vec<TruthSet>,
    policies: Vec<PolicyScores>,
    /// Number of pages whose main content can be moved, by host.
    transplant_hosts: BTreeMap<String, usize>,
    seconds: f64,
}

/// Numbers of pairs of one kind of truth.
#[derive(Debug, Serialize)]
struct TruthSet {
    kind: TruthKind,
    same: usize,
    other: usize,
    undecided: usize,
}

impl TruthSet {
    fn exact(exact: &ExactPairs) -> Self {
        let (same, other) = exact.counts();
        Self { kind: TruthKind::ExactJaccard, same, other, undecided: 0 }
    }
}

/// Scores and costs of one policy.
#[derive(Debug, Serialize)]
struct PolicyScores {
    policy: Policy,
    /// Scores by kind of truth, in the order of `truths`.
    pairs: Vec<Scores>,
    cost: Cost,
    /// Share of the pages that would be removed if every group kept exactly one page. The product removes
    /// fewer: it keeps a page that is like no kept page.
    beside: f64,
}

/// Pairs that F finds, and pairs that groups join.
#[derive(Debug, Clone, Copy, Serialize)]
struct Scores {
    f: Score,
    /// For transplants, the grouped pages include the pages that were made.
    grouped: Score,
}

/// Pairs of one kind of truth.
type PairSet = (TruthKind, Vec<Pair>);

impl Policies {
    pub(crate) fn run(self) -> anyhow::Result<PoliciesResult> {
        let begin = Instant::now();
        let crawled = CrawledPages::read(&self.inputs)?;
        let transplants = Transplants::new(&crawled, self.transplants, self.seed);
        let sets = self.sets(&transplants)?;
        let exact = (self.exact > 0).then(|| ExactPairs::new(&crawled, self.exact, self.seed)).transpose()?;
        ensure!(
            !sets.is_empty() || exact.is_some(),
            "there is no pair to score: give --graded, --judged, --transplants or --exact"
        );
        let policies: Vec<Policy> =
            if self.policies.is_empty() { all_and_baselines()? } else { self.policies };
        let bar = progress::pages((policies.len() * crawled.pages.len()) as u64, "comparing");
        let mut results = Vec::new();
        for policy in policies {
            results.push(score_policy(policy, (&crawled, &transplants.made), &sets, exact.as_ref())?);
            bar.inc(crawled.pages.len() as u64);
        }
        bar.finish_and_clear();
        let truth_set = |(kind, pairs): &PairSet| {
            let count = |truth| pairs.iter().filter(|pair| pair.truth == truth).count();
            let (same, other, undecided) = (count(Truth::Same), count(Truth::Other), count(Truth::Undecided));
            TruthSet { kind: *kind, same, other, undecided }
        };
        Ok(PoliciesResult {
            pages: crawled.pages.len(),
            truths: sets.iter().map(truth_set).chain(exact.as_ref().map(TruthSet::exact)).collect(),
            policies: results,
            transplant_hosts: transplants.hosts,
            seconds: begin.elapsed().as_secs_f64(),
        })
    }

    /// Pairs by kind of truth. A kind without pairs is left out.
    fn sets(&self, transplants: &Transplants) -> anyhow::Result<Vec<PairSet>> {
        let read = |paths: &[PathBuf]| {
            let read: anyhow::Result<Vec<_>> = paths.iter().map(|path| labelled::pairs(path)).collect();
            read.map(|pairs| pairs.concat())
        };
        let (graded, judged) = (read(&self.graded)?, read(&self.judged)?);
        let on_hosts = |pairs: &[Pair], one| -> Vec<Pair> {
            pairs.iter().filter(|pair| pair.is_on_one_host() == one).cloned().collect()
        };
        let pairs = |kind| match kind {
            TruthKind::Graded => graded.clone(),
            TruthKind::JudgedOneHost => on_hosts(&judged, true),
            TruthKind::JudgedTwoHosts => on_hosts(&judged, false),
            TruthKind::TransplantsOneHost => on_hosts(&transplants.pairs, true),
            TruthKind::TransplantsTwoHosts => on_hosts(&transplants.pairs, false),
            // `ExactPairs` counts these pairs without a list, because there are too many.
            TruthKind::ExactJaccard => Vec::new(),
        };
        let sets = TruthKind::ALL.into_iter().map(|kind| (kind, pairs(kind)));
        Ok(sets.filter(|(_, pairs)| !pairs.is_empty()).collect())
    }
}

/// All policies with their defaults, and the baselines of the literature.
fn all_and_baselines() -> anyhow::Result<Vec<Policy>> {
    let baselines = ["supershingle:words=5", "imatch:lexicons=0"].map(str::parse);
    let baselines = baselines.into_iter().collect::<Result<Vec<Policy>, _>>()?;
    Ok(Policy::all().chain(baselines).collect())
}

/// Contents and groups of the pages under one policy.
struct GroupedPages<'c> {
    crawled: &'c CrawledPages,
    made: &'c CrawledPages,
    contents: Contents,
    /// Content of each page of the crawl, and then of each made page. `None` for a redirect.
    of_pages: Vec<Option<ContentIndex>>,
    /// Signature of each content.
    signatures: Vec<Arc<Signature>>,
    /// Group of each content in the crawl alone.
    roots: Vec<ContentIndex>,
    /// Group of each content in the crawl with the made pages.
    roots_with_made: Vec<ContentIndex>,
}

fn score_policy(
    policy: Policy,
    (crawled, made): (&CrawledPages, &CrawledPages),
    sets: &[PairSet],
    exact: Option<&ExactPairs>,
) -> anyhow::Result<PolicyScores> {
    let mut extractor = Extractor::signing(crawled.signer(policy)?);
    let mut collection = GroupedPages {
        crawled,
        made,
        contents: Contents::new(policy),
        of_pages: Vec::new(),
        signatures: Vec::new(),
        roots: Vec::new(),
        roots_with_made: Vec::new(),
    };
    let begin = processor::seconds();
    let bytes = collection.add(&mut extractor, &crawled.pages);
    let signed = processor::seconds();
    collection.roots = collection.components();
    let found = processor::seconds();
    let pages = collection.of_pages.iter().flatten().count();
    let cost = Cost::new(pages, bytes, signed - begin, found - signed);
    let beside = share(collection.beside() as u64, pages as u64);
    collection.add(&mut extractor, &made.pages);
    collection.roots_with_made = collection.components();
    let pairs = sets.iter().map(|(kind, pairs)| collection.scores(policy, *kind, pairs));
    let mut pairs: Vec<Scores> = pairs.collect::<anyhow::Result<_>>()?;
    pairs.extend(exact.map(|exact| collection.exact(policy, exact)));
    Ok(PolicyScores { policy, pairs, cost, beside })
}

impl GroupedPages<'_> {
    /// Signs and adds pages. Returns the size of their signatures in bytes.
    fn add(&mut self, extractor: &mut Extractor, pages: &[FetchedPage]) -> usize {
        let mut bytes = 0;
        for page in pages {
            let signature = labelled::sign(extractor, page);
            bytes += signature.as_ref().map_or(0, |signature| signature.as_bytes().len());
            self.of_pages.push(signature.map(|signature| {
                let (content, is_new) = self.contents.add(&signature);
                if is_new {
                    self.signatures.push(Arc::new(signature));
                }
                content
            }));
        }
        bytes
    }

    /// Computes the group of each content added so far.
    fn components(&self) -> Vec<ContentIndex> {
        // The closure runs on several threads, and `CrawledPages` cannot be shared between threads. So the
        // closure captures only the signatures.
        let signatures = &self.signatures;
        let read = |content: ContentIndex| Ok::<_, Infallible>(Arc::clone(&signatures[content.0 as usize]));
        let Ok(roots) = self.contents.components(&read, |_| true);
        roots
    }

    /// Counts the pages of the crawl that would be removed if every group kept exactly one page.
    fn beside(&self) -> usize {
        // Pages without words are in no group.
        let own = &self.of_pages[..self.crawled.pages.len()];
        let grouped: Vec<ContentIndex> =
            own.iter().flatten().copied().filter(|content| self.signature(*content).tokens() > 0).collect();
        let kept: HashSet<ContentIndex> =
            grouped.iter().map(|content| self.roots[content.0 as usize]).collect();
        grouped.len() - kept.len()
    }

    fn scores(&self, policy: Policy, kind: TruthKind, pairs: &[Pair]) -> anyhow::Result<Scores> {
        let (mut f, mut grouped) = (Score::default(), Score::default());
        let roots = if kind.is_made() { &self.roots_with_made } else { &self.roots };
        for Pair { a, b, truth, weight } in pairs {
            let (Some(first), Some(second)) = (self.content(a), self.content(b)) else {
                anyhow::bail!(
                    "the pair {a} and {b} cannot be compared: the inputs lack one of its pages, or one redirects"
                );
            };
            f.add(*truth, policy.similar(self.signature(first), self.signature(second)), *weight);
            grouped.add(*truth, self.is_joined(roots, first, second), *weight);
        }
        Ok(Scores { f, grouped })
    }

    fn exact(&self, policy: Policy, exact: &ExactPairs) -> Scores {
        let (mut f, mut grouped) = (Score::default(), Score::default());
        let Self { of_pages, signatures, roots, .. } = self;
        let answers = exact.each(|a, b| {
            let [first, second] = [of_pages[a]?, of_pages[b]?].map(|content| content.0 as usize);
            let is_similar = policy.similar(&signatures[first], &signatures[second]);
            // Every page of `exact` has words, so an equal root means one group.
            Some((is_similar, roots[first] == roots[second]))
        });
        for (truth, answer) in answers {
            let (is_similar, is_joined) = answer.unwrap_or_default();
            f.add(truth, is_similar, 1.0);
            grouped.add(truth, is_joined, 1.0);
        }
        Scores { f, grouped }
    }

    fn is_joined(&self, roots: &[ContentIndex], a: ContentIndex, b: ContentIndex) -> bool {
        // Pages without words are in no group.
        roots[a.0 as usize] == roots[b.0 as usize] && self.signature(a).tokens() > 0
    }

    /// Content of a page of the crawl, or of a made page.
    fn content(&self, url: &PageUrl) -> Option<ContentIndex> {
        let own = self.crawled.number(url);
        let number = own.or_else(|| Some(self.crawled.pages.len() + self.made.number(url)?));
        self.of_pages[number?]
    }

    fn signature(&self, content: ContentIndex) -> &Arc<Signature> {
        &self.signatures[content.0 as usize]
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
                let head = ["policy", "precision", "recall", "F1"];
                let joined = ["joined: precision", "joined: recall", "joined: F1", "closure error, %"];
                let mut table = Table::new(&title, head.into_iter().chain(joined));
                for of in &self.policies {
                    let Scores { f, grouped } = &of.pairs[at];
                    let mut row = vec![of.policy.to_string()];
                    row.extend(f.cells());
                    row.extend(grouped.cells());
                    row.push(summary::closure_error(grouped));
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

    /// One point for every policy, at its recall and precision.
    fn panels(&self) -> Vec<Panel> {
        let panel = |(at, truth): (usize, &TruthSet)| {
            let series = self.policies.iter().filter_map(|of| {
                let score = &of.pairs[at].f;
                let (x, y) = (score.recall()? * 100.0, score.precision()? * 100.0);
                // The plot omits a line of no length.
                Some(PlotSeries {
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
