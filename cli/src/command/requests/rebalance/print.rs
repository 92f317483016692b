//! Prints a change of the plan: one sentence, and a table of the moves.

use std::io::{self, Write};

use doppel_contract::{PartitionMove, RebalanceOutcome, RebalancePlan, RebalanceRequest};
use doppel_terminal::output::{count, headed, percent, plural};

use super::wait::CompletedChange;

/// Describes a request in words.
fn describe(request: RebalanceRequest) -> String {
    match request {
        RebalanceRequest::Balance => "making the nodes even".to_owned(),
        RebalanceRequest::Learn => "learning the map anew".to_owned(),
        RebalanceRequest::Drain { node } => format!("draining node {node}"),
        RebalanceRequest::Join { node } => format!("joining node {node}"),
        RebalanceRequest::Move { partition, node } => format!("moving partition {partition} to node {node}"),
    }
}

/// Prints what the server does, or would do in a dry run.
pub(super) fn change(
    request: RebalanceRequest,
    change: &RebalancePlan,
    dry_run: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    if let Some(why) = &change.nothing_to_do {
        return writeln!(out, "nothing to do: {why} (imbalance {:.2})", change.imbalance_before);
    }
    let what = describe(request);
    let dry = if dry_run { "a dry run of " } else { "" };
    if change.moves.is_empty() && request != RebalanceRequest::Learn {
        let idle = match request {
            RebalanceRequest::Drain { .. } => "; it has none, and gets none any more",
            RebalanceRequest::Join { .. } => " now; it may have partitions again",
            _ => "",
        };
        return writeln!(out, "{dry}{what}: no partition to move{idle}");
    }
    let (moved, all) = (count(change.contents_moved), plural(change.contents, "content"));
    let share = 100.0 * change.contents_moved as f64 / change.contents.max(1) as f64;
    let cuts = splits_and_joins(change);
    match request {
        // A new partition has one row for each node from which it receives contents, so rows are no number of
        // partitions.
        RebalanceRequest::Learn => {
            writeln!(out, "{dry}{what}: {all} to copy, {moved} of them ({share:.1} %) to another node")?;
        }
        _ => {
            let partitions = plural(change.moves.len() as u64, "partition");
            writeln!(out, "{dry}{what}: {partitions} to move, with {moved} of {all} ({share:.1} %){cuts}")?;
        }
    }
    let row = |one: &PartitionMove| {
        vec![one.partition.to_string(), one.from.to_string(), one.to.to_string(), count(one.contents)]
    };
    if !change.moves.is_empty() {
        headed(out, &["partition", "from node", "to node", "contents"], change.moves.iter().map(row))?;
    }
    if !cuts.is_empty() {
        writeln!(
            out,
            "ids are those of plan {}; more contents are copied than move: what is split or joined is copied\nwhere it stays, too",
            change.plan_version + 1
        )?;
    }
    writeln!(out, "imbalance {:.2} before, {:.2} after", change.imbalance_before, change.imbalance_after)?;
    match (change.fan_out_saved_before, change.fan_out_saved_after) {
        (Some(before), Some(after)) => {
            writeln!(out, "fan-out saved {} before, {} after", percent(before), percent(after))
        }
        _ => Ok(()),
    }
}

/// Returns `; 1 split and 2 joins of partitions`, without the counts that are zero, or an empty text if both
/// are zero.
fn splits_and_joins(change: &RebalancePlan) -> String {
    let counts = [(change.splits, "split"), (change.joins, "join")];
    let some = counts.into_iter().filter(|(number, _)| *number > 0);
    let parts: Vec<String> = some.map(|(number, noun)| plural(number.into(), noun)).collect();
    if parts.is_empty() { String::new() } else { format!("; {} of partitions", parts.join(" and ")) }
}

/// Prints how a change ended.
pub(super) fn done(done: &CompletedChange, out: &mut dyn Write) -> io::Result<()> {
    let CompletedChange { plan_version, seconds, copied, imbalance } = done;
    let copied = copied.map_or_else(String::new, |copied| format!(", {} copied", plural(copied, "content")));
    writeln!(out, "done in {seconds:.2} s: plan {plan_version}{copied}, imbalance {imbalance:.2}")
}

