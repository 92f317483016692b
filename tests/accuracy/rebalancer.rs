//! Measures rebalancing while the sites of a collection arrive one after another: how even the nodes are, and
//! how many contents move.
//!
//! Contents arrive in the order of their URLs. The first plan and its lexicon are learned from the first tenth
//! of the contents, which is one site or two; after that no plan is learned anew. The test measures after
//! every 400th part of the stored contents. In each tenth of the arrival, only a share of the stored contents
//! may move.

use std::collections::{BTreeMap, HashSet};

use anyhow::{Context, Result, ensure};
use doppel_crawls::{Item, Limits};
use doppel_model::signature::Signature;
use doppel_model::{PageUrl, Tau, Timestamp};
use doppel_partitioning::{LengthVector, MappingLoad, Plan, PlanSize, Rebalancer};
use doppel_text::Extractor;

use crate::accuracy::corpus::MID_AND_TRACE;

/// How often a reading is taken, in parts of what is stored.
const STEPS: usize = 400;

/// Partitions per node.
const EACH: u32 = 8;

/// The number of nodes, and the largest share of the stored contents that may move during a tenth of the
/// arrival.
const SETTINGS: [(u32, f64); 2] = [(16, 0.2), (64, 0.3)];

/// The distinct contents that are live at the end, in the order of their first URLs.
fn arrivals() -> Result<Option<Vec<Signature>>> {
    let Some(files) = MID_AND_TRACE.files()? else { return Ok(None) };
    let limits = Limits::at(Timestamp::from_millis(1_900_000_000_000));
    let mut newest: BTreeMap<PageUrl, Option<Signature>> = BTreeMap::new();
    let mut extractor = Extractor::default();
    for file in files {
        for item in doppel_crawls::open(&file, limits).with_context(|| file.display().to_string())? {
            let Item::Page(page) = item else { continue };
            let raw = page.body.raw_content();
            let read = raw.and_then(|raw| extractor.extract(&page.url, raw).page());
            newest.insert(page.url, read.map(|page| page.signature));
        }
    }
    let mut seen = HashSet::new();
    let live = newest.into_values().flatten();
    Ok(Some(live.filter(|one| one.tokens() > 0 && seen.insert(one.content())).collect()))
}

/// The result of a run.
struct Arrival {
    nodes: u32,
    tau: Tau,
    tenths: Vec<Tenth>,
    /// The load of all contents at the end, under the followed plan and under a plan that is learned from all
    /// of them.
    at_end: MappingLoad,
    learned: MappingLoad,
}

#[derive(Default)]
struct Tenth {
    stored: usize,
    moved: u64,
    plans: u32,
    /// The largest imbalance observed, before rebalancing.
    imbalance: f64,
    partitions: usize,
    fan_out_saved: f64,
}

impl Tenth {
    fn moved_share(&self) -> f64 {
        self.moved as f64 / self.stored as f64
    }
}

fn lengths<'s>(plan: &Plan, contents: impl IntoIterator<Item = &'s Signature>) -> Vec<LengthVector> {
    contents.into_iter().map(|content| plan.map().lexicon().lengths(content)).collect()
}

