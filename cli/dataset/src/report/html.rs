//! Renders the page as HTML without scripts and without external resources.
//!
//! Invariants: text from pages, names of files and errors is [`Escaped`]. The content security policy of the
//! page lets a browser load and run nothing.

use doppel_contract::Status;
use doppel_contract::answer::{RemovableShare, Savings};
use doppel_model::pairwise::Policy;
use doppel_terminal::output::{bytes, count, interval, known, percent, plural, share};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::escaped::Escaped;
use super::figures::Figures;
use super::mirrors::{Mirrors, Pair, Side};
use super::similarities::{Row, Similarities};
use super::texts::Texts;
use super::{Run, groups_html};
use crate::accounts::Accounts;
use crate::weights::Weight;

const STYLE: &str = include_str!("style.css");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Renders the whole page.
pub(super) fn page(run: &Run<'_>, figures: &Figures, texts: &Texts) -> Markup {
    let title = format!("Duplicates in {}", named(run.names));
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (Escaped(&title)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (Escaped(&title)) }
                    (key_figures(figures, run))
                }
                main {
                    div.columns { (read(run)) (savings(&figures.savings, run.signer.policy())) (statuses(figures)) }
                    div.columns { (sizes(run)) (similarities(&figures.similarities)) }
                    (mirrors(&figures.mirrors))
                    (groups_html::section(run, figures, texts))
                }
            }
        }
    }
}

/// Names the first input, and how many others there are.
fn named(names: &[String]) -> String {
    match names {
        [] => "no input".to_owned(),
        [one] => one.clone(),
        [first, others @ ..] => format!("{first} and {}", plural(others.len() as u64, "other")),
    }
}

fn key_figures(figures: &Figures, run: &Run<'_>) -> Markup {
    let Savings { all, .. } = &figures.savings;
    let Accounts { read, kept, superseded, bad, skipped, .. } = run.accounts;
    let groups: u64 = run.groups.sizes.values().map(|(groups, _)| groups).sum();
    let figure = |value: String, name: &str, more: String| {
        html! {
            div { dt { (name) } dd { strong { (value) } @if !more.is_empty() { span { (more) } } } }
        }
    };
    html! {
        dl.key {
            (figure(count(*read), "records read", String::new()))
            (figure(count(*kept), "kept", percent(share(*kept, *read))))
            (figure(count(run.accounts.removed()), "removed", run.accounts.reasons()))
            @if let Some(superseded) = superseded { (figure(count(*superseded), "superseded", String::new())) }
            (figure(count(*bad), "bad", String::new()))
            (figure(count(*skipped), "skipped", String::new()))
            (figure(known(all.bytes, bytes), "bytes less", known(all.bytes_share, percent)))
            (figure(count(groups), "groups", String::new()))
        }
    }
}

/// Renders what was read.
fn read(run: &Run<'_>) -> Markup {
    let input = &run.ingest.input;
    let dates = run.ingest.dates.filter(|_| run.is_dated);
    html! {
        section {
            h2 { "What was read" }
            dl.facts {
                dt { "inputs" }
                dd {
                    @for name in run.names.iter().take(NAMES) { div { (Escaped(name)) } }
                    @if run.names.len() > NAMES { div { "and " (run.names.len() - NAMES) " more" } }
                }
                dt { "records" } dd { (count(input.records)) " (" (bytes(input.bytes)) ")" }
                @if input.read_before.files > 0 {
                    dt { "known files" } dd { (count(input.read_before.files)) " " (input.read_before) }
                }
                @for (reason, records) in &input.skipped { dt { "skipped" } dd { (count(*records)) ": " (Escaped(reason)) } }
                @for (reason, records) in &input.bad { dt { "bad" } dd { (count(*records)) ": " (Escaped(reason)) } }
                @if input.skipped_bytes > 0 {
                    dt { "skipped bytes" } dd { (count(input.skipped_bytes)) " of broken WARC or ARC records, and between records" }
                }
                @if !input.incomplete.is_empty() {
                    dt { "incomplete" }
                    dd { (plural(input.incomplete.len() as u64, "input")) " could not be read to the end" }
                }
                @if let Some((first, last)) = dates {
                    dt { "dates" } dd { (first) " to " (last) }
                }
                dt { "policy" } dd { (run.signer.policy()) }
                @if run.has_earlier { dt { "collection" } dd { "has pages of earlier inputs, too" } }
            }
        }
    }
}

