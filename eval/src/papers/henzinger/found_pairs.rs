//! Correctness of the pairs that an algorithm finds, by site and by similarity: tables 2, 5, 8 and 12 of the
//! paper.

use serde::Serialize;

use super::measures::{Algorithm, MeasuredPair, Measures, SUPERSHINGLES};
use super::{BANDS, cell};
use crate::ground_truth::score::Score;
use crate::report::Table;

/// Number of terms above which two pages differ in many terms (table 8).
pub(super) const MANY_TERMS: u32 = 200;

/// Part of the labelled pairs that a row of a table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Part {
    All,
    OneSite,
    TwoSites,
    /// Pairs with this number of equal supershingles.
    B(u32),
    /// Pairs with a number of agreeing bits from the first to the second number.
    C(u32, u32),
}

/// Score of an algorithm on a part of the pairs.
#[derive(Debug, Serialize)]
pub(super) struct PartScore {
    pub(super) algorithm: Algorithm,
    pub(super) part: Part,
    /// Score on the pairs of the part.
    pub(super) score: Score,
    /// Pairs with truth `Same` that are found, as a share of such pairs that B finds. `None` for parts by
    /// similarity, where the share says nothing.
    pub(super) relative: Option<f64>,
}

/// Pairs that an algorithm finds among those that differ in many terms.
#[derive(Debug, Serialize)]
pub(super) struct LargeDifferences {
    pub(super) algorithm: Algorithm,
    pub(super) found: Score,
}

impl Part {
    fn of(algorithm: Algorithm) -> Vec<Self> {
        let mut parts = vec![Self::All, Self::OneSite, Self::TwoSites];
        match algorithm {
            Algorithm::B => parts.extend((2..=SUPERSHINGLES).map(Self::B)),
            Algorithm::C => parts.extend(BANDS.map(|(least, most)| Self::C(least, most))),
            Algorithm::Combined | Algorithm::Control => {}
        }
        parts
    }

    fn has(self, pair: &MeasuredPair<'_>) -> bool {
        let Measures { b, c } = pair.measures;
        match self {
            Self::All => true,
            Self::OneSite => pair.is_on_one_site(),
            Self::TwoSites => !pair.is_on_one_site(),
            Self::B(equal) => b == equal,
            Self::C(least, most) => (least..=most).contains(&c),
        }
    }

    /// Whether the part does not depend on a similarity.
    fn is_whole(self) -> bool {
        matches!(self, Self::All | Self::OneSite | Self::TwoSites)
    }

    fn name(self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::OneSite => "same site".to_owned(),
            Self::TwoSites => "different sites".to_owned(),
            Self::B(equal) => format!("B-similarity {equal}"),
            Self::C(least, most) => format!("C-similarity {least}-{most}"),
        }
    }
}

