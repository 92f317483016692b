//! Tables: weights and lexicons are those that a second reader learns from the same pages.

use doppel_model::pairwise::Policy;
use doppel_model::tables::{LEXICONS, Tables};
use proptest::prelude::*;

use crate::compare::{learnt, tables};
use crate::page::Page;
use crate::real::pages;
use crate::terms::{Learnt, has};
use crate::written::hash;

fn check(tables: &Tables, learnt: &Learnt) {
    assert_eq!((u64::from(tables.contents()), tables.terms()), (learnt.contents(), learnt.kept()));
    // A word that nobody has, too.
    for term in learnt.seen().chain(["", "qwertzuiop"]) {
        assert_eq!(u64::from(tables.weight(hash(term))), learnt.weight(term), "{term:?}");
        for lexicon in 0..LEXICONS as u64 {
            assert_eq!(tables.has(lexicon as usize, hash(term)), has(lexicon, term), "{lexicon} {term:?}");
        }
    }
}

fn policies() -> impl Iterator<Item = Policy> {
    Policy::all().filter(Policy::reads_tables)
}

#[test]
fn of_real_pages() {
    let Some((pages, learnt)) = pages() else { return };
    for policy in policies() {
        check(&tables(policy, pages), learnt);
    }
    println!("{} contents, {} terms in more than one", learnt.contents(), learnt.kept());
    assert!(learnt.contents() > 500 && learnt.kept() > 1_000);
}

#[test]
fn a_random_lexicon_has_two_thirds_of_the_terms_of_real_pages() {
    let Some((_, learnt)) = pages() else { return };
    let all = learnt.seen().count();
    for lexicon in 1..LEXICONS as u64 {
        let kept = learnt.seen().filter(|term| has(lexicon, term)).count();
        let share = kept as f64 / all as f64;
        assert!((0.65..0.685).contains(&share), "lexicon {lexicon} has {kept} of {all}");
    }
}

proptest! {
    #[test]
    fn of_random_texts(texts in prop::collection::vec("([a-f] |the |[a-f]{1,3}ing ){0,12}", 0..12)) {
        let pages: Vec<Page> = texts.into_iter().map(|text| Page::of_text("http://a.org/", text)).collect();
        policies().for_each(|policy| check(&tables(policy, &pages), &learnt(&pages)));
    }
}