/// Number of inputs that are listed by name.
const NAMES: usize = 10;

fn savings(savings: &Savings, policy: Policy) -> Markup {
    let row = |name: &str, saving: &RemovableShare| {
        html! {
            tr {
                th scope="row" { (name) }
                td { (count(saving.pages)) } td { (percent(saving.share)) }
                td { (known(saving.bytes, bytes)) } td { (known(saving.bytes_share, percent)) }
            }
        }
    };
    html! {
        section {
            h2 { "What can be removed" }
            table {
                thead { tr { th scope="col" { "" } th scope="col" { "pages" } th scope="col" { "of all" } th scope="col" { "bytes" } th scope="col" { "of all" } } }
                tbody {
                    (row(policy.equality(), &savings.copies))
                    (row("near-duplicates beyond them", &savings.near))
                    (row("redirects", &savings.redirects))
                }
                tfoot { (row("all", &savings.all)) }
            }
            @if savings.bytes.is_none() {
                p.note { "The bytes of pages that are on record from earlier inputs are not known." }
            }
            @if savings.held_back > 0 {
                p.note { (plural(savings.held_back, "page")) " kept beside equal ones, in groups quarantined for the number of their contents." }
            }
        }
    }
}

fn statuses(figures: &Figures) -> Markup {
    let all_bytes = figures.savings.bytes;
    let redirects = &figures.redirects;
    let pages = redirects.pages + figures.statuses.iter().map(|(_, weight)| weight.pages).sum::<u64>();
    let about = |status: Status| match status {
        Status::Unique => "without a duplicate: kept",
        Status::Winner => "one of each group: kept",
        Status::Secondary => "kept beside the winner",
        Status::Unresolved => "redirects to no known page: kept",
        Status::Dead => "pages that are gone: kept",
        Status::Duplicate => "verified against a kept page: removed",
        _ => "not decided: kept",
    };
    html! {
        section {
            h2 { "Pages by status" }
            table {
                thead { tr { th scope="col" { "status" } th scope="col" { "pages" } th scope="col" { "of all" } th scope="col" { "bytes" } th scope="col" { "of all" } } }
                tbody {
                    @for (status, Weight { pages: number, bytes: weight }) in &figures.statuses {
                        tr {
                            th scope="row" { (status.to_string()) small { (about(*status)) } }
                            td { (count(*number)) } td { (percent(share(*number, pages))) }
                            td { (known(*weight, bytes)) }
                            td { (known(weight.zip(all_bytes), |(part, whole)| percent(share(part, whole)))) }
                        }
                    }
                    @if redirects.pages > 0 {
                        tr {
                            th scope="row" { "redirect" small { "to a page that is here: kept" } }
                            td { (count(redirects.pages)) } td { (percent(share(redirects.pages, pages))) }
                            td { (known(redirects.bytes, bytes)) } td { "" }
                        }
                    }
                }
            }
        }
    }
}

