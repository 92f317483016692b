//! Compares the groups of pages of one template with all pairs. Most of these pages share bands, and few are
//! near-duplicates, so the engine finds pairs by their differences from the template.
//!
//! `DOPPEL_TEMPLATE_PAGES=20000` makes larger families.

use std::collections::{BTreeSet, HashMap};
use std::env;
use std::fs;

use anyhow::{Context, Result};
use doppel_baseline::{Contents, Tau, components, similar_contents};
use doppel_model::Random;

use super::dedup::{Status, dedup, parse};

/// Number of words of a template, and of a page.
const WORDS: usize = 100;

/// Number of pages of a family, unless the environment names another one.
const PAGES: usize = 1_500;

/// What distinguishes a page from its template.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// So many words of its own.
    Own(usize),
    /// One word of its own, or four.
    Half,
    /// Three words of its own, in one of two templates that share half of their words.
    TwoTemplates,
    /// Six words, each one of so many.
    Fields(usize),
}

fn page(kind: Kind, number: usize, random: &mut Random) -> String {
    let mut words: Vec<String> = (0..WORDS).map(|at| format!("word{at}")).collect();
    let own = match kind {
        Kind::Own(own) => own,
        Kind::Half => [4, 1][number % 2],
        Kind::TwoTemplates | Kind::Fields(_) => 3,
    };
    if let Kind::Fields(values) = kind {
        for field in 0..6 {
            words[8 + 16 * field] = format!("field{field}value{}", random.index(values));
        }
        return words.join(" ");
    }
    if matches!(kind, Kind::TwoTemplates) && number % 2 == 1 {
        for (at, word) in words.iter_mut().enumerate().skip(WORDS / 2) {
            *word = format!("other{at}");
        }
    }
    for _ in 0..own {
        words[random.index(WORDS)] = format!("own{}", random.below(1_000_000_000));
    }
    words.join(" ")
}

/// The groups of at least two texts that `doppel dedup` finds, as numbers of texts. Checks that each duplicate
/// names a page that is kept and is its near-duplicate.
fn found(texts: &[String], contents: &Contents, ids: &[usize], tau: Tau) -> Result<BTreeSet<Vec<usize>>> {
    let home = tempfile::tempdir()?;
    let input = home.path().join("pages.jsonl");
    let url = |number: usize| format!("http://site{}.example/{number}", number % 7);
    let line = |(number, text): (usize, &String)| {
        serde_json::json!({"url": url(number), "text": text, "fetched_at": number}).to_string() + "\n"
    };
    fs::write(&input, texts.iter().enumerate().map(line).collect::<String>())?;
    let options = ["--group-members-max", "1000000000"];
    let lines = parse(&dedup(&options, &[input])?)?;
    let numbers: HashMap<String, usize> = (0..texts.len()).map(|number| (url(number), number)).collect();
    let statuses: HashMap<&str, Status> = lines.iter().map(|line| (line.url.as_str(), line.status)).collect();
    let mut groups: HashMap<_, Vec<usize>> = HashMap::new();
    for line in &lines {
        if let Some(group) = &line.group {
            groups.entry(group.clone()).or_default().push(numbers[&line.url]);
        }
        if line.status == Status::Duplicate {
            let by = line.duplicate_of.as_deref().context("a duplicate names no page")?;
            assert!(matches!(statuses[by], Status::Winner | Status::Secondary), "{by} is not kept");
            let [a, b] = [line.url.as_str(), by].map(|url| ids[numbers[url]]);
            let near = doppel_baseline::near_duplicate(&contents.all()[a], &contents.all()[b], tau);
            assert!(a == b || near, "{} is no near-duplicate of {by}", line.url);
        }
    }
    let sorted = |mut group: Vec<usize>| {
        group.sort_unstable();
        group
    };
    Ok(groups.into_values().filter(|group| group.len() > 1).map(sorted).collect())
}

/// The groups of at least two texts by all pairs.
fn expected(contents: &Contents, ids: &[usize], tau: Tau) -> BTreeSet<Vec<usize>> {
    let of = components(contents.all().len(), similar_contents(contents.all(), tau).above);
    let mut groups: HashMap<usize, Vec<usize>> = HashMap::new();
    for (number, content) in ids.iter().enumerate() {
        groups.entry(of[*content]).or_default().push(number);
    }
    groups.into_values().filter(|group| group.len() > 1).collect()
}

#[test]
fn pages_of_one_template_have_the_groups_of_all_pairs() {
    let count = env::var("DOPPEL_TEMPLATE_PAGES").map_or(PAGES, |pages| pages.parse().unwrap());
    let tau = Tau::ratio(4, 5).unwrap();
    let kinds = [
        Kind::Own(1),
        Kind::Own(2),
        Kind::Own(3),
        Kind::Own(10),
        Kind::Half,
        Kind::TwoTemplates,
        Kind::Fields(5),
        Kind::Fields(20),
    ];
    let (mut grouped, mut alone) = (0, 0);
    for (seed, kind) in (0..).zip(kinds) {
        let mut random = Random::new(seed);
        let texts: Vec<String> = (0..count).map(|number| page(kind, number, &mut random)).collect();
        let mut contents = Contents::default();
        let ids: Vec<usize> = texts.iter().map(|text| contents.intern(text).index()).collect();
        let expected = expected(&contents, &ids, tau);
        assert_eq!(found(&texts, &contents, &ids, tau).unwrap(), expected, "{kind:?}");
        let members: usize = expected.iter().map(Vec::len).sum();
        println!("{kind:?}: {} groups, {members} of {count} pages", expected.len());
        grouped += members;
        alone += count - members;
    }
    assert!(grouped > count && alone > count, "{grouped} pages are in groups, and {alone} are not");
}
