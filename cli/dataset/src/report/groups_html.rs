//! Shows the largest groups: their pages, and a kept page beside a removed one.

use doppel_terminal::output::{bytes, count, known, plural};
use doppel_text::difference::{self, Excerpt};
use maud::{Markup, html};

use super::Run;
use super::escaped::Escaped;
use super::examples::{Duplicate, Example};
use super::figures::Figures;
use super::texts::Texts;

pub(super) fn section(run: &Run<'_>, figures: &Figures, texts: &Texts) -> Markup {
    let examples = &figures.examples;
    let all: u64 = run.groups.sizes.values().map(|(groups, _)| groups).sum();
    html! {
        section {
            h2 { "Largest groups" }
            @if examples.is_empty() { p.note { "There are no groups." } }
            @else if (examples.len() as u64) < all { p.note { "The largest " (examples.len()) " of " (count(all)) "." } }
            @if !texts.were_read { p.note { "The inputs could not be read again, so texts are missing." } }
            @for example in examples { (group(example, texts, run)) }
        }
    }
}

fn group(example: &Example, texts: &Texts, run: &Run<'_>) -> Markup {
    let Example { kept, removed, redirects, .. } = example;
    let kind = match example {
        // A single content with redirects to it equals no other content.
        Example { is_exact: true, kept, removed, redirects, .. } if kept + removed.pages <= redirects + 1 => {
            "one content and redirects"
        }
        Example { is_exact: true, .. } => run.signer.policy().equality(),
        _ => "near-duplicates",
    };
    html! {
        article {
            h3 {
                "Group " (example.group) ": " (plural(kept + removed.pages, "page"))
                small { (kind) }
            }
            dl.facts {
                dt { "winner" } dd { @if let Some(winner) = &example.winner { (Escaped(winner.as_str())) } }
                @if *kept > 1 {
                    dt { "kept, too" }
                    dd {
                        @for url in &example.secondaries { div { (Escaped(url.as_str())) } }
                        (more(kept - 1, example.secondaries.len()))
                    }
                }
                dt { "removed" }
                dd {
                    (count(removed.pages)) @if let Some(weight) = removed.bytes { " (" (bytes(weight)) ")" }
                    @if *redirects > 0 { ", of which " (plural(*redirects, "redirect")) }
                    @for duplicate in &example.duplicates { (removed_page(duplicate, run)) }
                    (more(removed.pages, example.duplicates.len()))
                }
            }
            @if let Some(duplicate) = &example.shown { (side_by_side(duplicate, texts)) }
            @else { p.note { "No page with content can be removed." } }
        }
    }
}

fn more(all: u64, named: usize) -> Markup {
    let left = all.saturating_sub(named as u64);
    html! { @if left > 0 { div { "and " (count(left)) " more" } } }
}

/// Shows the name of a record in its file, if each record is judged on its own.
fn called(record: Option<u64>, run: &Run<'_>) -> Markup {
    let label = record.zip(run.record_names).and_then(|(record, names)| names.label(record));
    html! { @if let Some(label) = label { " (" (Escaped(&label.text())) ")" } }
}

fn removed_page(duplicate: &Duplicate, run: &Run<'_>) -> Markup {
    let Duplicate { url, of, similarity, content, .. } = duplicate;
    html! {
        div {
            (Escaped(url.as_str())) " "
            small {
                (known(*similarity, similar))
                @if content.is_none() { " redirect" }
                (called(duplicate.record, run))
                @if !duplicate.is_of_winner { " of " (Escaped(of.as_str())) (called(duplicate.kept_record, run)) }
            }
        }
    }
}

fn similar(similarity: f64) -> String {
    // A similarity below 1 must not be rounded up to 1.
    if similarity >= 1.0 {
        "1".to_owned()
    } else {
        format!("{:.3}", (similarity * 1_000.0).floor() / 1_000.0)
    }
}

fn side_by_side(duplicate: &Duplicate, texts: &Texts) -> Markup {
    let Duplicate { url, of, content, kept_content, .. } = duplicate;
    let (Some(kept), Some(removed)) = (texts.get(of, *kept_content), texts.get(url, *content)) else {
        return html! {
            p.note { "The text of " (Escaped(duplicate.url.as_str())) " or of its kept page is not in the inputs of this run." }
        };
    };
    let ([kept_piece, removed_piece], differ) = difference::compare(kept, removed);
    let role = if duplicate.is_of_winner { "winner" } else { "kept" };
    html! {
        div.texts {
            (text(role, duplicate.of.as_str(), &kept_piece))
            (text("removed", duplicate.url.as_str(), &removed_piece))
        }
        @if !differ { p.note { "The words that were compared here are the same." } }
    }
}

fn text(role: &str, url: &str, piece: &Excerpt) -> Markup {
    html! {
        figure {
            figcaption { strong { (role) } " " (Escaped(url)) }
            p dir="auto" {
                @if piece.is_cut_before { "… " }
                @for run in &piece.runs {
                    @if run.is_only_here { mark { (Escaped(run.text.trim_end())) } @if run.text.ends_with(' ') { " " } }
                    @else { (Escaped(&run.text)) }
                }
                @if piece.is_cut_after { "…" }
                @if piece.runs.is_empty() { "(no words)" }
            }
        }
    }
}
