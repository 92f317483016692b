//! Queries of a seed: drawn texts, and their modified copies.
//!
//! The paper inserts, deletes and replaces words at random places, and does not say how many. Here each copy
//! draws the share of words that it changes, evenly up to a maximum, and changes at least one word. The three
//! kinds of change have the same probability. A new word is drawn from a random place of a random text, so
//! common words keep their frequency.

use doppel_model::Random;

/// Number of drawn texts, which are the queries.
pub(super) const QUERIES: usize = 5;
/// Number of modified copies of each query.
pub(super) const COPIES: usize = 120;

/// Drawn texts and their modified copies.
pub(super) struct QuerySet {
    /// Numbers of the drawn texts.
    pub(super) queries: Vec<usize>,
    /// Copies of each drawn text.
    pub(super) copies: Vec<Vec<String>>,
}

impl QuerySet {
    /// Draws five of the texts, or all texts if there are fewer, and modifies them. A copy changes up to
    /// `changed` percent of its words.
    pub(super) fn new(texts: &[String], changed: u32, random: &mut Random) -> Self {
        let mut queries: Vec<usize> = Vec::new();
        while queries.len() < QUERIES.min(texts.len()) {
            let query = random.index(texts.len());
            if !queries.contains(&query) {
                queries.push(query);
            }
        }
        let copies = queries.iter().map(|query| {
            let mut copy = || modified(&texts[*query], changed, texts, random);
            (0..COPIES).map(|_| copy()).collect()
        });
        let copies = copies.collect();
        Self { queries, copies }
    }
}

fn modified(text: &str, changed: u32, texts: &[String], random: &mut Random) -> String {
    let mut words: Vec<&str> = text.split(' ').collect();
    let share = random.unit() * f64::from(changed) / 100.0;
    let changes = ((words.len() as f64 * share) as usize).max(1);
    for _ in 0..changes {
        let at = random.index(words.len());
        match random.index(3) {
            0 => words.insert(at, word(texts, random)),
            // A text keeps at least one word.
            1 if words.len() > 1 => {
                words.remove(at);
            }
            _ => words[at] = word(texts, random),
        }
    }
    words.join(" ")
}

fn word<'t>(texts: &'t [String], random: &mut Random) -> &'t str {
    let text = &texts[random.index(texts.len())];
    let from = random.index(text.len());
    // A random byte is more often in a long word than in a short one. The next word has no such bias.
    let space = text.as_bytes()[from..].iter().position(|byte| *byte == b' ');
    text[space.map_or(0, |space| from + space + 1)..].split(' ').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts() -> Vec<String> {
        let text = |text: usize| (0..400).map(|n| format!("t{text}w{n}")).collect::<Vec<_>>().join(" ");
        (0..20).map(text).collect()
    }

    /// Minimum number of insertions, deletions and replacements of words that turn one text into the other.
    fn changes(a: &str, b: &str) -> usize {
        let (a, b): (Vec<&str>, Vec<&str>) = (a.split(' ').collect(), b.split(' ').collect());
        let mut row: Vec<usize> = (0..=b.len()).collect();
        for (i, x) in a.iter().enumerate() {
            let mut diagonal = std::mem::replace(&mut row[0], i + 1);
            for (j, y) in b.iter().enumerate() {
                let best = (diagonal + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
                diagonal = std::mem::replace(&mut row[j + 1], best);
            }
        }
        row[b.len()]
    }

    #[test]
    fn copies_change_up_to_the_share_and_seeds_reproduce_them() {
        let texts = texts();
        let drawn = QuerySet::new(&texts, 10, &mut Random::new(5));
        assert_eq!(drawn.queries.len(), QUERIES);
        let distinct: std::collections::BTreeSet<_> = drawn.queries.iter().collect();
        assert_eq!(distinct.len(), QUERIES);
        let mut all = Vec::new();
        for (query, copies) in drawn.queries.iter().zip(&drawn.copies) {
            assert_eq!(copies.len(), COPIES);
            all.extend(copies.iter().map(|copy| changes(&texts[*query], copy)));
        }
        // A copy changes at most 40 of 400 words, and every number up to 40 has the same probability.
        assert!(all.iter().all(|changes| *changes <= 40), "{all:?}");
        let mean = all.iter().sum::<usize>() as f64 / all.len() as f64;
        assert!((17.0..21.0).contains(&mean) && all.iter().max() > Some(&35), "{mean}");
        let words = |copy: &String| copy.split(' ').count();
        let lengths: Vec<usize> = drawn.copies.iter().flatten().map(words).collect();
        assert!(lengths.iter().any(|words| *words > 403) && lengths.iter().any(|words| *words < 397));

        let again = QuerySet::new(&texts, 10, &mut Random::new(5));
        assert_eq!((&drawn.queries, &drawn.copies), (&again.queries, &again.copies));
        assert_ne!(drawn.copies, QuerySet::new(&texts, 10, &mut Random::new(6)).copies);
    }

    #[test]
    fn a_copy_changes_something_and_few_texts_are_all_drawn() {
        let texts = &texts()[..2];
        let drawn = QuerySet::new(texts, 0, &mut Random::new(5));
        assert_eq!(drawn.queries.len(), 2);
        let with_one_change =
            drawn.copies[0].iter().filter(|copy| changes(&texts[drawn.queries[0]], copy) == 1).count();
        // A word may be replaced by itself, which is rare.
        assert!(with_one_change > 110, "{with_one_change}");
        let short = ["one".to_owned()];
        assert!(
            QuerySet::new(&short, 100, &mut Random::new(5)).copies[0].iter().all(|copy| !copy.is_empty())
        );
    }
}
