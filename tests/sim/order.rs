//! The winner order, from its description (docs/reference/winner-rules.md): rules one after the other, then the URL.

use std::cmp::Ordering;

use doppel_contract::Rule;
use doppel_model::Timestamp;

use super::model::{Known, Page, url};
use super::random::Random;

/// The rules of a collection that has chosen none.
const USUAL: [Rule; 5] =
    [Rule::Popularity, Rule::DayFirstSeen, Rule::StaticUrl, Rule::ShorterUrl, Rule::FirstSeen];

/// The rules of a run: the usual ones, or, in one of three, some of all in any order.
pub(crate) fn rules(random: &mut Random) -> Vec<Rule> {
    if !random.once_in(3) {
        return USUAL.to_vec();
    }
    let mut left = [&USUAL[..], &[Rule::Https]].concat();
    let mut rules = Vec::new();
    for _ in 0..random.below(7) {
        rules.push(left.swap_remove(random.below(left.len() as u64) as usize));
    }
    rules
}

/// Compares two pages; `Less` wins. Gives the rule that decided.
pub(crate) fn decide(rules: &[Rule], a: (Page, &Known), b: (Page, &Known)) -> (Ordering, Rule) {
    let by = |rule: &Rule| (number(*rule, a).cmp(&number(*rule, b)), *rule);
    let decided = rules.iter().map(by).find(|(order, _)| order.is_ne());
    decided.unwrap_or_else(|| (url(a.0).as_str().cmp(url(b.0).as_str()), Rule::Url))
}

/// What a rule makes of a page: the smaller wins.
fn number(rule: Rule, (page, known): (Page, &Known)) -> i64 {
    let url = url(page).as_str().to_owned();
    match rule {
        Rule::Popularity => match known.popularity {
            None => 2,
            Some(p) if p <= 0.0 => 1,
            Some(p) => {
                let mut power = 0;
                while 2f64.powi(power + 1) <= p {
                    power += 1;
                }
                -i64::from(power)
            }
        },
        Rule::DayFirstSeen => known.first_seen.div_euclid(Timestamp::DAY_MS),
        Rule::StaticUrl => i64::from(url.contains('?')),
        Rule::ShorterUrl => url.len() as i64,
        Rule::FirstSeen => known.first_seen,
        Rule::Https => i64::from(!url.to_ascii_lowercase().starts_with("https:")),
        Rule::Market | Rule::Url => unreachable!("{rule} is none of a run's rules"),
    }
}
