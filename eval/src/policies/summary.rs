//! One table over all policies.

use super::{OfPolicy, Scores, TruthSet};
use crate::report::{Table, percent};
use crate::score::Score;

/// Precision, recall and F1 for each kind of truth; pairs that are wrongly called the same, by F and after groups are closed; what is
/// removed, and what a page costs.
pub(super) fn table(truths: &[TruthSet], policies: &[OfPolicy], pages: usize) -> Table {
    let title = format!(
        "summary over {pages} pages: precision / recall / F1 in percent, with the numbers of pairs (same + other) in the head"
    );
    let kinds =
        truths.iter().map(|truth| format!("{} ({} + {})", truth.kind.name(), truth.same, truth.other));
    let costs = ["wrong pairs: F, joined", "removed, %", "bytes", "us to sign", "us to find"];
    let head = ["policy".to_owned()].into_iter().chain(kinds).chain(costs.map(str::to_owned));
    let mut table = Table::new(&title, head);
    for OfPolicy { policy, pairs, cost, removed } in policies {
        let mut row = vec![policy.to_string()];
        row.extend(pairs.iter().map(|Scores { f, .. }| shares(f)));
        let wrong = |of: fn(&Scores) -> Option<u64>| pairs.iter().filter_map(of).sum::<u64>();
        let by_f = wrong(|scores| scores.grouped.map(|_| scores.f.wrong));
        let joined = wrong(|scores| scores.grouped.map(|grouped| grouped.wrong));
        row.extend([format!("{by_f}, {joined}"), percent(*removed)]);
        row.extend(cost.cells());
        table.row(row);
    }
    table
}

fn shares(score: &Score) -> String {
    let cell =
        |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{:.0}", 100.0 * share));
    [score.precision(), score.recall(), score.f1()].map(cell).join(" / ")
}
