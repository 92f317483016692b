//! Tokens: secrets that identify clients. The service stores only the hashes of tokens.
//!
//! A token is [`PREFIX`] followed by 64 hexadecimal digits, which encode 256 random bits. With so many random
//! bits, SHA-256 needs no salt and no slow hash. The hashes do not reveal the tokens.
//!
//! Invariant: the duration of a check does not depend on which known hash matches, or on how many bytes of a
//! hash match.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};

use doppel_model::Timestamp;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::Role;
use crate::limits::NAME_BYTES;

/// Prefix of every token. The prefix lets secret scanners find a token that was published by mistake.
const PREFIX: &str = "doppel_";

/// Maximum length in bytes of a text that is checked as a token.
const BYTES_MAX: usize = 512;

/// Name of a token's holder: 1 to [`NAME_BYTES`] letters, digits, `-`, `_` and `.`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenName(Arc<str>);

/// Error for a text that is not a token name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a token name; use 1 to {NAME_BYTES} letters, digits, hyphens, underscores and dots")]
pub struct TokenNameError(String);

impl FromStr for TokenName {
    type Err = TokenNameError;

    fn from_str(text: &str) -> Result<Self, TokenNameError> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if text.is_empty() || text.len() > NAME_BYTES || !text.bytes().all(is_name) {
            return Err(TokenNameError(text.to_owned()));
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for TokenName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// SHA-256 hash of a token, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenHash([u8; 32]);

/// Error for a text that is not a hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a SHA-256 hash; use 64 hexadecimal digits, as `doppel token new` prints them")]
pub struct TokenHashError;

impl TokenHash {
    /// Computes the hash of a token's text.
    #[must_use]
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }
}

impl FromStr for TokenHash {
    type Err = TokenHashError;

    fn from_str(text: &str) -> Result<Self, TokenHashError> {
        let mut hash = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(TokenHashError);
        }
        for (byte, at) in hash.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| TokenHashError)?;
        }
        Ok(Self(hash))
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A token that the service accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Name of the token's holder.
    pub name: TokenName,
    /// Role that the token grants.
    pub role: Role,
    /// Time from which the token is refused.
    pub expires: Timestamp,
    /// Hash of the token's text.
    pub hash: TokenHash,
}

/// Generates a new random token.
///
/// # Errors
/// If the operating system provides no random bits.
pub fn new_token() -> Result<String, getrandom::Error> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits)?;
    Ok(format!("{PREFIX}{}", TokenHash(bits)))
}

/// The tokens of a service, which can be replaced while the service runs. Cheap to clone; all clones share
/// the tokens.
#[derive(Debug, Clone)]
pub struct ClientTokens(Arc<RwLock<Arc<[Token]>>>);

impl From<Vec<Token>> for ClientTokens {
    fn from(tokens: Vec<Token>) -> Self {
        Self(Arc::new(RwLock::new(tokens.into())))
    }
}

/// Reason why a token is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenRefusal {
    /// The text is not a known token.
    NotKnown,
    /// The token of this holder expired at this time.
    Expired(TokenName, Timestamp),
}

impl ClientTokens {
    /// Replaces all tokens, in every clone.
    pub fn replace(&self, tokens: Vec<Token>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = tokens.into();
    }

    /// Returns the current tokens.
    pub(crate) fn all(&self) -> Arc<[Token]> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks up a token and returns its holder and role.
    ///
    /// # Errors
    /// If the token is unknown, or has expired at `now`.
    pub(crate) fn find(&self, token: &str, now: Timestamp) -> Result<(TokenName, Role), TokenRefusal> {
        if token.len() > BYTES_MAX {
            return Err(TokenRefusal::NotKnown);
        }
        let tokens = self.all();
        let hash = TokenHash::of(token);
        // `u64::MAX` means no match. The loop compares every token, so that its duration does not depend on
        // the match.
        let mut found = u64::MAX;
        for (at, known) in (0_u64..).zip(tokens.iter()) {
            let is_it: Choice = known.hash.0.ct_eq(&hash.0);
            found.conditional_assign(&at, is_it);
        }
        let known =
            usize::try_from(found).ok().and_then(|at| tokens.get(at)).ok_or(TokenRefusal::NotKnown)?;
        if known.expires <= now {
            return Err(TokenRefusal::Expired(known.name.clone(), known.expires));
        }
        Ok((known.name.clone(), known.role))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn token(name: &str, role: Role, expires: i64, secret: &str) -> Token {
        let expires = Timestamp::from_millis(expires);
        Token { name: name.parse().unwrap(), role, expires, hash: TokenHash::of(secret) }
    }

    #[test]
    fn a_token_is_known_by_its_hash_until_it_expires() {
        let tokens = ClientTokens::from(vec![
            token("crawler", Role::Write, 1_001, "doppel_one"),
            token("ann", Role::Operate, 1_000, "doppel_two"),
        ]);
        let name = |text: &str| text.parse::<TokenName>().unwrap();
        assert_eq!(tokens.find("doppel_one", NOW), Ok((name("crawler"), Role::Write)));
        assert_eq!(tokens.find("doppel_two", NOW), Err(TokenRefusal::Expired(name("ann"), NOW)));
        for nobodys in ["", "doppel_", "doppel_on", "doppel_one ", "DOPPEL_ONE", &"x".repeat(100_000)] {
            assert_eq!(tokens.find(nobodys, NOW), Err(TokenRefusal::NotKnown), "{nobodys:.20}");
        }
        // The text of the hash is not accepted as a token.
        assert_eq!(tokens.find(&TokenHash::of("doppel_one").to_string(), NOW), Err(TokenRefusal::NotKnown));
        let same = tokens.clone();
        tokens.replace(vec![token("bob", Role::Read, 2_000, "doppel_three")]);
        assert_eq!(same.find("doppel_one", NOW), Err(TokenRefusal::NotKnown));
        assert_eq!(same.find("doppel_three", NOW), Ok((name("bob"), Role::Read)));
    }

    #[test]
    fn new_tokens_differ_and_have_256_bits() {
        let (one, other) = (new_token().unwrap(), new_token().unwrap());
        assert_ne!(one, other);
        let bits = one.strip_prefix(PREFIX).unwrap();
        assert!(bits.len() == 64 && bits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    }

    #[test]
    fn a_hash_parses_as_it_is_displayed() {
        // FIPS 180-2, appendix B.1.
        let hash = TokenHash::of("abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((hash.to_string().as_str(), text.parse()), (text, Ok(hash)));
        for wrong in ["", "ba", &text[1..], &text.replace('b', "g"), &text.replace("ba", "\u{e9}")] {
            assert_eq!(wrong.parse::<TokenHash>(), Err(TokenHashError), "{wrong}");
        }
    }

    #[test]
    fn names_are_short_and_plain() {
        assert_eq!("crawler-1.eu".parse::<TokenName>().unwrap().to_string(), "crawler-1.eu");
        for name in ["", "a b", "a\nb", "\u{fc}", &"x".repeat(101)] {
            assert!(name.parse::<TokenName>().is_err(), "{name}");
        }
    }
}