fn sizes(run: &Run<'_>) -> Markup {
    let most = run.groups.sizes.values().map(|(groups, _)| *groups).max().unwrap_or(0);
    // The bar of a single group must also be visible.
    let length = |groups: u64| 100.0 * ((groups + 1) as f64).ln() / ((most + 1) as f64).ln();
    let groups = &run.groups.groups;
    html! {
        section {
            h2 { "Sizes of groups" }
            @if run.groups.sizes.is_empty() { p.note { "There are no groups." } } @else {
                table.chart {
                    caption { "Groups by their number of pages; the bars are on a logarithmic scale." }
                    thead { tr { th scope="col" { "pages" } th.bars aria-hidden="true" { "" } th scope="col" { "groups" } th scope="col" { "pages in all" } } }
                    tbody {
                        @for (power, (groups, pages)) in &run.groups.sizes {
                            tr {
                                th scope="row" { (interval(1 << power, Some((2 << power) - 1))) }
                                (bar(length(*groups)))
                                td { (count(*groups)) } td { (count(*pages)) }
                            }
                        }
                    }
                }
                p.note {
                    (count(groups.exact)) " of pages with " (run.signer.policy().equality()) ", " (count(groups.near)) " with near-duplicates, "
                    (count(groups.redirects)) " of one content and redirects to it"
                    @if groups.quarantined > 0 { "; " (count(groups.quarantined)) " quarantined for the number of their contents: all their pages are kept" }
                    "."
                }
            }
        }
    }
}

fn similarities(all: &Similarities) -> Markup {
    let rows = all.rows();
    let most = rows.iter().map(|row| row.pages).max().unwrap_or(0);
    html! {
        section {
            h2 { "Similarities" }
            @if all.of_winners + all.of_others == 0 { p.note { "There are no duplicates with content." } } @else {
                table.chart {
                    caption { "Duplicates by their similarity to the kept page that they are duplicates of; the bars are on a linear scale." }
                    thead { tr { th scope="col" { "similarity" } th.bars aria-hidden="true" { "" } th scope="col" { "duplicates" } } }
                    tbody {
                        @for Row { from, to, pages } in &rows {
                            tr {
                                th scope="row" { (hundredths(*from)) " to " (hundredths(*to)) }
                                (bar(100.0 * share(*pages, most)))
                                td { (count(*pages)) }
                            }
                        }
                        tr { th scope="row" { "1" } td.bars { "not drawn" } td { (count(all.most())) } }
                    }
                }
                p.note {
                    (count(all.of_winners)) " are duplicates of the winner of their group, " (count(all.of_others)) " of another kept page"
                    @if all.redirects > 0 { "; " (count(all.redirects)) " more are redirects, which have no similarity" }
                    "."
                }
            }
        }
    }
}

fn hundredths(number: usize) -> String {
    format!("{}.{:02}", number / 100, number % 100)
}

/// Renders a cell with a bar of this length in percent.
fn bar(percent: f64) -> Markup {
    html! {
        td.bars aria-hidden="true" {
            svg viewBox="0 0 100 1" preserveAspectRatio="none" { rect width=(format!("{percent:.1}")) height="1" {} }
        }
    }
}

fn mirrors(mirrors: &Mirrors) -> Markup {
    let Mirrors { pairs, others, on_one_host, was_cut } = mirrors;
    let side = |Side { host, pages, duplicates }: &Side| {
        html! {
            td.host { (Escaped(host)) }
            td { (count(*duplicates)) } td { (percent(share(*duplicates, *pages))) }
        }
    };
    html! {
        section {
            h2 { "Hosts that mirror each other" }
            @if pairs.is_empty() { p.note { "There are none." } } @else {
                div.wide { table {
                    caption { "Pages of a host that are duplicates of kept pages of the other, and their share of its live pages." }
                    thead { tr {
                        th.host scope="col" { "host" } th scope="col" { "pages" } th scope="col" { "share" }
                        th.host scope="col" { "other host" } th scope="col" { "pages" } th scope="col" { "share" }
                    } }
                    tbody { @for Pair { sides: [more, less] } in pairs { tr { (side(more)) (side(less)) } } }
                } }
            }
            p.note {
                (plural(*on_one_host, "duplicate")) " of a page on the same host"
                @if *others > 0 { ", " (count(*others)) " of other pairs of hosts" }
                ". Pages without a host do not count."
                @if *was_cut { " There were so many pairs of hosts that rare ones were forgotten on the way." }
            }
        }
    }
}
