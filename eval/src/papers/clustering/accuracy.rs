//! `doppel-eval accuracy`: compares the groups of the engine with those of the exact baseline while crawls
//! come in.
//!
//! Engine and baseline must have the same live pages at every milestone; otherwise the measurement fails.

use std::collections::HashMap;
use std::time::Instant;

use anyhow::ensure;
use clap::Args;
use doppel_contract::SubmissionOutcome;
use doppel_model::{GroupId, PageUrl, Tau};
use doppel_protocol::Tier2Api;
use doppel_terminal::output::share;
use doppel_terminal::progress;
use doppel_terminal::svg::{Panel, PlotSeries};
use doppel_tier1::Rules;
use indicatif::ProgressBar;
use serde::Serialize;

use crate::papers::clustering::agreement::Agreement;
use crate::papers::clustering::collection::{Collection, Label, all_pairs};
use crate::papers::clustering::driver::Driver;
use crate::papers::clustering::replay::{Fetch, Replay, ReplayArgs, batches};
use crate::report::{Report, Table, percent};

/// Figures of the paper, shown below the tables: table 1 over all sizes and numbers of partitions, in
/// percent, and figure 8.
const PAPER: &str = "the paper: REP 0.8 to 1.3 %, RER 1.5 to 1.74 %, about 30 % of updates confirmed";

/// Compare the groups with an exact baseline while crawls come in.
///
/// The fetches are replayed in order, once for every combination of rules, tau and partitions. At each
/// milestone the groups of the engine are compared with those of an exact program on one machine. REP is the
/// share of the engine's same-group pairs that the baseline does not have. RER is the share of the baseline's
/// pairs that the engine does not have. The paper's rules have no deferred searches and no recomputation. Our
/// rules are read at two moments. At once: the last page of a batch is answered, with background work at its
/// normal pace. Quiescent: no work is left.
#[derive(Debug, Args)]
pub(crate) struct Accuracy {
    #[command(flatten)]
    replay: ReplayArgs,
    /// Thresholds.
    #[arg(long, value_name = "TAU,...", value_delimiter = ',', default_value = "0.8,0.9")]
    tau: Vec<Tau>,
    /// Tier-2 partitions.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "12,24,36",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    partitions: Vec<u32>,
    /// Rules to replay with.
    #[arg(long, value_name = "RULES,...", value_delimiter = ',', default_value = "paper,at-once,quiescent")]
    rules: Vec<Mode>,
    /// Shares of the fetches, in percent, after which the groups are compared.
    #[arg(long, value_name = "PERCENT,...", value_delimiter = ',', default_value = "10,20,30,50,75,100",
        value_parser = clap::value_parser!(u8).range(1..=100))]
    milestones: Vec<u8>,
    /// Number of pages in a batch.
    #[arg(long, value_name = "PAGES", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: u32,
}

/// Rules of the engine, and the moment at which the groups are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    /// The paper's rules, when all work that they demand is done.
    Paper,
    /// Our rules, when no page is pending.
    AtOnce,
    /// Our rules, when no work is left.
    Quiescent,
}

/// Results of all replays.
#[derive(Debug, Serialize)]
pub(crate) struct AccuracyResult {
    rounds: Vec<String>,
    fetches: usize,
    /// Number of fetches that changed the set of shingles of a page.
    updates: u64,
    runs: Vec<Run>,
    seconds: f64,
}

/// Results of one replay.
#[derive(Debug, Serialize)]
struct Run {
    rules: Mode,
    tau: Tau,
    partitions: u32,
    /// Number of partitions at the end. There is one partition until there are enough contents to learn a map
    /// from.
    partitions_learned: usize,
    milestones: Vec<Milestone>,
    /// Share of the updates that tier 1 decided without waiting for tier 2.
    confirmed: f64,
    seconds: f64,
}

/// Comparison after a share of the fetches.
#[derive(Debug, Serialize)]
struct Milestone {
    percent: u8,
    fetches: usize,
    #[serde(flatten)]
    agreement: Agreement,
}

/// Groups of the baseline at each milestone.
type Truth = Vec<HashMap<PageUrl, Label>>;

/// Label of a page by the engine: its group, or the page itself if it has no group.
#[derive(Clone, PartialEq, Eq, Hash)]
enum EngineLabel<'u> {
    Group(GroupId),
    Alone(&'u PageUrl),
}