fn arrive(contents: &[Signature], nodes: u32, tau: Tau, rebalancer: Rebalancer) -> Result<Arrival> {
    let first = contents.len() / 10;
    let mut plan = Plan::learn(&contents[..first], PlanSize { nodes, each: EACH }, tau, 3, 1)?;
    let lengths = lengths(&plan, contents);
    let mut load = plan.measure(&lengths[..first]);
    let (mut stored, mut tenths) = (first, Vec::new());
    for tenth in 2..=10 {
        let end = contents.len() * tenth / 10;
        let mut now = Tenth { stored: end, ..Tenth::default() };
        while stored < end {
            let next = (stored + stored.div_ceil(STEPS)).min(end);
            for vector in &lengths[stored..next] {
                load.stored[plan.node(plan.map().home(vector)).index()] += 1;
            }
            stored = next;
            now.imbalance = now.imbalance.max(load.imbalance());
            if load.imbalance() <= rebalancer.limit {
                continue;
            }
            let left = rebalancer.having_moved(now.moved as f64 / stored as f64);
            if let Some(next) = left.next(&plan, &lengths[..stored], 1) {
                plan = next.plan;
                now.moved += next.change.contents_moved;
                now.plans += 1;
                load = plan.measure(&lengths[..stored]);
            }
        }
        now.partitions = plan.assignments().len();
        now.fan_out_saved = plan.measure(&lengths[..stored]).fan_out_saved();
        tenths.push(now);
    }
    let learned = Plan::learn(contents, PlanSize { nodes, each: EACH }, tau, 3, 1)?;
    let learned = learned.measure(&self::lengths(&learned, contents));
    Ok(Arrival { nodes, tau, tenths, at_end: plan.measure(&lengths), learned })
}

impl Arrival {
    fn check(&self, moved_max: f64) -> Result<()> {
        for (number, tenth) in (2..).zip(&self.tenths) {
            let Tenth { imbalance, .. } = tenth;
            let about = format!("{} nodes, tau {}, tenth {number}", self.nodes, self.tau);
            let moved = tenth.moved_share();
            ensure!(moved <= moved_max, "{about}: {moved:.3} of what is stored moved");
            ensure!(number <= 5 || *imbalance <= 1.3, "{about}: imbalance {imbalance:.2}");
        }
        Ok(())
    }

    fn print(&self) {
        for (number, tenth) in (2..).zip(&self.tenths) {
            println!(
                "| {} | {} | {number} | {} | {:.2} | {:.1} | {} | {} | {:.1} |",
                self.nodes,
                self.tau,
                tenth.stored,
                tenth.imbalance,
                100.0 * tenth.moved_share(),
                tenth.plans,
                tenth.partitions,
                100.0 * tenth.fan_out_saved
            );
        }
        let (end, learned) = (&self.at_end, &self.learned);
        println!(
            "{} nodes, tau {}: at the end imbalance {:.2}, fan-out saved {:.1} %, speed-up {:.0}; a plan learned \
             from all of it {:.2}, {:.1} %, {:.0}",
            self.nodes,
            self.tau,
            end.imbalance(),
            100.0 * end.fan_out_saved(),
            end.speed_up(),
            learned.imbalance(),
            100.0 * learned.fan_out_saved(),
            learned.speed_up()
        );
    }
}

/// Runs the given settings. Returns each result with its allowed share.
fn runs(contents: &[Signature], settings: &[(u32, f64)]) -> Result<Vec<(Arrival, f64)>> {
    let mut runs = Vec::new();
    for &(nodes, moved_max) in settings {
        for tau in ["0.8", "0.9"] {
            let rebalancer = Rebalancer { moved_max, each: EACH, ..Rebalancer::default() };
            runs.push((arrive(contents, nodes, tau.parse()?, rebalancer)?, moved_max));
        }
    }
    Ok(runs)
}

#[test]
fn a_plan_follows_sites_that_arrive_one_after_another() -> Result<()> {
    let Some(contents) = arrivals()? else { return Ok(()) };
    runs(&contents, &SETTINGS[..1])?.iter().try_for_each(|(run, moved_max)| run.check(*moved_max))
}

#[test]
#[ignore = "prints a table of docs/evaluation/mapping.md"]
fn follow_report() -> Result<()> {
    let Some(contents) = arrivals()? else { return Ok(()) };
    println!(
        "| nodes | tau | tenth | stored | imbalance | moved, % | plans | partitions | fan-out saved, % |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let runs = runs(&contents, &SETTINGS)?;
    runs.iter().for_each(|(run, _)| run.print());
    runs.iter().try_for_each(|(run, moved_max)| run.check(*moved_max))
}
