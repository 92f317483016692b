//! Simulates whole clusters in one thread from a seed: shards, partitions, clients, network, stores and
//! files. The network delays, reorders, duplicates and loses messages. Stores lose unflushed writes, files
//! fail, and processes crash at every step. In half of the runs, ranges are replicated: an owner and standbys
//! share a log that has faults of its own.
//!
//! `cargo test --test sim` runs a fixed set of seeds. `DOPPEL_SIM_SEED` is the first seed, `DOPPEL_SIM_SEEDS`
//! the number of seeds or `forever`, and `DOPPEL_SIM_STEPS` the number of steps per seed:
//!
//! ```sh
//! DOPPEL_SIM_SEEDS=10000 cargo test --release --test sim no_seed -- --nocapture
//! ```
//!
//! A failing seed is reported, shrunk, and printed as a list of actions. If `DOPPEL_SIM_TRACE` is set, every
//! commit of the shrunk run is printed as well.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod sim {
    pub(crate) mod action;
    pub(crate) mod at_once;
    pub(crate) mod clients;
    pub(crate) mod contents;
    pub(crate) mod delays;
    pub(crate) mod disk;
    pub(crate) mod index_side;
    pub(crate) mod invariant;
    pub(crate) mod mistake;
    pub(crate) mod model;
    pub(crate) mod network;
    pub(crate) mod order;
    pub(crate) mod order_log;
    pub(crate) mod ownership;
    pub(crate) mod random;
    pub(crate) mod replica_actions;
    pub(crate) mod replicas;
    pub(crate) mod restart;
    pub(crate) mod run;
    pub(crate) mod settle;
    pub(crate) mod shared_log;
    pub(crate) mod shrink;
    pub(crate) mod status_tables;
    pub(crate) mod store;
    pub(crate) mod violation;
    pub(crate) mod world;
}

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use doppel_model::pairwise::Policy;
use sim::action::Plan;
use sim::mistake::Mistake;
use sim::run::run;
use sim::shrink::shrink;
use sim::world::TRACED;

/// The number of seeds that are always run.
const SEEDS: u64 = 600;

/// The number of steps per seed.
const STEPS: usize = 500;

/// The number of seeds within which a planted mistake must be found.
const SEEDS_TO_FIND: u64 = 400;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

fn steps() -> usize {
    number("DOPPEL_SIM_STEPS").map_or(STEPS, |steps| steps as usize)
}

/// Suppresses the messages of expected panics.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    if number("DOPPEL_SIM_SEED").is_none() {
        std::panic::set_hook(Box::new(|_| {}));
    }
    let result = work();
    drop(std::panic::take_hook());
    result
}

/// Shrinks a failing run and describes it.
fn explained(seed: u64, mistake: Option<Mistake>) -> Option<String> {
    let plan = Plan::of(seed, steps());
    let violation = run(&plan, mistake).err()?;
    let (small, violation) = shrink(&plan, mistake, violation);
    if std::env::var_os("DOPPEL_SIM_TRACE").is_some() {
        TRACED.store(true, Ordering::Relaxed);
        drop(run(&small, mistake));
    }
    let Plan { shards, ranges, pages, policy, step_rows, group_members_max, low_cohesion_percent, .. } =
        small;
    let Plan { rules, actions, replicas, part_bytes, loses_tail, disk_fails, .. } = small;
    let actions: Vec<String> = actions.iter().map(|action| format!("  {action:?}")).collect();
    Some(format!(
        "seed {seed}: {violation}\n{shards} shards in {ranges} ranges of {replicas} replicas (parts of {part_bytes} bytes, the log loses its tail: {loses_tail}, calls of files to one that fails: {disk_fails}), {pages} pages, {policy}, steps of \
         {step_rows} rows, groups of {group_members_max}, low cohesion from {low_cohesion_percent} %, winners by {rules:?}; {} actions:\n{}\nagain: DOPPEL_SIM_SEED={seed} \
         DOPPEL_SIM_SEEDS=1 cargo test --test sim no_seed",
        actions.len(),
        actions.join("\n")
    ))
}

#[test]
fn no_seed_breaks_an_invariant() {
    let forever = std::env::var("DOPPEL_SIM_SEEDS").is_ok_and(|seeds| seeds == "forever");
    let first = number("DOPPEL_SIM_SEED").unwrap_or(0);
    let seeds = if forever { u64::MAX - first } else { number("DOPPEL_SIM_SEEDS").unwrap_or(SEEDS) };
    let (next, failed) = (AtomicU64::new(first), AtomicU64::new(u64::MAX));
    let begin = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + seeds || failed.load(Ordering::Relaxed) < seed {
                        break;
                    }
                    if run(&Plan::of(seed, steps()), None).is_err() {
                        failed.fetch_min(seed, Ordering::Relaxed);
                    }
                    let done = seed - first + 1;
                    if done.is_multiple_of(1_000) {
                        eprintln!("{done} seeds in {:.1?}", begin.elapsed());
                    }
                }
            });
        }
    });
    let failed = failed.into_inner();
    if failed < u64::MAX {
        eprintln!("seed {failed} fails; shrinking its run");
        panic!(
            "{}",
            explained(failed, None)
                .unwrap_or_else(|| format!("seed {failed} failed, but did not fail again"))
        );
    }
    eprintln!("{seeds} seeds of {} steps in {:.1?}", steps(), begin.elapsed());
}

/// The policy of a seed is random. Every policy must occur among the seeds of a default run.
#[test]
fn every_policy_occurs_in_the_default_seeds() {
    let mut drawn: BTreeMap<&str, u64> = BTreeMap::new();
    (0..SEEDS).for_each(|seed| *drawn.entry(Plan::of(seed, 1).policy.name()).or_default() += 1);
    eprintln!("{drawn:?}");
    let reads_code = |seed: &u64| Plan::of(*seed, 1).policy.reads_code_tokens();
    let code = (0..SEEDS).filter(reads_code).count();
    assert!(code >= 8, "{code} seeds compare code");
    for policy in Policy::all() {
        assert!(drawn.get(policy.name()).is_some_and(|seeds| *seeds >= 8), "{policy}: {drawn:?}");
    }
}

#[test]
fn a_seed_gives_the_same_run() {
    for seed in 0..20 {
        assert_eq!(Plan::of(seed, 100), Plan::of(seed, 100));
        let run = || run(&Plan::of(seed, 300), Some(Mistake::LostLeave));
        assert_eq!(run(), run());
    }
}

#[test]
fn every_planted_mistake_is_found() {
    let seeds = number("DOPPEL_SIM_SEEDS").unwrap_or(SEEDS_TO_FIND);
    let missed: Vec<String> = quietly(|| {
        let mut missed = Vec::new();
        for mistake in Mistake::ALL {
            let found =
                (0..seeds).find_map(|seed| Some((seed, run(&Plan::of(seed, STEPS), Some(mistake)).err()?)));
            match found {
                Some((seed, violation)) => eprintln!("{mistake:?}: seed {seed}, {}", violation.invariant),
                None => missed.push(format!("{mistake:?}")),
            }
        }
        missed
    });
    assert!(missed.is_empty(), "no invariant detected these mistakes within {seeds} seeds: {missed:?}");
}
