//! Options of every command that opens or serves a collection: how pages are compared, and how both tiers run.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use doppel_model::Tau;
use doppel_model::pairwise::{Policy, PolicyError};
use doppel_partitioning::DIMENSIONS_MAX;
use doppel_terminal::exit::Failure;
use doppel_terminal::span::Span;
use doppel_tier1::Retention;

/// How pages are compared.
#[derive(Debug, Clone, Default, Args)]
pub struct PolicyArgs {
    /// How pages are compared: jaccard (by shingles of 5 words, or of 3 to 13 as in jaccard:words=3), supershingle, projection, combined, by-site, simhash, imatch,
    /// multi-simhash, overlap, content or copies (docs/reference/policies.md), with parameters as in by-site:site=host,across=376. Words are compared without
    /// punctuation and case; jaccard:tokens=code compares code, where both count (docs/reference/text.md). Fixed when a collection is
    /// created. With a threshold below 0.46 time grows with the square of the number of pages [default: jaccard:tau=0.8].
    #[arg(long, value_name = "NAME[:KEY=VALUE,...]")]
    pub policy: Option<NamedPolicy>,
    /// Two pages are near-duplicates when the Jaccard coefficient of their sets of shingles is above
    /// this, 0.3 to 0.9999: short for --policy jaccard:tau=TAU. Fixed when a collection is created. Below 0.46 time grows with the
    /// square of the number of pages.
    #[arg(long)]
    pub tau: Option<Tau>,
    /// The tables of words that imatch and multi-simhash read, as `doppel policy-tables` writes them. Fixed when a collection is
    /// created: the data directory of `doppel serve` has a copy from then on, and in a cluster each coordinator needs the file.
    #[arg(long, value_name = "FILE")]
    pub policy_tables: Option<PathBuf>,
}

impl PolicyArgs {
    /// The policy that is asked for; none where none is.
    ///
    /// # Errors
    /// When tau is asked of a policy that has none.
    pub fn policy(&self) -> Result<Option<Policy>, Failure> {
        let Some(tau) = self.tau else { return Ok(self.policy.map(|named| named.policy)) };
        let wrong = match self.policy {
            Some(NamedPolicy { policy: policy @ Policy::Content { .. }, .. }) => {
                format!("--tau is one of jaccard: say --policy {}:tau={tau}", policy.name())
            }
            Some(NamedPolicy { policy, .. }) if !matches!(policy, Policy::Jaccard { .. }) => {
                format!("the policy {} has no tau: leave --tau away", policy.name())
            }
            Some(NamedPolicy { policy, with_tau: true }) if policy.metric() != Some(tau) => {
                format!("--policy {policy} and --tau {tau} are two values for tau: leave one away")
            }
            Some(NamedPolicy { policy: Policy::Jaccard { words, tokens, .. }, .. }) => {
                return Ok(Some(Policy::Jaccard { tau, words, tokens }));
            }
            _ => return Ok(Some(Policy::jaccard(tau))),
        };
        Err(Failure::Usage(wrong))
    }

    /// Whether it is asked for by `--tau` alone.
    pub fn is_by_tau(&self) -> bool {
        self.tau.is_some() && self.policy.is_none()
    }
}

/// A policy, and whether its text says tau.
#[derive(Debug, Clone, Copy)]
pub struct NamedPolicy {
    policy: Policy,
    with_tau: bool,
}

impl FromStr for NamedPolicy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        Ok(Self { policy: text.parse()?, with_tau: text.contains("tau=") })
    }
}

/// The engine in this process.
#[derive(Debug, Clone, Args)]
pub struct EngineArgs {
    /// How pages are compared.
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Tier-1 shards, 1 to 256. Fixed when a data directory is created [default there: 16, or as many as there are
    /// ranges if that is more].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub shards: Option<u16>,
    /// Ranges that the shards are cut into, 1 to 64 and no more than shards: each has a database and a writer of its own. The
    /// groups do not depend on it. Fixed when a data directory is created [default there: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub ranges: Option<u16>,
    /// Tier-2 nodes, 1 to 128: each has tables and files of its own, and partitions move between them as the collection
    /// grows. The groups do not depend on it. Another number may be given at every start (docs/guides/tune-and-size.md).
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=128))]
    pub index_nodes: u32,
    /// Detect the language of a page whose record gives none, which takes as much time as everything else about a page
    /// of text. Only `doppel explain` shows it.
    #[arg(long)]
    pub detect_language: bool,
    /// Everything that is the same in a cluster.
    #[command(flatten)]
    pub tuning: TuningArgs,
}

