//! Metrics of the remaining validity of tokens. The service refuses a client once its token has expired, so
//! an operator must be able to see the expiry in advance.

use std::cmp::Reverse;
use std::fmt;

use doppel_model::Timestamp;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::gauge;
use crate::access::{ClientTokens, Token};

/// Maximum number of tokens with samples of their own. A token file may contain thousands.
const SAMPLES: usize = 256;

/// Writes the number of tokens, and the remaining validity of the [`SAMPLES`] tokens that expire next. A token file that was reloaded counts at once, because the
/// current tokens are read.
pub(super) fn encode(out: &mut DescriptorEncoder<'_>, tokens: &ClientTokens, now: Timestamp) -> fmt::Result {
    let all = tokens.all();
    let help = "Time until a token expires, negative for an expired token; the 256 tokens that expire next";
    let mut family = out.encode_descriptor("doppel_token_expires_seconds", help, None, MetricType::Gauge)?;
    for (token, seconds) in soonest(&all, now) {
        let labels = [("name", token.name.to_string()), ("role", token.role.name().to_owned())];
        ConstGauge::new(seconds).encode(family.encode_family(&labels)?)?;
    }
    gauge(out, "doppel_tokens", "Tokens in the token file, including expired tokens", all.len() as u64)
}

/// Returns tokens with their remaining validity in seconds, up to [`SAMPLES`]. Valid tokens come first, in
/// order of expiry. Expired tokens follow, most recently expired first.
fn soonest(tokens: &[Token], now: Timestamp) -> Vec<(&Token, f64)> {
    let left = |token: &Token| token.expires.millis().saturating_sub(now.millis());
    let mut order: Vec<(&Token, i64)> = tokens.iter().map(|token| (token, left(token))).collect();
    order.sort_by_key(
        |(_, left)| if *left > 0 { (false, *left, Reverse(0)) } else { (true, 0, Reverse(*left)) },
    );
    order.truncate(SAMPLES);
    order.into_iter().map(|(token, left)| (token, left as f64 / 1_000.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Role, TokenHash};

    fn token(name: &str, expires: i64) -> Token {
        let expires = Timestamp::from_millis(expires);
        Token { name: name.parse().unwrap(), role: Role::Read, expires, hash: TokenHash::of(name) }
    }

    #[test]
    fn tokens_that_expire_next_have_samples() {
        let now = Timestamp::from_millis(10_000);
        let tokens =
            [token("old", 1_000), token("later", 70_500), token("just", 10_000), token("next", 11_000)];
        let found = soonest(&tokens, now);
        let found: Vec<_> = found.iter().map(|(token, left)| (token.name.to_string(), *left)).collect();
        let expected = [("next", 1.0), ("later", 60.5), ("just", 0.0), ("old", -9.0)];
        assert_eq!(found, expected.map(|(name, left)| (name.to_owned(), left)));
        let many: Vec<Token> = (0..1_000).map(|n| token(&format!("t{n}"), 20_000 - n)).collect();
        let found = soonest(&many, now);
        assert_eq!((found.len(), found[0].0.name.to_string()), (SAMPLES, "t999".to_owned()));
    }
}
