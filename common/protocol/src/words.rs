//! Reasons in words, as the answers and the commands give them.

use crate::{Rule, Unresolved};

/// Says where a redirect ends that does not reach a content.
#[must_use]
pub fn unresolved(reason: Unresolved) -> &'static str {
    match reason {
        Unresolved::UnknownTarget => "where the way ends at an unknown page",
        Unresolved::DeadTarget => "where the way ends at a dead page",
        Unresolved::Loop => "where the way goes round in a circle",
        Unresolved::TooManyHops => "where the way is too long",
    }
}

/// Says by what advantage a winner stands before another page.
#[must_use]
pub fn rule(rule: Rule) -> &'static str {
    match rule {
        Rule::Market => "in the market",
        Rule::Popularity => "more popular",
        Rule::DayFirstSeen => "seen on an earlier day",
        Rule::StaticUrl => "without a query string",
        Rule::ShorterUrl => "a shorter URL",
        Rule::FirstSeen => "seen earlier",
        Rule::Https => "over https",
        Rule::Url => "first in byte order",
    }
}
