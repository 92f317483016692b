//! The text form of policies: the name, a colon, and parameters as `key=value`, separated by commas.
//!
//! Invariant: the text that a policy is written as parses to that policy. Collections store this text, so the
//! text of a policy must not change when a new parameter is added.

use std::fmt;
use std::str::FromStr;

use super::{
    ComparedTokens, Policy, Sites, copies, imatch, multi_simhash, overlap, projection, simhash, supershingle,
};
use crate::Tau;
use crate::signature::{SHINGLE_TOKENS, SHINGLE_TOKENS_RANGE};

/// The text is not a valid policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No policy has this name.
    #[error(
        "{0:?} is not a policy{suggestion}; there are {list}",
        suggestion = suggestion(.0, &names()),
        list = names().join(", ")
    )]
    Name(String),
    /// The policy has no parameter with this name.
    #[error(
        "the policy {policy} has no parameter {key:?}{}; it has {}{}",
        suggestion(key, has),
        has.join(", "),
        tokens_hint(key)
    )]
    Key {
        /// The name of the policy.
        policy: &'static str,
        /// The name that no parameter has.
        key: String,
        /// The names of the policy's parameters.
        has: Vec<&'static str>,
    },
    /// No parameter follows a colon or a comma.
    #[error(
        "{0:?}: a parameter is missing after a colon or a comma; write parameters as in \
         by-site:across=372,site=host"
    )]
    Empty(String),
    /// The text has the same parameter twice.
    #[error("the parameter {0} is given twice")]
    Twice(&'static str),
    /// The parameter cannot have this value.
    #[error("{key} of the policy {policy} cannot be {value:?}; it must be {expected}")]
    Value {
        /// The name of the policy.
        policy: &'static str,
        /// The name of the parameter.
        key: &'static str,
        /// The allowed values, in words.
        expected: String,
        /// The value in the text.
        value: String,
    },
}

/// A parameter of a policy with its value and its allowed values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parameter {
    /// A number from `least` to `most`.
    Number {
        key: &'static str,
        value: u32,
        least: u32,
        most: u32,
    },
    Tau {
        key: &'static str,
        tau: Tau,
    },
    Sites(Sites),
    Tokens {
        tokens: ComparedTokens,
        choices: &'static [ComparedTokens],
    },
}

/// The choices of policies that compare words or source tokens.
const WORDS_OR_SOURCE: &[ComparedTokens] = &[ComparedTokens::Words, ComparedTokens::Source];

/// Tells a user who asks for `tokens` which policies compare code. Empty for other parameters.
fn tokens_hint(key: &str) -> &'static str {
    if key == "tokens" { "; only jaccard and supershingle compare code (tokens=code)" } else { "" }
}

/// All policies with their default parameters.
const DEFAULTS: [Policy; 11] = [
    Policy::jaccard(Tau::DEFAULT),
    Policy::Supershingle { equal: 2, words: supershingle::SHINGLE_TOKENS, tokens: ComparedTokens::Words },
    Policy::Projection { agreeing: 372, tokens: ComparedTokens::Words },
    Policy::Combined { equal: 2, agreeing: 355, tokens: ComparedTokens::Words },
    Policy::BySite {
        across: 372,
        equal: 2,
        agreeing: 355,
        site: Sites::Registrable,
        tokens: ComparedTokens::Words,
    },
    Policy::Simhash { differing: 3 },
    Policy::Imatch { lexicons: 10, idf_from: 20, idf_to: 85 },
    Policy::MultiSimhash { words: 2, lexicons: 5, below: 3 },
    Policy::Content { tau: Tau::DEFAULT },
    Policy::Copies { text: copies::TEXT, within: copies::WITHIN, across: copies::ACROSS, site: Sites::Host },
    Policy::Overlap { lines: 4, shared: overlap::shared_by_default(4) },
];

fn names() -> Vec<&'static str> {
    DEFAULTS.iter().map(Policy::name).collect()
}

