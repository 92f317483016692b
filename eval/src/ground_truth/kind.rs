//! The kinds of truth. Figures of one are never mixed with those of another.

use serde::Serialize;

use crate::ground_truth::labelled::Pair;

/// What says whether two pages are the same, and where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Plain texts that people graded.
    Graded,
    /// Pages that a language model judged by a written rule.
    JudgedOneHost,
    JudgedTwoHosts,
    /// Pages whose truth is known by construction.
    TransplantsOneHost,
    TransplantsTwoHosts,
    /// The Jaccard coefficient of whole pages, exactly: the last, for it is circular for the default.
    ExactJaccard,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] = [
        Self::Graded,
        Self::JudgedOneHost,
        Self::JudgedTwoHosts,
        Self::TransplantsOneHost,
        Self::TransplantsTwoHosts,
        Self::ExactJaccard,
    ];

    /// Those of files, which are not made.
    pub(crate) const LABELLED: [Self; 3] = [Self::Graded, Self::JudgedOneHost, Self::JudgedTwoHosts];

    /// The kind of a judged pair.
    pub(crate) fn of_judged(pair: &Pair) -> Self {
        if pair.is_on_one_host() { Self::JudgedOneHost } else { Self::JudgedTwoHosts }
    }

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
