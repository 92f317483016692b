//! Counts how similar duplicates are to their kept pages, as a histogram.

use doppel_tier1::bulk::PageWithContent;

/// Number of classes: one for each hundredth of the similarity, and one for a similarity of 1.
const CLASSES: usize = 101;
/// Largest number of rows of the histogram, without the class for a similarity of 1.
const ROWS_MAX: usize = 20;

/// Duplicates counted so far.
#[derive(Debug)]
pub(super) struct Similarities {
    classes: [u64; CLASSES],
    /// Duplicates of the winners of their groups.
    pub(super) of_winners: u64,
    /// Duplicates of other kept pages.
    pub(super) of_others: u64,
    /// Redirects, which have no similarity.
    pub(super) redirects: u64,
}

/// A row of the histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// Lower bound of the similarity in hundredths, inclusive.
    pub(super) from: usize,
    /// Upper bound of the similarity in hundredths, exclusive.
    pub(super) to: usize,
    /// Duplicates with a similarity in this row.
    pub(super) pages: u64,
}

impl Default for Similarities {
    fn default() -> Self {
        Self { classes: [0; CLASSES], of_winners: 0, of_others: 0, redirects: 0 }
    }
}

impl Similarities {
    /// Counts a duplicate.
    pub(super) fn add(&mut self, duplicate: &PageWithContent) {
        let Some(similarity) = duplicate.line.similarity else {
            self.redirects += 1;
            return;
        };
        *if duplicate.is_of_winner() { &mut self.of_winners } else { &mut self.of_others } += 1;
        // 0.29 * 100 is slightly less than 29, hence the small addend. Only a similarity of 1 belongs to the
        // last class.
        let class =
            if similarity >= 1.0 { CLASSES - 1 } else { ((similarity * 100.0 + 1e-9) as usize).min(99) };
        self.classes[class] += 1;
    }

    /// Number of duplicates with a similarity of 1.
    pub(super) fn most(&self) -> u64 {
        self.classes[CLASSES - 1]
    }

    /// Returns the rows for similarities below 1, beginning with the least one. Empty if there are none.
    pub(super) fn rows(&self) -> Vec<Row> {
        let Some(least) = self.classes[..100].iter().position(|pages| *pages > 0) else { return Vec::new() };
        let width =
            [1, 2, 5].into_iter().find(|width| (100 - least).div_ceil(*width) <= ROWS_MAX).unwrap_or(5);
        let rows = (least / width * width..100).step_by(width);
        rows.map(|from| {
            let to = (from + width).min(100);
            Row { from, to, pages: self.classes[from..to].iter().sum() }
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use doppel_contract::Status;
    use doppel_model::PageUrl;
    use doppel_protocol::Line;
    use doppel_tier1::bulk::NamedRecords;

    use super::*;

    fn duplicate(similarity: Option<f64>, of: &str) -> PageWithContent {
        let url = |name: &str| PageUrl::parse(&format!("http://a.example/{name}")).unwrap();
        let line = Line {
            url: url("page"),
            status: Status::Duplicate,
            group: None,
            winner: Some(url("winner")),
            duplicate_of: Some(url(of)),
            similarity,
            reason: None,
        };
        PageWithContent { line, content: None, kept_content: None, records: NamedRecords::default() }
    }

    #[test]
    fn every_duplicate_is_in_one_row() {
        let mut all = Similarities::default();
        assert_eq!((all.rows(), all.most()), (Vec::new(), 0));
        for similarity in [0.81, 0.8199, 0.999_999, 0.85, 1.0, 1.0] {
            all.add(&duplicate(Some(similarity), "winner"));
        }
        all.add(&duplicate(Some(0.29), "other"));
        all.add(&duplicate(None, "winner"));
        assert_eq!((all.of_winners, all.of_others, all.redirects, all.most()), (6, 1, 1, 2));
        let filled: Vec<_> = all.rows().into_iter().filter(|row| row.pages > 0).collect();
        let row = |from, to, pages| Row { from, to, pages };
        assert_eq!(filled, [row(25, 30, 1), row(80, 85, 2), row(85, 90, 1), row(95, 100, 1)]);
    }

    #[test]
    fn rows_are_as_narrow_as_they_can_be() {
        for (least, width, rows) in [(0.8, 1, 20), (0.79, 2, 11), (0.6, 2, 20), (0.59, 5, 9), (0.0, 5, 20)] {
            let mut all = Similarities::default();
            all.add(&duplicate(Some(least), "winner"));
            let found = all.rows();
            assert_eq!((found[0].to - found[0].from, found.len()), (width, rows), "{least}");
            assert_eq!((found[0].pages, found.last().unwrap().to), (1, 100));
        }
    }
}