/// Suggests the name with the smallest edit distance to `unknown`. Empty if that distance is more than a
/// third of the longer name.
fn suggestion(unknown: &str, names: &[&str]) -> String {
    // All names are shorter than 32 characters, so the rest of a longer text need not be compared.
    let unknown: String = unknown.chars().take(32).flat_map(char::to_lowercase).collect();
    let near = names.iter().filter_map(|name| {
        let edits = strsim::osa_distance(&unknown, name);
        (3 * edits <= unknown.chars().count().max(name.len())).then_some((edits, name))
    });
    near.min_by_key(|(edits, _)| *edits)
        .map_or_else(String::new, |(_, name)| format!(" (did you mean {name}?)"))
}

impl Parameter {
    fn key(self) -> &'static str {
        match self {
            Self::Number { key, .. } | Self::Tau { key, .. } => key,
            Self::Sites(_) => "site",
            Self::Tokens { .. } => "tokens",
        }
    }

    /// This parameter with the value in `text`.
    fn parse(self, policy: &'static str, text: &str) -> Result<Self, PolicyError> {
        let wrong = |expected: String| PolicyError::Value {
            policy,
            key: self.key(),
            expected,
            value: text.to_owned(),
        };
        match self {
            Self::Number { key, least, most, .. } => {
                // Only digits are allowed, but `parse` would accept a sign, too.
                let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
                let value = text.parse().ok().filter(|value| is_number && (least..=most).contains(value));
                let value = value.ok_or_else(|| wrong(format!("a number from {least} to {most}")))?;
                Ok(Self::Number { key, value, least, most })
            }
            Self::Tau { key, .. } => {
                let tau = text
                    .parse()
                    .map_err(|_| wrong("a decimal from 0.3 to 0.9999, of at most four places".to_owned()));
                tau.map(|tau| Self::Tau { key, tau })
            }
            Self::Sites(_) => {
                let sites = Sites::of_word(text);
                sites.map(Self::Sites).ok_or_else(|| wrong(format!("one of {}", Sites::WORDS.join(", "))))
            }
            Self::Tokens { choices, .. } => {
                let hint = if text == ComparedTokens::Code.word() { tokens_hint("tokens") } else { "" };
                ComparedTokens::of_word(text, choices)
                    .map(|tokens| Self::Tokens { tokens, choices })
                    .ok_or_else(|| wrong(format!("one of {}{hint}", ComparedTokens::words(choices))))
            }
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { key, value, .. } => write!(f, "{key}={value}"),
            Self::Tau { key, tau } => write!(f, "{key}={tau}"),
            Self::Sites(sites) => write!(f, "site={}", sites.word()),
            Self::Tokens { tokens, .. } => write!(f, "tokens={}", tokens.word()),
        }
    }
}

impl Policy {
    /// Iterates over all policies, with their default parameters.
    pub fn all() -> impl Iterator<Item = Self> {
        DEFAULTS.into_iter()
    }

