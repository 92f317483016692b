//! Options of every command that opens or serves a collection: how pages are compared, and how both tiers
//! run.

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
    /// How pages are compared: jaccard, supershingle, projection, combined, by-site, simhash, imatch,
    /// multi-simhash, overlap, content or copies (docs/reference/policies.md). Parameters follow the name, as in
    /// by-site:site=host,across=376. jaccard takes shingles of 5 words, or of 3 to 13 as in jaccard:words=3.
    /// Words are compared without punctuation and case. For code, jaccard:tokens=code takes punctuation and case into
    /// account (docs/reference/text.md). Fixed when a collection is created. With a threshold below 0.46 time
    /// grows with the square of the number of pages [default: jaccard:tau=0.8].
    #[arg(long, value_name = "NAME[:KEY=VALUE,...]")]
    pub policy: Option<NamedPolicy>,
    /// Two pages are near-duplicates when the Jaccard coefficient of their sets of shingles is above this,
    /// 0.3 to 0.9999: short for --policy jaccard:tau=TAU. Fixed when a collection is created. Below 0.46 time
    /// grows with the square of the number of pages.
    #[arg(long)]
    pub tau: Option<Tau>,
    /// The tables of words that imatch and multi-simhash read, as `doppel policy-tables` writes them. Fixed
    /// when a collection is created: the data directory of `doppel serve` has a copy from then on, and in a
    /// cluster each coordinator needs the file.
    #[arg(long, value_name = "FILE")]
    pub policy_tables: Option<PathBuf>,
}

impl PolicyArgs {
    /// The policy that the options name, or `None` if they name none.
    ///
    /// # Errors
    /// [`Failure::Usage`] if `--tau` contradicts `--policy`.
    pub fn policy(&self) -> Result<Option<Policy>, Failure> {
        let Some(tau) = self.tau else { return Ok(self.policy.map(|named| named.policy)) };
        let wrong = match self.policy {
            Some(NamedPolicy { policy: policy @ Policy::Content { .. }, .. }) => {
                format!("--tau is for jaccard only: give --policy {}:tau={tau} instead", policy.name())
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

    /// Whether `--tau` alone names the policy.
    pub fn is_by_tau(&self) -> bool {
        self.tau.is_some() && self.policy.is_none()
    }
}

/// The value of `--policy`, and whether its text sets tau.
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

/// Options of a command that runs both tiers in its own process.
#[derive(Debug, Clone, Args)]
pub struct EngineArgs {
    /// How pages are compared.
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Number of tier-1 shards, 1 to 256. Fixed when a data directory is created [default for a new
    /// directory: 16, or the number of ranges if that is more].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub shards: Option<u16>,
    /// Number of ranges into which the shards are divided, 1 to 64 and no more than shards. Each range has
    /// its own database and writer. The groups do not depend on this number. Fixed when a data directory is
    /// created [default for a new directory: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub ranges: Option<u16>,
    /// Number of tier-2 nodes, 1 to 128. Each has its own tables and files, and partitions move between the
    /// nodes as the collection grows. The groups do not depend on this number, and it may change at every
    /// start (docs/guides/tune-and-size.md).
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=128))]
    pub index_nodes: u32,
    /// Detect the language of pages whose records give none. This takes as much time as all other work on a
    /// page of text. Only `doppel explain` shows the language.
    #[arg(long)]
    pub detect_language: bool,
    /// Options that `doppel tier1` also has.
    #[command(flatten)]
    pub tuning: TuningArgs,
}

/// Options of every process that runs tier 1, alone or in a cluster.
#[derive(Debug, Clone, Args)]
pub struct TuningArgs {
    /// A file with the rules that elect the winner of a group, and with named markets
    /// (docs/reference/winner-rules.md; deploy/winners.toml is an example). The rules are fixed when a data
    /// directory is created. The markets are read at every start.
    #[arg(long, value_name = "FILE")]
    pub winners: Option<PathBuf>,
    /// Number of tier-2 partitions, 1 to 4096, at least one for each node. The groups do not depend on this
    /// number [default: 1 on one node; on several nodes 16, or one for each node if that is more].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub partitions: Option<u32>,
    /// Shortest time between two snapshots of the index, and of the status table. The next start continues
    /// from the snapshots. They are written when 1/32 of the contents has changed, when an hour has passed,
    /// and at the end. With 0s, they are written as soon as 1/32 has changed.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value_t = Span(doppel_tier2::SNAPSHOT_PAUSE))]
    pub snapshot_every: Span,
    /// Number of dimensions of the length vector by which contents are assigned to partitions, 1 to 8. The
    /// groups do not depend on this number.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = dimensions)]
    pub dimensions: usize,
    /// Number of pages that may wait for a decision before the server refuses new ones with 429, at least
    /// 1,000. One client may use half of it.
    #[arg(long, value_name = "PAGES", default_value_t = 100_000, value_parser = at_least::<1_000>)]
    pub pending_max: u64,
    /// Number of distinct contents above which a group is quarantined, at least 2. A quarantined group is
    /// reported, and none of its members counts as a duplicate. The quarantine ends when `doppel repair` has
    /// recomputed the group, which is then accepted until its contents have doubled, or when a recomputation
    /// finds few enough contents. Copies of a content count once.
    #[arg(long, value_name = "CONTENTS", default_value_t = 100_000, value_parser = at_least::<2>)]
    pub group_members_max: u64,
    /// Recompute a group without a request when at least this share of its members, in percent, differs from
    /// the winner, and again whenever their number has doubled. 0 turns it off.
    #[arg(long, value_name = "PERCENT", default_value_t = 25, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub low_cohesion_percent: u8,
    /// How long a dead page is kept on record. During that time, an earlier version of it is recognised as
    /// stale, and redirects to it have the reason dead_target; afterwards unknown_target.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value_t = Span(Retention::DEFAULT.dead))]
    pub keep_dead: Span,
    /// How long the change feed says that a purged page is unknown. A consumer that reads the feed less often
    /// must begin anew.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value_t = Span(Retention::DEFAULT.purged))]
    pub keep_purged: Span,
    /// How long the id of a merged group still leads to its members, after Doppel itself no longer needs it.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value_t = Span(Retention::DEFAULT.merged))]
    pub keep_merged: Span,
    /// How long the trail of applied repairs is kept: when, by whom, and with which result. 0d keeps no
    /// trail.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value_t = Span(Retention::DEFAULT.audit))]
    pub keep_audit: Span,
}

/// Reads a number of dimensions, 1 to 8.
pub fn dimensions(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|n| (1..=DIMENSIONS_MAX).contains(n))
        .ok_or_else(|| format!("1 to {DIMENSIONS_MAX} dimensions are possible"))
}

/// Reads a number that is at least `LEAST`.
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