impl Accuracy {
    pub(crate) fn run(mut self) -> anyhow::Result<AccuracyResult> {
        let begin = Instant::now();
        self.milestones.sort_unstable();
        self.milestones.dedup();
        let replay = Replay::read(&self.replay)?;
        replay.tally.verdict(self.replay.inputs.strict, 0)?;
        let runs = self.tau.len() * self.partitions.len() * self.rules.len();
        let bar = progress::pages((runs * replay.fetches.len()) as u64, "replaying");
        let mut result = AccuracyResult {
            rounds: replay.rounds.clone(),
            fetches: replay.fetches.len(),
            updates: replay.fetches.iter().filter(|fetch| fetch.update).count() as u64,
            runs: Vec::with_capacity(runs),
            seconds: 0.0,
        };
        for tau in &self.tau {
            let truth = self.truth(&replay, *tau);
            for rules in &self.rules {
                for partitions in &self.partitions {
                    result.runs.push(self.replay(&replay, &truth, *rules, *tau, *partitions, &bar)?);
                }
            }
        }
        bar.finish_and_clear();
        result.seconds = begin.elapsed().as_secs_f64();
        Ok(result)
    }

    /// Returns how many of `fetches` fetches come before the milestone at `percent` percent.
    fn until(percent: u8, fetches: usize) -> usize {
        fetches * usize::from(percent) / 100
    }

    fn truth(&self, replay: &Replay, tau: Tau) -> Truth {
        let pairs = all_pairs(&replay.contents, tau);
        let mut collection = Collection::default();
        let mut done = 0;
        let at = |percent: &u8| {
            let until = Self::until(*percent, replay.fetches.len());
            for Fetch { submission, version, .. } in &replay.fetches[done..until] {
                collection.fetch(submission, version);
            }
            done = until;
            collection.groups(&replay.contents, &pairs)
        };
        self.milestones.iter().map(at).collect()
    }

    fn replay(
        &self,
        replay: &Replay,
        truth: &Truth,
        rules: Mode,
        tau: Tau,
        partitions: u32,
        bar: &ProgressBar,
    ) -> anyhow::Result<Run> {
        let begin = Instant::now();
        let (background, at_once) = match rules {
            Mode::Paper => (Rules::PAPER, false),
            Mode::AtOnce => (Rules::EXACT, true),
            Mode::Quiescent => (Rules::EXACT, false),
        };
        let driver = Driver::new(tau, partitions, background)?;
        let (mut milestones, mut confirmed, mut updates, mut done) = (Vec::new(), 0, 0, 0);
        for (percent, truth) in self.milestones.iter().zip(truth) {
            let until = Self::until(*percent, replay.fetches.len());
            for batch in batches(&replay.fetches[done..until], self.batch as usize) {
                let outcomes = driver.submit(batch.iter().map(|fetch| fetch.submission.clone()).collect())?;
                for (fetch, outcome) in batch.iter().zip(outcomes).filter(|(fetch, _)| fetch.update) {
                    updates += u64::from(fetch.update);
                    confirmed += u64::from(outcome == SubmissionOutcome::Confirmed);
                }
                driver.wait_until_answered()?;
                bar.inc(batch.len() as u64);
            }
            if !at_once {
                driver.wait_until_quiescent()?;
            }
            let agreement = compare(&driver.groups()?, truth)?;
            milestones.push(Milestone { percent: *percent, fetches: until, agreement });
            done = until;
        }
        let partitions_learned = driver.engine.tier2.load()?.partitions.len();
        driver.stop();
        Ok(Run {
            rules,
            tau,
            partitions,
            partitions_learned,
            milestones,
            confirmed: share(confirmed, updates),
            seconds: begin.elapsed().as_secs_f64(),
        })
    }
}

/// Compares the engine's groups with the baseline's.
///
/// # Errors
/// If engine and baseline have different live pages, because one of them has lost a fetch.
fn compare(
    groups: &HashMap<PageUrl, Option<GroupId>>,
    truth: &HashMap<PageUrl, Label>,
) -> anyhow::Result<Agreement> {
    let missing = truth.keys().find(|url| !groups.contains_key(url));
    let extra = groups.keys().find(|url| !truth.contains_key(url));
    ensure!(missing.is_none(), "the engine has lost {}, which is live", missing.map_or("", PageUrl::as_str));
    ensure!(extra.is_none(), "the engine still has {}, which is not live", extra.map_or("", PageUrl::as_str));
    let label = |url, group: &Option<GroupId>| group.map_or(EngineLabel::Alone(url), EngineLabel::Group);
    Ok(Agreement::of(groups.iter().map(|(url, group)| (label(url, group), &truth[url]))))
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper's rules",
            Self::AtOnce => "ours, at once",
            Self::Quiescent => "ours, quiescent",
        }
    }
}

