//! Summary: one table over all policies.

use doppel_terminal::output::known;

use super::{PolicyScores, Scores, TruthSet};
use crate::ground_truth::score::Score;
use crate::report::{Table, percent};

/// Makes the table with one row for each policy.
///
/// For each kind of truth a row has precision, recall and F1, the wrong pairs of F, and the wrong pairs of
/// groups. Then come the share of pages in groups, and the costs of a page.
pub(super) fn table(truths: &[TruthSet], policies: &[PolicyScores], pages: usize) -> Table {
    let title = format!(
        "summary over {pages} pages: precision / recall / F1 in percent; in brackets the pairs that F wrongly calls the same, those \
         that groups wrongly join, and the closure error, the share that these have of all that is joined, by weight"
    );
    let kinds = truths.iter().map(|truth| format!("{}: {} + {}", truth.kind.name(), truth.same, truth.other));
    let costs = ["beside another in a group, %", "bytes", "us to sign", "us to find"];
    let head = ["policy".to_owned()].into_iter().chain(kinds).chain(costs.map(str::to_owned));
    let mut table = Table::new(&title, head);
    for PolicyScores { policy, pairs, cost, beside } in policies {
        let mut row = vec![policy.to_string()];
        row.extend(pairs.iter().map(shares));
        row.push(percent(*beside));
        row.extend(cost.cells());
        table.row(row);
    }
    table
}

fn shares(Scores { f, grouped }: &Scores) -> String {
    let cell = |share: Option<f64>| known(share, |share| format!("{:.0}", 100.0 * share));
    let shares = [f.precision(), f.recall(), f.f1()].map(cell).join(" / ");
    format!("{shares} ({}, {}: {})", f.wrong, grouped.wrong, closure_error(grouped))
}

/// Share of the joined pairs that are not the same, in percent.
pub(super) fn closure_error(grouped: &Score) -> String {
    grouped.precision().map_or_else(|| "-".to_owned(), |right| percent(1.0 - right))
}
