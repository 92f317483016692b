//! The savings report as people read it.

use std::io::{self, Write};

use doppel_contract::answer::{HostMirror, RemovableShare, Savings};
use doppel_terminal::output::{as_of, bytes, count, headed, known, percent, plural};

/// Pages that can be dropped without looking at similarity.
const SAME_WORDS: &str = "  the same words (punctuation and case ignored)";

/// Prints what can be dropped, and which hosts mirror which.
pub(crate) fn print(report: &Savings, out: &mut dyn Write) -> io::Result<()> {
    let more = if report.truncated { ", and more that were not examined" } else { "" };
    let weight = report.bytes.map(|b| format!(" ({})", bytes(b))).unwrap_or_default();
    let age = report.age_ms.map(|age| format!(", {}", as_of(age))).unwrap_or_default();
    writeln!(out, "{}{weight}{more}; policy {}{age}", plural(report.pages, "live page"), report.policy)?;
    writeln!(out, "that can be dropped")?;
    let rows = [
        (if report.policy.contains("tokens=") { "  the same tokens" } else { SAME_WORDS }, &report.copies),
        ("  near-duplicates beyond them", &report.near),
        ("  redirects to them or to what is kept", &report.redirects),
        ("  all", &report.all),
    ];
    let rows = rows.map(|(name, saving)| row(name, saving));
    headed(out, &["", "pages", "of all", "bytes", "of all"], rows)?;
    if report.bytes.is_none() {
        writeln!(out, "bytes are not on record; `doppel pilot FILES` counts them")?;
    }
    if report.held_back > 0 {
        let pages = plural(report.held_back, "page");
        writeln!(
            out,
            "{pages} kept beside equal ones: undecided, or in groups quarantined for the number of their contents"
        )?;
    }
    if report.undecided > 0 {
        writeln!(out, "{} not decided yet", plural(report.undecided, "page"))?;
    }
    print_mirrors(report, usize::MAX, out)
}

/// Prints which hosts mirror which, up to `list` pairs.
pub(crate) fn print_mirrors(report: &Savings, list: usize, out: &mut dyn Write) -> io::Result<()> {
    let (here, across) = (count(report.on_one_host), count(report.across_hosts));
    writeln!(out, "kept page on the same host: {here}; on another host: {across}")?;
    let shown = &report.mirrors[..report.mirrors.len().min(list)];
    if shown.is_empty() {
        return Ok(());
    }
    writeln!(out, "which hosts mirror which")?;
    let heading = ["  host", "mirrors", "pages", "equal", "near", "redirects", "bytes"];
    headed(out, &heading, shown.iter().map(mirror))?;
    let unlisted: u64 = report.mirrors[shown.len()..].iter().map(|mirror| mirror.pages).sum();
    let left_out = report.mirrors_left_out + unlisted;
    if left_out > 0 {
        writeln!(out, "and {} of other pairs of hosts", plural(left_out, "page"))?;
    }
    if report.mirrors_cut {
        writeln!(out, "rare pairs were forgotten on the way: the figures are lower bounds")?;
    }
    Ok(())
}

/// Bytes, where they are known.
pub(crate) fn known_bytes(number: Option<u64>) -> String {
    known(number, bytes)
}

fn row(name: &str, saving: &RemovableShare) -> Vec<String> {
    let of_bytes = known(saving.bytes_share, percent);
    vec![name.to_owned(), count(saving.pages), percent(saving.share), known_bytes(saving.bytes), of_bytes]
}

fn mirror(mirror: &HostMirror) -> Vec<String> {
    let HostMirror { host, of, pages, copies, near, redirects, bytes } = mirror;
    let mut row = vec![format!("  {host}"), of.clone()];
    row.extend([pages, copies, near, redirects].map(|number| count(*number)));
    row.push(known_bytes(*bytes));
    row
}
