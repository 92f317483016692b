//! The winner order by its description in docs/reference/winner-rules.md: rules one after the other, then the
//! URL.

use std::cmp::Ordering;

use doppel_contract::WinnerRule;
use doppel_model::Timestamp;

use super::model::{Page, RecordedPage, url};
use super::random::Random;

/// The default rules.
const USUAL: [WinnerRule; 5] = [
    WinnerRule::Popularity,
    WinnerRule::DayFirstSeen,
    WinnerRule::StaticUrl,
    WinnerRule::ShorterUrl,
    WinnerRule::FirstSeen,
];

/// The rules of a run: the default rules, or in one run of three some of all rules in any order.
pub(crate) fn rules(random: &mut Random) -> Vec<WinnerRule> {
    if !random.once_in(3) {
        return USUAL.to_vec();
    }
    let mut left = [&USUAL[..], &[WinnerRule::Https]].concat();
    let mut rules = Vec::new();
    for _ in 0..random.below(7) {
        rules.push(left.swap_remove(random.below(left.len() as u64) as usize));
    }
    rules
}

/// Compares two pages; `Less` wins. Also returns the rule that decided.
pub(crate) fn decide(
    rules: &[WinnerRule],
    a: (Page, &RecordedPage),
    b: (Page, &RecordedPage),
) -> (Ordering, WinnerRule) {
    let by = |rule: &WinnerRule| (number(*rule, a).cmp(&number(*rule, b)), *rule);
    let decided = rules.iter().map(by).find(|(order, _)| order.is_ne());
    decided.unwrap_or_else(|| (url(a.0).as_str().cmp(url(b.0).as_str()), WinnerRule::Url))
}

/// The value of a page under a rule. The smaller value wins.
fn number(rule: WinnerRule, (page, known): (Page, &RecordedPage)) -> i64 {
    let url = url(page).as_str().to_owned();
    match rule {
        WinnerRule::Popularity => match known.popularity {
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
        WinnerRule::DayFirstSeen => known.first_seen.div_euclid(Timestamp::DAY_MS),
        WinnerRule::StaticUrl => i64::from(url.contains('?')),
        WinnerRule::ShorterUrl => url.len() as i64,
        WinnerRule::FirstSeen => known.first_seen,
        WinnerRule::Https => i64::from(!url.to_ascii_lowercase().starts_with("https:")),
        WinnerRule::Market | WinnerRule::Url => unreachable!("{rule} is none of a run's rules"),
    }
}
