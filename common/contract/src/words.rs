//! Reasons in words, as answers and commands phrase them.

use crate::rule::Rule;
use crate::status::Unresolved;

/// Describes the end of a redirect chain that does not reach a content. The text continues a sentence about
/// the redirect.
#[must_use]
pub fn unresolved(reason: Unresolved) -> &'static str {
    match reason {
        Unresolved::UnknownTarget => "and the redirect chain ends at an unknown page",
        Unresolved::DeadTarget => "and the redirect chain ends at a dead page",
        Unresolved::Loop => "and the redirect chain is a loop",
        Unresolved::TooManyHops => "and the redirect chain is too long",
    }
}

/// Describes the advantage of a winner over another page under a rule.
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