/// Prints that a request was cancelled.
pub(super) fn cancelled(outcome: &RebalanceOutcome, out: &mut dyn Write) -> io::Result<()> {
    let RebalanceOutcome { request, plan_version, copied, .. } = outcome;
    let what = describe(*request);
    let copied = plural(*copied, "copied content");
    writeln!(out, "cancelled: {what}; {copied} given up, and plan {plan_version} stays")
}

#[cfg(test)]
mod tests {
    use doppel_model::{NodeId, PartitionId};

    use super::*;

    fn plan() -> RebalancePlan {
        RebalancePlan {
            plan_version: 4,
            splits: 1,
            joins: 2,
            moves: vec![PartitionMove {
                partition: PartitionId(9),
                from: NodeId(0),
                to: NodeId(3),
                contents: 1_250,
            }],
            contents_moved: 1_250,
            contents: 10_000,
            imbalance_before: 1.4,
            imbalance_after: 1.08,
            ..RebalancePlan::default()
        }
    }

    fn change_text(request: RebalanceRequest, change: &RebalancePlan, dry_run: bool) -> String {
        let mut out = Vec::new();
        super::change(request, change, dry_run, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_change_is_described_with_its_moves() {
        let expected = "a dry run of making the nodes even: 1 partition to move, with 1,250 of 10,000 contents (12.5 %); \
            1 split and 2 joins of partitions\n\
            partition  from node  to node  contents\n\
            9          0          3        1,250\n\
            ids are those of plan 5; more contents are copied than move: what is split or joined is copied\n\
            where it stays, too\n\
            imbalance 1.40 before, 1.08 after\n";
        assert_eq!(change_text(RebalanceRequest::Balance, &plan(), true), expected);
        let moved = RebalancePlan { splits: 0, joins: 0, contents: 1, contents_moved: 1, ..plan() };
        let expected = "moving partition 9 to node 3: 1 partition to move, with 1 of 1 content (100.0 %)\n";
        let text =
            change_text(RebalanceRequest::Move { partition: PartitionId(9), node: NodeId(3) }, &moved, false);
        assert!(text.starts_with(expected) && !text.contains("plan 5"), "{text}");
        let one_join = RebalancePlan { splits: 0, joins: 1, ..plan() };
        assert!(
            change_text(RebalanceRequest::Drain { node: NodeId(0) }, &one_join, false)
                .contains("; 1 join of partitions\n")
        );
        let expected = "learning the map anew: 1 content to copy, 1 of them (100.0 %) to another node\n";
        assert!(change_text(RebalanceRequest::Learn, &moved, false).starts_with(expected));
    }

    #[test]
    fn nothing_to_do_has_a_reason() {
        let nothing = RebalancePlan {
            nothing_to_do: Some("all is well".to_owned()),
            imbalance_before: 1.02,
            ..RebalancePlan::default()
        };
        assert_eq!(
            change_text(RebalanceRequest::Balance, &nothing, true),
            "nothing to do: all is well (imbalance 1.02)\n"
        );
        let marked = RebalancePlan { started: true, ..RebalancePlan::default() };
        let drained = change_text(RebalanceRequest::Drain { node: NodeId(3) }, &marked, false);
        assert_eq!(drained, "draining node 3: no partition to move; it has none, and gets none any more\n");
    }

    #[test]
    fn a_cancelled_request_is_reported() {
        let outcome = RebalanceOutcome {
            request: RebalanceRequest::Drain { node: NodeId(3) },
            failed: Some("it was cancelled".to_owned()),
            cancelled: true,
            plan_version: 4,
            copied: 1,
            seconds: 0.5,
        };
        let mut out = Vec::new();
        cancelled(&outcome, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "cancelled: draining node 3; 1 copied content given up, and plan 4 stays\n");
    }
}
