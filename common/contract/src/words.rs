//! Reasons in words, as answers and commands phrase them.

use crate::status::UnresolvedReason;
use crate::winner_rule::WinnerRule;

/// Describes the end of a redirect chain that does not reach a content. The text continues a sentence about
/// the redirect.
#[must_use]
pub fn unresolved(reason: UnresolvedReason) -> &'static str {
    match reason {
        UnresolvedReason::UnknownTarget => "and the redirect chain ends at an unknown page",
        UnresolvedReason::DeadTarget => "and the redirect chain ends at a dead page",
        UnresolvedReason::Loop => "and the redirect chain is a loop",
        UnresolvedReason::TooManyHops => "and the redirect chain is too long",
    }
}

/// Describes the advantage of a winner over another page under a rule.
#[must_use]
pub fn rule(rule: WinnerRule) -> &'static str {
    match rule {
        WinnerRule::Market => "in the market",
        WinnerRule::Popularity => "more popular",
        WinnerRule::DayFirstSeen => "seen on an earlier day",
        WinnerRule::StaticUrl => "without a query string",
        WinnerRule::ShorterUrl => "a shorter URL",
        WinnerRule::FirstSeen => "seen earlier",
        WinnerRule::Https => "over https",
        WinnerRule::Url => "first in byte order",
    }
}
