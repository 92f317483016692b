//! Compares the tables that the product learns (weights of terms and lexicons) with those that the reference
//! learns from the same pages.

use doppel_model::pairwise::Policy;
use doppel_model::tables::{LEXICONS, Tables};
use proptest::prelude::*;

use crate::compare::{statistics, tables};
use crate::layout::hash;
use crate::page::Page;
use crate::real::pages;
use crate::terms::{TermStatistics, has};

fn check(tables: &Tables, statistics: &TermStatistics) {
    assert_eq!(
        (u64::from(tables.contents()), tables.terms()),
        (statistics.contents(), statistics.weighted_terms())
    );
    // The last two terms occur in no page.
    for term in statistics.terms().chain(["", "qwertzuiop"]) {
        assert_eq!(u64::from(tables.weight(hash(term))), statistics.weight(term), "{term:?}");
        for lexicon in 0..LEXICONS as u64 {
            assert_eq!(tables.has(lexicon as usize, hash(term)), has(lexicon, term), "{lexicon} {term:?}");
        }
    }
}

fn policies() -> impl Iterator<Item = Policy> {
    Policy::all().filter(Policy::reads_tables)
}

#[test]
fn tables_of_real_pages_equal_those_of_the_reference() {
    let Some((pages, statistics)) = pages() else { return };
    for policy in policies() {
        check(&tables(policy, pages), statistics);
    }
    println!(
        "{} contents, {} terms in more than one content",
        statistics.contents(),
        statistics.weighted_terms()
    );
    assert!(statistics.contents() > 500 && statistics.weighted_terms() > 1_000);
}

#[test]
fn a_random_lexicon_has_two_thirds_of_the_terms_of_real_pages() {
    let Some((_, statistics)) = pages() else { return };
    let all = statistics.terms().count();
    for lexicon in 1..LEXICONS as u64 {
        let in_lexicon = statistics.terms().filter(|term| has(lexicon, term)).count();
        let share = in_lexicon as f64 / all as f64;
        assert!((0.65..0.685).contains(&share), "lexicon {lexicon} has {in_lexicon} of {all} terms");
    }
}

proptest! {
    #[test]
    fn tables_of_random_texts_equal_those_of_the_reference(texts in prop::collection::vec("([a-f] |the |[a-f]{1,3}ing ){0,12}", 0..12)) {
        let pages: Vec<Page> = texts.into_iter().map(|text| Page::of_text("http://a.org/", text)).collect();
        policies().for_each(|policy| check(&tables(policy, &pages), &statistics(&pages)));
    }
}