impl Report for AccuracyResult {
    fn tables(&self) -> Vec<Table> {
        let percents = self.runs.first().map_or(&[][..], |run| &run.milestones);
        let mut errors = vec!["rules".to_owned(), "tau".to_owned(), "partitions".to_owned()];
        errors.extend(percents.iter().map(|m| format!("{} %", m.percent)));
        errors.push("confirmed".to_owned());
        let mut errors = Table::new("REP / RER in percent of pairs after shares of the fetches", errors);
        let mut ends = Table::new(
            "at the end: pairs, and B-cubed at its worst milestone",
            [
                "rules",
                "tau",
                "partitions",
                "pages",
                "pairs",
                "baseline",
                "common",
                "B3 precision",
                "B3 recall",
                "seconds",
            ],
        );
        for run in &self.runs {
            let start = [run.rules.name().to_owned(), run.tau.to_string(), run.partitions_shown()];
            let error =
                |m: &Milestone| format!("{} / {}", percent(m.agreement.rep), percent(m.agreement.rer));
            let cells = start.iter().cloned().chain(run.milestones.iter().map(error));
            errors.row(cells.chain([format!("{} %", percent(run.confirmed))]));
            let Some(Milestone { agreement: end, .. }) = run.milestones.last() else { continue };
            let least = |of: fn(&Agreement) -> f64| {
                let least = run.milestones.iter().map(|m| of(&m.agreement)).fold(1.0, f64::min);
                format!("{least:.5}")
            };
            let counts = [end.pages, end.system_pairs, end.baseline_pairs, end.common_pairs];
            let cells = start.into_iter().chain(counts.map(|count| count.to_string()));
            ends.row(cells.chain([
                least(|a| a.bcubed_precision),
                least(|a| a.bcubed_recall),
                format!("{:.1}", run.seconds),
            ]));
        }
        vec![errors, ends]
    }

    fn notes(&self) -> Vec<String> {
        let Self { fetches, updates, rounds, seconds, .. } = self;
        vec![
            format!("{fetches} fetches in {} rounds, {updates} updates; {seconds:.0} s in all", rounds.len()),
            PAPER.to_owned(),
            format!(
                "{}: depends on how busy the machine is, and differs from run to run",
                Mode::AtOnce.name()
            ),
        ]
    }

    /// One panel for each tau, with the largest number of partitions.
    fn panels(&self) -> Vec<Panel> {
        let mut taus: Vec<Tau> = self.runs.iter().map(|run| run.tau).collect();
        taus.dedup();
        let panel = |tau: Tau| {
            let mut shown: Vec<&Run> = Vec::new();
            for run in self.runs.iter().filter(|run| run.tau == tau) {
                match shown.iter_mut().find(|shown_run| shown_run.rules == run.rules) {
                    Some(shown_run) if shown_run.partitions < run.partitions => *shown_run = run,
                    Some(_) => {}
                    None => shown.push(run),
                }
            }
            let series = shown.iter().flat_map(|run| {
                let line = |name: &str, dashed, of: fn(&Agreement) -> f64| PlotSeries {
                    name: format!("{name}, {}", run.rules.name()),
                    dashed,
                    points: run
                        .milestones
                        .iter()
                        .map(|m| (f64::from(m.percent), 100.0 * of(&m.agreement)))
                        .collect(),
                };
                [line("REP", false, |a| a.rep), line("RER", true, |a| a.rer)]
            });
            Panel {
                title: format!("Errors of the groups, tau {tau}"),
                x: "% of the fetches".to_owned(),
                y: "% of the pairs".to_owned(),
                series: series.collect(),
                ..Panel::default()
            }
        };
        taus.into_iter().map(panel).collect()
    }
}

impl Run {
    fn partitions_shown(&self) -> String {
        let Self { partitions, partitions_learned, .. } = self;
        if *partitions_learned == *partitions as usize {
            partitions.to_string()
        } else {
            format!("{partitions} ({partitions_learned} learned)")
        }
    }
}
