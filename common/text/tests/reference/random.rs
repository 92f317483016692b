//! Compares the product with the reference on random texts on random hosts. Many texts differ from each other
//! in only a few words or lines.

use proptest::prelude::*;

use crate::compare::{ALL, compare, statistics};
use crate::page::Page;

/// Hosts that share a site by some definitions of a site and not by others.
const HOSTS: [&str; 6] =
    ["a.example.org", "b.example.org", "example.org.", "a.github.io", "x.a.co.uk", "10.0.0.1"];

/// Recipe of a random text.
#[derive(Debug, Clone)]
struct TextRecipe {
    /// Number of words.
    words: usize,
    /// Changed words: the position and the number of the new word.
    changes: Vec<(usize, u32)>,
    /// Number of words in a line.
    line: usize,
    /// Index into [`HOSTS`].
    host: usize,
}

fn recipe() -> impl Strategy<Value = TextRecipe> {
    let changes = prop::collection::vec((0..400_usize, 0..40_u32), 0..5);
    let length = prop_oneof![0..30_usize, 60..64_usize, 200..204_usize];
    (length, changes, prop_oneof![Just(1_usize), Just(3)], 0..HOSTS.len())
        .prop_map(|(words, changes, line, host)| TextRecipe { words, changes, line, host })
}

/// Returns the word with a number. Some words are unique, some are frequent, some are stop words, and some
/// have endings or other scripts.
fn word(number: usize) -> String {
    match number % 11 {
        0 => "the".to_owned(),
        1 => format!("walking{}", number / 30),
        2 => "running".to_owned(),
        3 => format!("Über{number}"),
        4 => "東京都".to_owned(),
        5 => format!("Dvor\u{30c}a\u{301}k{}+=", number % 7),
        _ => format!("word{}s", number % 130),
    }
}

fn text(recipe: &TextRecipe) -> String {
    let mut words: Vec<String> = (0..recipe.words).map(word).collect();
    for (at, to) in &recipe.changes {
        if let Some(word) = words.get_mut(*at) {
            *word = format!("other{to}");
        }
    }
    let lines: Vec<String> = words.chunks(recipe.line).map(|line| line.join(" ")).collect();
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn random_texts_are_read_and_compared_like_by_the_reference(recipes in prop::collection::vec(recipe(), 1..8)) {
        let page = |(number, recipe): (usize, &TextRecipe)| {
            Page::of_text(&format!("http://{}/{number}", HOSTS[recipe.host]), text(recipe))
        };
        let pages: Vec<Page> = recipes.iter().enumerate().map(page).collect();
        let statistics = statistics(&pages);
        for (text, rule) in ALL {
            compare(text, rule, &pages, &statistics);
        }
    }
}

#[test]
fn recipes_make_near_duplicates_under_every_policy() {
    let recipe = |changes: Vec<(usize, u32)>, words, host| TextRecipe { words, changes, line: 1, host };
    let recipes = [
        recipe(vec![], 200, 0),
        recipe(vec![(70, 1)], 200, 3),
        recipe(vec![], 201, 0),
        recipe(vec![], 62, 0),
    ];
    let page = |(number, recipe): (usize, &TextRecipe)| {
        Page::of_text(&format!("http://{}/{number}", HOSTS[recipe.host]), text(recipe))
    };
    let pages: Vec<Page> = recipes.iter().enumerate().map(page).collect();
    let statistics = statistics(&pages);
    for (text, rule) in ALL {
        let figures = compare(text, rule, &pages, &statistics);
        println!("{text}: {figures:?}");
        assert!((1..=6).contains(&figures.near), "{text}: {figures:?}");
    }
}
