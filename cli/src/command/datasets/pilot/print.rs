//! Prints the tables of a pilot.

use std::io::{self, Write};

use doppel_terminal::output::{bytes, count, headed, known, percent, plural, share};

use super::examples::{Examples, Pair};
use super::sample::MainContents;
use super::trial::{Grouping, Trial};
use super::{AtTau, NotTried, PilotFindings, SampleOf};
use crate::savings::{known_bytes, print_mirrors};

pub(super) fn print(found: &PilotFindings, top: usize, out: &mut dyn Write) -> io::Result<()> {
    let PilotFindings { input, policies, taus, sample, not_tried, seconds } = found;
    if let Some(first) = policies.first() {
        let of = first.policy();
        write!(out, "{of}: ")?;
        first.records.write_line(out)?;
    }
    writeln!(out, "{} of text and HTML", bytes(input.bytes))?;
    if let Some(SampleOf { cut_off, inputs, input_bytes }) = sample {
        let (inputs, files) = (plural(*inputs, "file"), bytes(*input_bytes));
        writeln!(
            out,
            "A sample: the first records of {inputs} with {files}, of which {} {} more; --whole tries everything.",
            count(*cut_off),
            if *cut_off == 1 { "has" } else { "have" }
        )?;
    }
    writeln!(out, "\nwhat each policy makes of them, and what a page costs")?;
    let heading = [
        "policy",
        "kept",
        "removed",
        "of all",
        "groups",
        "largest",
        "unlike",
        "signature",
        "to sign",
        "to find",
    ];
    headed(out, &heading, policies.iter().map(trial))?;
    writeln!(out, "removed: duplicates, and redirects to kept pages; largest: pages of the largest group;")?;
    writeln!(
        out,
        "unlike: of the pairs of pages in one group, those that are not near-duplicates of each other,"
    )?;
    writeln!(out, "but joined by others; signature: its bytes; to sign, to find: processor time of a page")?;
    for Trial { grouping, tables, refused, .. } in policies {
        let policy = &grouping.savings.policy;
        if tables.is_some_and(|tables| tables.learnt) {
            writeln!(out, "{policy}: tables learnt from this input; with others the figures differ")?;
        }
        for (reason, pages) in refused {
            writeln!(out, "{policy}: {} refused: {reason}", plural(*pages, "page"))?;
        }
    }
    for NotTried { policy, reason, remedy } in not_tried {
        writeln!(out, "{policy}: not tried: {reason}; {remedy}")?;
    }
    for trial in policies {
        let Grouping { quarantined, quarantined_pages, .. } = &trial.grouping;
        if *quarantined > 0 {
            let (groups, pages) = (plural(*quarantined, "group"), plural(*quarantined_pages, "page"));
            writeln!(
                out,
                "{}: all {pages} with content kept in {groups} quarantined for their contents",
                trial.policy()
            )?;
        }
        if let Some(MainContents { pages, whole: whole @ 1.. }) = trial.main_content {
            let (policy, of) = (trial.policy(), plural(pages, "page"));
            writeln!(
                out,
                "{policy}: {} of {of} drawn have too little main content: compared whole",
                count(whole)
            )?;
        }
    }
    writeln!(out, "\nwhat can be dropped: equal contents, near-duplicates beyond them, redirects")?;
    writeln!(
        out,
        "(equal are pages with the same words, punctuation and case ignored, or with the same tokens where a policy reads tokens; of the main"
    )?;
    writeln!(
        out,
        "content or on one site where the policy reads that, and under overlap, from 20 words on, in the same lines)"
    )?;
    let heading =
        ["policy", "equal", "bytes", "near", "bytes", "redirects", "bytes", "all", "bytes", "of all bytes"];
    headed(out, &heading, policies.iter().map(|trial| saved(&trial.grouping)))?;
    if let Some(first) = taus.first() {
        let policy = &first.grouping.savings.policy;
        // Tau is the first parameter.
        let others = policy.split_once(',').map_or_else(String::new, |(_, others)| format!(":{others}"));
        writeln!(out, "\njaccard{others}, by its threshold")?;
        let heading = [
            "tau",
            "kept",
            "removed",
            "of all",
            "bytes",
            "equal",
            "near",
            "redirects",
            "groups",
            "largest",
            "unlike",
        ];
        headed(out, &heading, taus.iter().map(at_tau))?;
    }
    if let Some(Trial { grouping, .. }) = policies.first() {
        let others = if policies.len() > 1 { ", the first policy" } else { "" };
        writeln!(out, "\nunder {}{others}", grouping.savings.policy)?;
        print_mirrors(&grouping.savings, top, out)?;
    }
    print_examples(policies, out)?;
    writeln!(
        out,
        "\nMore removed is not better: look at pairs with `doppel dedup --policy NAME --out FILE` before"
    )?;
    writeln!(out, "you choose. A large group is often one of different pages that share a template.")?;
    writeln!(out, "\n{seconds:.1} s")
}

/// Prints pairs on which a policy and the first policy differ.
fn print_examples(policies: &[Trial], out: &mut dyn Write) -> io::Result<()> {
    let Some((first, others)) = policies.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Ok(());
    };
    writeln!(out, "\nnear-duplicates of one policy that are in different groups of another, some of each")?;
    for trial in others {
        let Some(Examples { only_here, only_first }) = &trial.examples else { continue };
        let (here, first) = (&trial.grouping.savings.policy, &first.grouping.savings.policy);
        for (pairs, of, not) in [(only_here, here, first), (only_first, first, here)] {
            if !pairs.is_empty() {
                writeln!(out, "{of}, not {not}")?;
            }
            for Pair { url, duplicate_of, .. } in pairs {
                writeln!(out, "  {url}  {duplicate_of}")?;
            }
        }
    }
    Ok(())
}

fn trial(trial: &Trial) -> Vec<String> {
    let Trial { grouping, signature_bytes, sign_us, find_us, .. } = trial;
    let Grouping { kept, removed, groups, largest, savings, .. } = grouping;
    vec![
        savings.policy.clone(),
        count(*kept),
        count(*removed),
        percent(savings.all.share),
        count(*groups),
        count(*largest),
        unlike(grouping),
        bytes(signature_bytes.round() as u64),
        known(*sign_us, microseconds),
        microseconds(*find_us),
    ]
}

fn saved(grouping: &Grouping) -> Vec<String> {
    let savings = &grouping.savings;
    let mut row = vec![savings.policy.clone()];
    for saving in [&savings.copies, &savings.near, &savings.redirects, &savings.all] {
        row.extend([count(saving.pages), known_bytes(saving.bytes)]);
    }
    row.push(known(savings.all.bytes_share, percent));
    row
}

fn at_tau(at: &AtTau) -> Vec<String> {
    let Grouping { kept, removed, groups, largest, savings, .. } = &at.grouping;
    let mut row = vec![at.tau.to_string(), count(*kept), count(*removed), percent(savings.all.share)];
    row.push(known_bytes(savings.all.bytes));
    let counts = [savings.copies.pages, savings.near.pages, savings.redirects.pages, *groups, *largest];
    row.extend(counts.map(count));
    row.push(unlike(&at.grouping));
    row
}

/// Share of the pairs within groups that are not alike, but joined through other pages.
fn unlike(grouping: &Grouping) -> String {
    let Grouping { pairs_compared, pairs_unlike, .. } = grouping;
    known((*pairs_compared > 0).then(|| share(*pairs_unlike, *pairs_compared)), percent)
}

fn microseconds(number: f64) -> String {
    if number < 10.0 { format!("{number:.1} us") } else { format!("{number:.0} us") }
}