/// Scores each algorithm on each of its parts.
pub(super) fn score_parts(pairs: &[&MeasuredPair<'_>], algorithms: &[Algorithm]) -> Vec<PartScore> {
    let score = |algorithm: Algorithm, part: Part| {
        let mut score = Score::default();
        let own = pairs.iter().filter(|pair| part.has(pair));
        own.for_each(|one| score.add(one.pair.truth, algorithm.holds(one.measures), one.pair.weight));
        score
    };
    let row = &|algorithm, part| {
        let own = score(algorithm, part);
        let relative = part.is_whole().then(|| own.relative_to(&score(Algorithm::B, part))).flatten();
        PartScore { algorithm, part, relative, score: own }
    };
    let of = |algorithm: Algorithm| Part::of(algorithm).into_iter().map(move |part| row(algorithm, part));
    algorithms.iter().copied().flat_map(of).collect()
}

/// Scores each algorithm on the pairs that differ in many terms. `terms` counts the terms in which a pair
/// differs; pairs without a count are left out.
pub(super) fn score_large_differences(
    pairs: &[MeasuredPair<'_>],
    mut terms: impl FnMut(&MeasuredPair<'_>) -> Option<u32>,
) -> Vec<LargeDifferences> {
    let mut all = Algorithm::ALL.map(|algorithm| LargeDifferences { algorithm, found: Score::default() });
    for one in pairs {
        let is_found = |large: &LargeDifferences| large.algorithm.holds(one.measures);
        if !all.iter().any(is_found) || terms(one).is_none_or(|terms| terms <= MANY_TERMS) {
            continue;
        }
        for large in all.iter_mut().filter(|large| large.algorithm.holds(one.measures)) {
            large.found.add(one.pair.truth, true, one.pair.weight);
        }
    }
    all.into()
}

pub(super) fn table(title: &str, rows: &[PartScore]) -> Table {
    let head = [
        "algorithm",
        "pairs",
        "found",
        "correct, %",
        "not correct, %",
        "undecided, %",
        "without undecided: precision, %",
        "R, % of B's correct",
        "recall, % of all correct",
    ];
    let mut table = Table::new(title, head);
    for PartScore { algorithm, part, score, relative } in rows {
        let counts = [score.found, score.wrong, score.undecided];
        let shares = score.of_all_found();
        let mut row = vec![algorithm.name().to_owned(), part.name(), counts.iter().sum::<u64>().to_string()];
        let share = |at: usize| format!("{} ({})", cell(shares.map(|shares| shares[at])), counts[at]);
        row.extend([0, 1, 2].map(share));
        row.extend([cell(score.precision()), cell(*relative)]);
        // An algorithm finds all pairs of one similarity, or none.
        let of = score.found + score.missed;
        row.push(if part.is_whole() {
            format!("{} (of {of})", cell(score.recall()))
        } else {
            "-".to_owned()
        });
        table.row(row);
    }
    table
}

pub(super) fn large_table(of: &[(&str, &[LargeDifferences])]) -> Table {
    let title = format!("verdicts of the pairs found that differ in more than {MANY_TERMS} terms (table 8)");
    let mut table = Table::new(&title, ["pairs", "algorithm", "correct", "not correct", "undecided"]);
    for (name, rows) in of {
        for LargeDifferences { algorithm, found: Score { found, wrong, undecided, .. } } in *rows {
            let counts = [found, wrong, undecided].map(u64::to_string);
            table.row([(*name).to_owned(), algorithm.name().to_owned()].into_iter().chain(counts));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use doppel_model::PageUrl;

    use super::*;
    use crate::ground_truth::labelled::{Pair, Truth};

    #[test]
    fn undecided_pairs_count_as_in_the_paper() {
        let url = |host: &str| PageUrl::parse(&format!("http://{host}/")).unwrap();
        let pair = |b: &str, truth| Pair { a: url("a.x.org"), b: url(b), truth, weight: 1.0 };
        // The first two pairs are on one site by the definition of the paper.
        let pairs = [
            pair("b.x.org", Truth::Same),
            pair("a.x.org", Truth::Undecided),
            pair("y.org", Truth::Same),
            pair("y.org", Truth::Other),
            pair("y.org", Truth::Same),
        ];
        let measures = [(2, 360), (3, 350), (2, 340), (2, 384), (0, 384)].map(|(b, c)| Measures { b, c });
        let measured: Vec<_> =
            pairs.iter().zip(measures).map(|(pair, measures)| MeasuredPair { pair, measures }).collect();
        let rows = score_parts(&measured.iter().collect::<Vec<_>>(), &Algorithm::ALL);
        let row = &|algorithm, part| {
            let row = rows.iter().find(|row| (row.algorithm, row.part) == (algorithm, part)).unwrap();
            (row.score.of_all_found(), row.relative)
        };
        assert_eq!(row(Algorithm::B, Part::All), (Some([0.5, 0.25, 0.25]), Some(1.0)));
        assert_eq!(row(Algorithm::B, Part::OneSite), (Some([0.5, 0.0, 0.5]), Some(1.0)));
        assert_eq!(row(Algorithm::B, Part::B(3)), (Some([0.0, 0.0, 1.0]), None));
        assert_eq!(row(Algorithm::Combined, Part::All), (Some([0.5, 0.5, 0.0]), Some(0.5)));
        assert_eq!(row(Algorithm::C, Part::TwoSites), (Some([0.5, 0.5, 0.0]), Some(1.0)));
        assert_eq!(rows.iter().filter(|row| row.part == Part::All).count(), 4);
        let large =
            score_large_differences(&measured, |one| Some(if one.measures.c == 384 { 201 } else { 200 }));
        let counts = |at: usize| (large[at].found.found, large[at].found.wrong, large[at].found.undecided);
        assert_eq!((counts(0), counts(1)), ((0, 1, 0), (1, 1, 0)));
    }
}
