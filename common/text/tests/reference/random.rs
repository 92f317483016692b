//! Random texts on random hosts, some of which are others with a few words or lines changed.

use proptest::prelude::*;

use crate::compare::{ALL, compare, learnt};
use crate::page::Page;

/// Hosts of one site and of others, by one meaning of the word or another.
const HOSTS: [&str; 6] =
    ["a.example.org", "b.example.org", "example.org.", "a.github.io", "x.a.co.uk", "10.0.0.1"];

/// A text: how many words it has, which are changed and to what, and where lines end.
#[derive(Debug, Clone)]
struct Plan {
    words: usize,
    changes: Vec<(usize, u32)>,
    line: usize,
    host: usize,
}

fn plan() -> impl Strategy<Value = Plan> {
    let changes = prop::collection::vec((0..400_usize, 0..40_u32), 0..5);
    let length = prop_oneof![0..30_usize, 60..64_usize, 200..204_usize];
    (length, changes, prop_oneof![Just(1_usize), Just(3)], 0..HOSTS.len())
        .prop_map(|(words, changes, line, host)| Plan { words, changes, line, host })
}

/// Words that come once, often, with endings, that are stop words, and of other scripts.
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

fn text(plan: &Plan) -> String {
    let mut words: Vec<String> = (0..plan.words).map(word).collect();
    for (at, to) in &plan.changes {
        if let Some(word) = words.get_mut(*at) {
            *word = format!("other{to}");
        }
    }
    let lines: Vec<String> = words.chunks(plan.line).map(|line| line.join(" ")).collect();
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn random_texts(plans in prop::collection::vec(plan(), 1..8)) {
        let page = |(number, plan): (usize, &Plan)| {
            Page::of_text(&format!("http://{}/{number}", HOSTS[plan.host]), text(plan))
        };
        let pages: Vec<Page> = plans.iter().enumerate().map(page).collect();
        let learnt = learnt(&pages);
        for (text, rule) in ALL {
            compare(text, rule, &pages, &learnt);
        }
    }
}

#[test]
fn plans_make_near_duplicates_under_every_policy() {
    let plan = |changes: Vec<(usize, u32)>, words, host| Plan { words, changes, line: 1, host };
    let plans =
        [plan(vec![], 200, 0), plan(vec![(70, 1)], 200, 3), plan(vec![], 201, 0), plan(vec![], 62, 0)];
    let page = |(number, plan): (usize, &Plan)| {
        Page::of_text(&format!("http://{}/{number}", HOSTS[plan.host]), text(plan))
    };
    let pages: Vec<Page> = plans.iter().enumerate().map(page).collect();
    let learnt = learnt(&pages);
    for (text, rule) in ALL {
        let figures = compare(text, rule, &pages, &learnt);
        println!("{text}: {figures:?}");
        assert!((1..=6).contains(&figures.near), "{text}: {figures:?}");
    }
}
