//! Kinds of truth. Figures of one kind are never mixed with figures of another kind.
//!
//! A kind says who decides whether two pages are the same, and whether the pages are on one host.

use serde::Serialize;

use crate::ground_truth::labelled::Pair;

/// Kind of truth: who decides that two pages are the same, and how many hosts the pages are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TruthKind {
    /// People graded plain texts.
    Graded,
    /// A language model judged two pages of one host by a written rule.
    JudgedOneHost,
    /// A language model judged pages of two hosts by a written rule.
    JudgedTwoHosts,
    /// The truth follows from the construction of two pages of one host.
    TransplantsOneHost,
    /// The truth follows from the construction of pages of two hosts.
    TransplantsTwoHosts,
    /// Exact Jaccard coefficients of whole pages give the truth. This kind is last, because it is circular for
    /// the default policy.
    ExactJaccard,
}

impl TruthKind {
    pub(crate) const ALL: [Self; 6] = [
        Self::Graded,
        Self::JudgedOneHost,
        Self::JudgedTwoHosts,
        Self::TransplantsOneHost,
        Self::TransplantsTwoHosts,
        Self::ExactJaccard,
    ];

    /// Kinds whose pairs come from files of labels.
    pub(crate) const LABELLED: [Self; 3] = [Self::Graded, Self::JudgedOneHost, Self::JudgedTwoHosts];

    /// Returns the kind of a pair that a language model judged.
    pub(crate) fn of_judged(pair: &Pair) -> Self {
        if pair.is_on_one_host() { Self::JudgedOneHost } else { Self::JudgedTwoHosts }
    }

    /// Whether the pairs are made from pages of a crawl.
    pub(crate) fn is_made(self) -> bool {
        matches!(self, Self::TransplantsOneHost | Self::TransplantsTwoHosts)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Graded => "people's grades",
            Self::JudgedOneHost => "judged pairs (language model), one host",
            Self::JudgedTwoHosts => "judged pairs (language model), two hosts",
            Self::TransplantsOneHost => "transplants, one host",
            Self::TransplantsTwoHosts => "transplants, two hosts",
            Self::ExactJaccard => "exact Jaccard above 0.8 of whole pages (circular for jaccard)",
        }
    }
}
