//! Doppel and its fastest peer at the same job: how many pages of a file have a near-duplicate?
//!
//! `race FILE` runs `doppel dedup FILE` and `gaoya FILE` in turn, each a whole process, and prints the best wall time of
//! each with its processor time, its most memory and what it found, and the ratio of the times.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::Value;
use wait4::Wait4;

const USAGE: &str = "\
usage: race FILE [DOPPEL] [TIMES]

Runs `doppel dedup FILE` and `gaoya FILE` in turn, each TIMES times (2), and compares the best wall times.
FILE has pages of text as JSON lines; `doppel-eval pages` writes such files. DOPPEL is the program
(../target/release/doppel, seen from this crate).";

/// A whole process and what it found.
#[derive(Clone, Copy)]
struct Run {
    wall: Duration,
    processor: Duration,
    bytes_max: u64,
    pages: u64,
    near: u64,
}

fn main() -> anyhow::Result<()> {
    let mut arguments = env::args().skip(1);
    let file = PathBuf::from(arguments.next().filter(|file| !file.starts_with('-')).context(USAGE)?);
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/doppel");
    let doppel = arguments.next().map_or(built, PathBuf::from);
    let times: u32 = arguments.next().map_or(Ok(2), |times| times.parse()).context(USAGE)?;
    let gaoya = env::current_exe()?.with_file_name("gaoya");
    // Once, so that neither reads the file from the disk.
    std::io::copy(&mut std::fs::File::open(&file).context("cannot read FILE")?, &mut std::io::sink())?;

    let (mut doppel_runs, mut gaoya_runs) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let mut command = Command::new(&doppel);
        command.arg("dedup").arg("--json").arg(&file);
        doppel_runs.push(run(&mut command, |found| {
            let pages = &found["pages"];
            let near = ["winners", "duplicates", "members"].map(|status| pages[status].as_u64());
            Some((pages["live"].as_u64()?, near.into_iter().sum::<Option<u64>>()?))
        })?);
        gaoya_runs.push(run(Command::new(&gaoya).arg(&file), |found| {
            Some((found["pages"].as_u64()?, found["with_near_duplicate"].as_u64()?))
        })?);
    }
    let best = |runs: &[Run]| runs.iter().copied().min_by_key(|run| run.wall).context(USAGE);
    let (doppel, gaoya) = (best(&doppel_runs)?, best(&gaoya_runs)?);
    println!("         seconds  processor  memory    pages  with a near-duplicate");
    for (name, Run { wall, processor, bytes_max, pages, near }) in [("doppel", doppel), ("gaoya", gaoya)] {
        let (wall, processor, memory) = (wall.as_secs_f64(), processor.as_secs_f64(), bytes_max / 1_000_000);
        println!("{name:<8} {wall:>7.2}  {processor:>9.2}  {memory:>3} MB  {pages:>7}  {near:>7}");
    }
    println!("doppel takes {:.2} of gaoya's time", doppel.wall.as_secs_f64() / gaoya.wall.as_secs_f64());
    Ok(())
}

/// Runs a program to its end. `found` takes the pages, and those with a near-duplicate, from what it prints.
fn run(command: &mut Command, found: impl Fn(&Value) -> Option<(u64, u64)>) -> anyhow::Result<Run> {
    let begin = Instant::now();
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {command:?}"))?;
    let out = child.stdout.take().context("the program has no standard output")?;
    // The end of its output is read before its end is waited for, so that it never writes into a full pipe.
    let printed = std::io::read_to_string(out)?;
    let used = child.wait4()?;
    let wall = begin.elapsed();
    ensure!(used.status.success(), "{command:?} ended with {}", used.status);
    let printed: Value =
        serde_json::from_str(&printed).with_context(|| format!("{command:?} printed no JSON"))?;
    let (pages, near) = found(&printed).with_context(|| format!("{command:?} printed {printed}"))?;
    let processor = used.rusage.utime + used.rusage.stime;
    Ok(Run { wall, processor, bytes_max: used.rusage.maxrss, pages, near })
}