    /// The name of the policy, without parameters.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Jaccard { .. } => "jaccard",
            Self::Supershingle { .. } => "supershingle",
            Self::Projection { .. } => "projection",
            Self::Combined { .. } => "combined",
            Self::BySite { .. } => "by-site",
            Self::Simhash { .. } => "simhash",
            Self::Imatch { .. } => "imatch",
            Self::MultiSimhash { .. } => "multi-simhash",
            Self::Content { .. } => "content",
            Self::Copies { .. } => "copies",
            Self::Overlap { .. } => "overlap",
        }
    }

    /// The parameters of this policy, in the order in which they are written.
    fn parameters(self) -> Vec<Parameter> {
        let threshold = |key, tau| Parameter::Tau { key, tau };
        let number = |key, value, least, most| Parameter::Number { key, value, least, most };
        let equal = |value| number("equal", value, 1, supershingle::SUPERSHINGLES as u32);
        // If supershingles propose the candidates, every number of bits is allowed.
        let agreeing = |value| number("agreeing", value, 0, projection::BITS);
        // If the projection itself proposes the candidates, its keys set a minimum.
        let searched_bits = |key, value| number(key, value, projection::AGREEING_MIN, projection::BITS);
        let words_or_source = |tokens| Parameter::Tokens { tokens, choices: WORDS_OR_SOURCE };
        match self {
            Self::Jaccard { tau, words, tokens } => {
                let (least, most) = (*SHINGLE_TOKENS_RANGE.start(), *SHINGLE_TOKENS_RANGE.end());
                let tokens =
                    Parameter::Tokens { tokens, choices: &[ComparedTokens::Words, ComparedTokens::Code] };
                vec![threshold("tau", tau), number("words", words, least, most), tokens]
            }
            Self::Content { tau } => vec![threshold("tau", tau)],
            Self::Supershingle { equal: supershingles, words, tokens } => {
                let words = number("words", words, 1, supershingle::SHINGLE_TOKENS_MAX);
                let choices = &[ComparedTokens::Words, ComparedTokens::Source, ComparedTokens::Code];
                vec![equal(supershingles), words, Parameter::Tokens { tokens, choices }]
            }
            Self::Projection { agreeing: bits, tokens } => {
                vec![searched_bits("agreeing", bits), words_or_source(tokens)]
            }
            Self::Combined { equal: supershingles, agreeing: bits, tokens } => {
                vec![equal(supershingles), agreeing(bits), words_or_source(tokens)]
            }
            Self::BySite { across, equal: supershingles, agreeing: bits, site, tokens } => vec![
                searched_bits("across", across),
                equal(supershingles),
                agreeing(bits),
                Parameter::Sites(site),
                words_or_source(tokens),
            ],
            Self::Simhash { differing } => vec![number("differing", differing, 0, simhash::DIFFERING_MAX)],
            Self::Imatch { lexicons, idf_from, idf_to } => vec![
                number("lexicons", lexicons, 0, imatch::LEXICONS_MAX),
                number("idf-from", idf_from, 0, 49),
                number("idf-to", idf_to, 50, 100),
            ],
            Self::MultiSimhash { words, lexicons, below } => vec![
                number("words", words, 1, multi_simhash::WORDS_MAX),
                number("lexicons", lexicons, 1, multi_simhash::LEXICONS_MAX),
                number("below", below, 1, multi_simhash::BELOW_MAX),
            ],
            Self::Copies { text, within, across, site } => vec![
                threshold("text", text),
                threshold("within", within),
                threshold("across", across),
                Parameter::Sites(site),
            ],
            Self::Overlap { lines, shared } => vec![
                number("lines", lines, 1, overlap::LINES_MAX),
                number("shared", shared, 1, overlap::SHARED_MAX),
            ],
        }
    }

    /// This policy with another value of one parameter. The policy must have the parameter.
    fn with_parameter(mut self, parameter: Parameter) -> Self {
        match (&mut self, parameter) {
            (Self::Jaccard { tau, .. } | Self::Content { tau }, Parameter::Tau { tau: to, .. }) => *tau = to,
            (Self::Jaccard { words, .. }, Parameter::Number { value, .. }) => *words = value,
            (Self::Copies { text, .. }, Parameter::Tau { key: "text", tau }) => *text = tau,
            (Self::Copies { within, .. }, Parameter::Tau { key: "within", tau }) => *within = tau,
            (Self::Copies { across, .. }, Parameter::Tau { tau, .. }) => *across = tau,
            (
                Self::Jaccard { tokens, .. }
                | Self::Supershingle { tokens, .. }
                | Self::Projection { tokens, .. }
                | Self::Combined { tokens, .. }
                | Self::BySite { tokens, .. },
                Parameter::Tokens { tokens: to, .. },
            ) => *tokens = to,
            (Self::Supershingle { equal, words, .. }, Parameter::Number { key, value, .. }) => {
                *if key == "equal" { equal } else { words } = value;
            }
            (Self::Projection { agreeing, .. }, Parameter::Number { value, .. }) => *agreeing = value,
            (
                Self::Combined { equal, agreeing, .. } | Self::BySite { equal, agreeing, .. },
                Parameter::Number { key: key @ ("equal" | "agreeing"), value, .. },
            ) => *if key == "equal" { equal } else { agreeing } = value,
            (Self::BySite { across, .. }, Parameter::Number { value, .. }) => *across = value,
            (Self::BySite { site, .. } | Self::Copies { site, .. }, Parameter::Sites(to)) => *site = to,
            (Self::Simhash { differing }, Parameter::Number { value, .. }) => *differing = value,
            (Self::Imatch { lexicons, idf_from, idf_to }, Parameter::Number { key, value, .. }) => {
                match key {
                    "lexicons" => *lexicons = value,
                    "idf-from" => *idf_from = value,
                    _ => *idf_to = value,
                }
            }
            (Self::MultiSimhash { words, lexicons, below }, Parameter::Number { key, value, .. }) => {
                match key {
                    "words" => *words = value,
                    "lexicons" => *lexicons = value,
                    _ => *below = value,
                }
            }
            (Self::Overlap { lines, .. }, Parameter::Number { key: "lines", value, .. }) => *lines = value,
            (Self::Overlap { shared, .. }, Parameter::Number { value, .. }) => *shared = value,
            _ => {}
        }
        self
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let (name, parameters) =
            text.split_once(':').map_or((text, None), |(name, parameters)| (name, Some(parameters)));
        let mut policy = Self::all()
            .find(|policy| policy.name() == name)
            .ok_or_else(|| PolicyError::Name(name.to_owned()))?;
        let mut set_keys = Vec::new();
        for assignment in parameters.into_iter().flat_map(|parameters| parameters.split(',')) {
            if assignment.is_empty() {
                return Err(PolicyError::Empty(text.to_owned()));
            }
            let (key, value) = assignment.split_once('=').unwrap_or((assignment, ""));
            let parameters = policy.parameters();
            let parameter = parameters.iter().find(|parameter| parameter.key() == key).copied();
            let parameter = parameter.ok_or_else(|| PolicyError::Key {
                policy: policy.name(),
                key: key.to_owned(),
                has: parameters.iter().map(|parameter| parameter.key()).collect(),
            })?;
            if set_keys.contains(&parameter.key()) {
                return Err(PolicyError::Twice(parameter.key()));
            }
            set_keys.push(parameter.key());
            policy = policy.with_parameter(parameter.parse(policy.name(), value)?);
        }
        // The default number of shared chunks depends on the length of a chunk.
        if let Self::Overlap { lines, shared } = &mut policy
            && !set_keys.contains(&"shared")
        {
            *shared = overlap::shared_by_default(*lines);
        }
        Ok(policy)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        // Older versions had no `tokens`, and no `words` of `jaccard`. The text of a policy with their
        // default values stays as those versions wrote it.
        let is_jaccard = matches!(self, Self::Jaccard { .. });
        let is_written = |parameter: &Parameter| match parameter {
            Parameter::Tokens { tokens, .. } => *tokens != ComparedTokens::Words,
            Parameter::Number { key: "words", value, .. } => !is_jaccard || *value != SHINGLE_TOKENS as u32,
            _ => true,
        };
        for (at, parameter) in self.parameters().into_iter().filter(is_written).enumerate() {
            write!(f, "{}{parameter}", if at == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl TryFrom<String> for Policy {
    type Error = PolicyError;

    fn try_from(text: String) -> Result<Self, PolicyError> {
        text.parse()
    }
}

impl From<Policy> for String {
    fn from(policy: Policy) -> Self {
        policy.to_string()
    }
}

#[cfg(test)]
mod tests;