/// What a process of tier 1 may be told, alone or in a cluster.
#[derive(Debug, Clone, Args)]
pub struct TuningArgs {
    /// A file of rules by which the winner of a group is elected, and of markets by name (docs/reference/winner-rules.md;
    /// deploy/winners.toml is an example). The rules are fixed when a data directory is created; the markets
    /// are those of the file.
    #[arg(long, value_name = "FILE")]
    pub winners: Option<PathBuf>,
    /// Tier-2 partitions, 1 to 4096; at least one for each node. The groups do not depend on it [default: 1 on one
    /// node; on several 16, or one for each if that is more].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub partitions: Option<u32>,
    /// The least time between two snapshots of the index, and of the table that answers questions about a status; the next
    /// start goes on from them. They are written when 1/32 of the contents has changed or an hour has passed, and at the end;
    /// with 0s as often as so much has changed.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value_t = Span(doppel_tier2::SNAPSHOT_PAUSE))]
    pub snapshot_every: Span,
    /// Dimensions of the length vector that pages are placed by, 1 to 8. The groups do not depend on
    /// it.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = dimensions)]
    pub dimensions: usize,
    /// Pages that may wait for their decision before new ones are refused with 429, at least 1,000. One client may have half of them.
    #[arg(long, value_name = "PAGES", default_value_t = 100_000, value_parser = at_least::<1_000>)]
    pub pending_max: u64,
    /// Distinct contents past which a group is quarantined, at least 2: it is reported, and its members are not
    /// advised as duplicates, until `doppel repair` has recomputed it. What then stays in it is accepted
    /// until its contents have doubled. Copies of a content count once.
    #[arg(long, value_name = "CONTENTS", default_value_t = 100_000, value_parser = at_least::<2>)]
    pub group_members_max: u64,
    /// Share of a group's members, in percent, that differ from the winner and make the group be recomputed
    /// by itself (again whenever their number has doubled); 0 for never.
    #[arg(long, value_name = "PERCENT", default_value_t = 25, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub low_cohesion_percent: u8,
    /// How long a dead page is kept on record. During that time an earlier version of it is recognised as stale,
    /// and redirects to it have the reason dead_target; then unknown_target.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value_t = Span(Retention::DEFAULT.dead))]
    pub keep_dead: Span,
    /// How long the change feed says that a purged page is unknown. A consumer that reads the feed less often must begin
    /// anew.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value_t = Span(Retention::DEFAULT.purged))]
    pub keep_purged: Span,
    /// How long the id of a merged group still leads to its members, once nothing inside needs it.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value_t = Span(Retention::DEFAULT.merged))]
    pub keep_merged: Span,
    /// How long the trail of applied repairs is kept: when, by whom, and what came of them; 0d for not at all.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value_t = Span(Retention::DEFAULT.audit))]
    pub keep_audit: Span,
}

/// 1 to 8.
pub fn dimensions(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|n| (1..=DIMENSIONS_MAX).contains(n))
        .ok_or_else(|| format!("1 to {DIMENSIONS_MAX} dimensions are possible"))
}

/// A number from `LEAST`.
fn at_least<const LEAST: u64>(text: &str) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|n| *n >= LEAST)
        .ok_or_else(|| format!("a number of at least {LEAST} is expected"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tau_leaves_the_other_parameters_of_jaccard_as_they_are() {
        for (policy, is) in [
            (None, "jaccard:tau=0.3"),
            (Some("jaccard"), "jaccard:tau=0.3"),
            (Some("jaccard:words=3"), "jaccard:tau=0.3,words=3"),
            (Some("jaccard:words=13,tau=0.3"), "jaccard:tau=0.3,words=13"),
            (Some("jaccard:tokens=code"), "jaccard:tau=0.3,tokens=code"),
        ] {
            let policy = policy.map(|text| text.parse().unwrap());
            let args = PolicyArgs { policy, tau: Some("0.3".parse().unwrap()), policy_tables: None };
            assert_eq!(args.policy().unwrap().unwrap().to_string(), is);
        }
        let policy = Some("jaccard:tau=0.8,words=3".parse().unwrap());
        let args = PolicyArgs { policy, tau: Some("0.3".parse().unwrap()), policy_tables: None };
        assert!(args.policy().is_err());
    }
}
