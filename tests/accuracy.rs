//! Measures the correctness of the duplicate groups: compares `doppel dedup` on real crawls with the oracle.
//!
//! `cargo test --release --test accuracy -- --ignored --nocapture report` prints the tables of
//! docs/evaluation/correctness.md.

mod oracle;

mod accuracy {
    pub(crate) mod compare;
    pub(crate) mod corpus;
    pub(crate) mod dedup;

    mod compare_check;
    mod figures;
    mod invariance;
    mod milestones;
    mod oracle_check;
    mod plan;
    mod rebalancer;
    mod redirects;
    mod reference;
    mod templates;
    mod text;
}
