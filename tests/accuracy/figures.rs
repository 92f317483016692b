//! Checks the guarantees of the groups: precision, recall, and that everything reported is true.

use std::time::Instant;

use anyhow::{Result, ensure};

use crate::accuracy::compare::{Agreement, compare};
use crate::accuracy::corpus::{Corpus, DEFAULT_TAU, MID, QUICK, TRACE};
use crate::accuracy::dedup;
use crate::oracle::collection::Page;
use crate::oracle::{Collection, Truth};

/// The minimum precision and recall of the pairs that the groups imply.
const LEAST_SHARE: f64 = 0.99;

fn check(corpus: &Corpus, tau: &str) -> Result<()> {
    let Some(files) = corpus.files()? else { return Ok(()) };
    let truth = Truth::new(corpus.collection()?, tau.parse()?);
    let output = match tau {
        DEFAULT_TAU => corpus.output()?,
        _ => &dedup::dedup(&["--tau", tau], &files)?,
    };
    ensure_right(&compare(&dedup::parse(output)?, &truth))
}

pub(crate) fn ensure_right(agreement: &Agreement) -> Result<()> {
    let wrong = &agreement.violations;
    ensure!(wrong.is_empty(), "{} wrong: {:#?}", wrong.len(), &wrong[..wrong.len().min(10)]);
    ensure!(agreement.true_pairs > 0 && agreement.duplicates > 0, "nothing to compare: {agreement:?}");
    let (precision, recall) = (agreement.precision(), agreement.recall());
    ensure!(precision >= LEAST_SHARE, "precision {precision}: {agreement:?}");
    ensure!(recall >= LEAST_SHARE, "recall {recall}: {agreement:?}");
    Ok(())
}

#[test]
fn groups_of_quick_are_right_at_tau_08() -> Result<()> {
    check(&QUICK, "0.8")
}

#[test]
fn groups_of_quick_are_right_at_tau_09() -> Result<()> {
    check(&QUICK, "0.9")
}

#[test]
fn groups_of_trace_are_right_at_tau_08() -> Result<()> {
    check(&TRACE, "0.8")
}

/// Shows that the checks can fail: an output that is correct for one threshold is not correct for another.
#[test]
fn the_output_for_another_tau_does_not_pass() -> Result<()> {
    let Some(files) = QUICK.files()? else { return Ok(()) };
    for (asked, expected) in [("0.8", "0.9"), ("0.9", "0.8")] {
        let lines = dedup::parse(&dedup::dedup(&["--tau", asked], &files)?)?;
        let truth = Truth::new(QUICK.collection()?, expected.parse()?);
        ensure!(ensure_right(&compare(&lines, &truth)).is_err(), "{asked} passes for {expected}");
    }
    Ok(())
}

/// Prints the tables of docs/evaluation/correctness.md, and checks the outputs from which they are computed.
#[test]
#[ignore = "a minute; prints the tables of docs/evaluation/correctness.md"]
fn report() -> Result<()> {
    let (mut truths, mut agreements) = (Vec::new(), Vec::new());
    for corpus in [&QUICK, &MID, &TRACE] {
        let Some(files) = corpus.files()? else { continue };
        for tau in ["0.8", "0.9"] {
            let truth = Truth::new(corpus.collection()?, tau.parse()?);
            truths.push(truth_row(corpus.name, tau, &truth));
            let started = Instant::now();
            let output = dedup::dedup(&["--tau", tau], &files)?;
            let seconds = started.elapsed().as_secs_f64();
            let agreement = compare(&dedup::parse(&output)?, &truth);
            agreements.push((agreement_row(corpus.name, tau, &agreement, seconds), agreement));
        }
    }
    println!("\n{TRUTH_HEAD}\n{}", truths.join("\n"));
    println!("\n{AGREEMENT_HEAD}");
    for (row, _) in &agreements {
        println!("{row}");
    }
    agreements.iter().try_for_each(|(_, agreement)| ensure_right(agreement))
}

/// Prints the first table only, which describes the crawls and needs no run of the product.
#[test]
#[ignore = "half a minute; prints a table of docs/evaluation/correctness.md"]
fn truth_table() -> Result<()> {
    println!("{TRUTH_HEAD}");
    for corpus in [&QUICK, &MID, &TRACE] {
        if corpus.files()?.is_none() {
            continue;
        }
        for tau in ["0.8", "0.9"] {
            println!("{}", truth_row(corpus.name, tau, &Truth::new(corpus.collection()?, tau.parse()?)));
        }
    }
    Ok(())
}

const TRUTH_HEAD: &str = "\
| input | tau | live | dead | redirects | unresolved | contents | comparable | F pairs | J = tau | groups | in groups | largest |
|---|---|---|---|---|---|---|---|---|---|---|---|---|";

fn truth_row(name: &str, tau: &str, truth: &Truth) -> String {
    let Collection { pages, contents, dead, .. } = truth.collection;
    let redirects = pages.values().filter(|page| matches!(page, Page::Redirect(_))).count();
    let unresolved = pages.keys().filter(|url| truth.group(url).is_none()).count();
    let comparable = pages.keys().filter(|url| truth.collection.is_comparable(url)).count();
    let mut sizes: Vec<usize> = truth.groups().iter().map(Vec::len).filter(|size| *size > 1).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let largest: Vec<String> = sizes.iter().take(5).map(ToString::to_string).collect();
    format!(
        "| {name} | {tau} | {} | {} | {redirects} | {unresolved} | {} | {comparable} | {} | {} | {} | {} | {} |",
        pages.len(),
        dead.len(),
        contents.all().len(),
        truth.page_pairs(),
        truth.similar.at.len(),
        sizes.len(),
        sizes.iter().sum::<usize>(),
        largest.join(", "),
    )
}

const AGREEMENT_HEAD: &str = "\
| input | tau | pairs by groups | precision | recall | exact groups (pages) | duplicate | secondary | similarity error | wrong | seconds |
|---|---|---|---|---|---|---|---|---|---|---|";

fn agreement_row(name: &str, tau: &str, agreement: &Agreement, seconds: f64) -> String {
    format!(
        "| {name} | {tau} | {} | {:.5} | {:.5} | {} of {} | {} | {} | {:.6} | {} | {seconds:.1} |",
        agreement.true_pairs,
        agreement.precision(),
        agreement.recall(),
        agreement.exact_pages,
        agreement.pages,
        agreement.duplicates,
        agreement.secondaries,
        agreement.similarity_error,
        agreement.violations.len(),
    )
}
