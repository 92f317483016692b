//! Markets: named sets of host suffixes whose pages a query prefers. Markets affect answers only, never
//! stored data.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;

use doppel_model::PageUrl;

/// Maximum number of market names in an error message.
const NAMES_SHOWN: usize = 20;

/// The end of a host name: whole labels, in lower case, without a leading dot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct HostSuffix(String);

/// Host suffixes that are preferred together. Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Market(Arc<Vec<HostSuffix>>);

/// All named markets, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Markets(BTreeMap<String, Market>);

/// Why a market or a host suffix is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MarketError {
    /// The text is not a host suffix.
    #[error(
        "a host suffix such as de or co.uk is expected: ASCII letters, digits, dots and hyphens, at most {max}",
        max = HostSuffix::BYTES_MAX
    )]
    Suffix,
    /// A market has no suffix, or too many.
    #[error("a market has 1 to {max} host suffixes, not {0}", max = Market::SUFFIXES_MAX)]
    Suffixes(usize),
    /// The name of a market is invalid.
    #[error(
        "the name of a market is a letter and up to {rest} letters, digits, hyphens and underscores, lower case",
        rest = Markets::NAME_BYTES_MAX - 1
    )]
    Name,
    /// Two markets have the same name.
    #[error("two markets have the name {0}")]
    Repeated(String),
    /// There are too many markets.
    #[error("at most {max} markets are possible", max = Markets::MAX)]
    Markets,
    /// A query names neither a market nor a host suffix.
    #[error("neither a market ({0}) nor a host suffix such as de or co.uk")]
    Unknown(String),
}

impl HostSuffix {
    /// Maximum length of a host name in bytes (RFC 1035).
    pub const BYTES_MAX: usize = 253;

    /// Whether `host` equals the suffix, or ends with a dot and the suffix.
    fn matches(&self, host: &str) -> bool {
        host.strip_suffix(self.0.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }
}

impl FromStr for HostSuffix {
    type Err = MarketError;

    /// Parses a suffix. A leading dot is ignored.
    fn from_str(text: &str) -> Result<Self, MarketError> {
        let suffix = text.strip_prefix('.').unwrap_or(text);
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        let is_label = |label: &str| !label.is_empty() && label.bytes().all(is_plain);
        if suffix.len() > Self::BYTES_MAX || !suffix.split('.').all(is_label) {
            return Err(MarketError::Suffix);
        }
        Ok(Self(suffix.to_ascii_lowercase()))
    }
}

impl fmt::Display for HostSuffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Market {
    /// Maximum number of suffixes in a market.
    pub const SUFFIXES_MAX: usize = 64;
    /// Groups with this number of members or more keep their usual winner in every market.
    pub const MEMBERS_MAX: usize = 10_000;
    /// Maximum number of comparisons to check that the preferred page may replace the winner. If more are
    /// necessary, the winner stays.
    pub const COMPARISONS_MAX: usize = 64;

    /// Creates the market of all hosts with any of these suffixes.
    ///
    /// # Errors
    /// If there is no suffix, or there are more than [`Self::SUFFIXES_MAX`].
    pub fn new(suffixes: Vec<HostSuffix>) -> Result<Self, MarketError> {
        if !(1..=Self::SUFFIXES_MAX).contains(&suffixes.len()) {
            return Err(MarketError::Suffixes(suffixes.len()));
        }
        Ok(Self(Arc::new(suffixes)))
    }

    /// Whether the host of the page has a suffix of the market.
    #[must_use]
    pub fn has(&self, page: &PageUrl) -> bool {
        let host = page.host();
        self.0.iter().any(|suffix| suffix.matches(&host))
    }

    /// Returns the suffixes, in the order in which they were given.
    #[must_use]
    pub fn suffixes(&self) -> &[HostSuffix] {
        &self.0
    }
}

impl Markets {
    /// Maximum number of markets.
    pub const MAX: usize = 256;
    /// Maximum length of a name in bytes.
    pub const NAME_BYTES_MAX: usize = 64;

    /// Adds a market under a name.
    ///
    /// # Errors
    /// If the name is invalid or already used, or there are already [`Self::MAX`] markets.
    pub fn add(&mut self, name: &str, market: Market) -> Result<(), MarketError> {
        let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
        let begins_well = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
        if !begins_well || name.len() > Self::NAME_BYTES_MAX || !name.bytes().all(is_plain) {
            return Err(MarketError::Name);
        }
        if self.0.contains_key(name) {
            return Err(MarketError::Repeated(name.to_owned()));
        }
        if self.0.len() == Self::MAX {
            return Err(MarketError::Markets);
        }
        self.0.insert(name.to_owned(), market);
        Ok(())
    }

    /// Finds the market that a query names: the market with this name, ignoring case, or else the market of
    /// this single host suffix. A name never contains a dot, so `.de` is always a suffix.
    ///
    /// # Errors
    /// If the text is neither a known name nor a host suffix.
    pub fn find(&self, query: &str) -> Result<Market, MarketError> {
        if query.len() <= Self::NAME_BYTES_MAX
            && let Some(market) = self.0.get(&query.to_ascii_lowercase())
        {
            return Ok(market.clone());
        }
        let suffix = query.parse().map_err(|_| MarketError::Unknown(self.known()))?;
        Market::new(vec![suffix])
    }

    /// Returns the markets with their names, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Market)> {
        self.0.iter().map(|(name, market)| (name.as_str(), market))
    }

    /// Returns a list of market names for an error message.
    fn known(&self) -> String {
        let mut names: Vec<&str> = self.0.keys().map(String::as_str).take(NAMES_SHOWN).collect();
        if names.is_empty() {
            return "none has a name".to_owned();
        }
        let more = self.0.len() - names.len();
        let rest = format!("{more} more");
        if more > 0 {
            names.push(&rest);
        }
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn market(suffixes: &[&str]) -> Market {
        Market::new(suffixes.iter().map(|suffix| suffix.parse().unwrap()).collect()).unwrap()
    }

    fn has(market: &Market, url: &str) -> bool {
        market.has(&PageUrl::parse(url).unwrap())
    }

    #[test]
    fn a_suffix_is_whole_labels() {
        assert!(has(&market(&["de"]), "http://www.a.de:80/") && has(&market(&[".a.DE"]), "http://A.de/"));
        assert!(!has(&market(&["de"]), "http://a.xde/") && !has(&market(&["de"]), "file:///a.de"));
        let three = market(&["de", "at", "co.uk"]);
        assert!(has(&three, "http://b.at/") && has(&three, "http://b.co.uk/"));
        assert!(!has(&three, "http://b.uk/") && !has(&three, "http://de.com/at"));
    }

    #[test]
    fn invalid_suffixes_are_refused() {
        let long = "a.".repeat(127) + "de";
        for bad in ["", ".", "..de", "de.", "a..de", "d e", "d/e", "дe", "a_b.de", long.as_str()] {
            assert_eq!(bad.parse::<HostSuffix>(), Err(MarketError::Suffix), "{bad}");
        }
        let longest = "a.".repeat(126) + "d";
        assert_eq!(longest.parse::<HostSuffix>().unwrap().to_string(), longest);
    }

    #[test]
    fn the_number_and_the_names_of_markets_have_limits() {
        let suffix: HostSuffix = "de".parse().unwrap();
        for count in [0, Market::SUFFIXES_MAX + 1] {
            assert_eq!(Market::new(vec![suffix.clone(); count]), Err(MarketError::Suffixes(count)));
        }
        let (mut markets, german) = (Markets::default(), market(&["de"]));
        let long = "a".repeat(Markets::NAME_BYTES_MAX + 1);
        for bad in ["", "German", "1st", "-a", "a.b", "a b", "ä", long.as_str()] {
            assert_eq!(markets.add(bad, german.clone()), Err(MarketError::Name), "{bad}");
        }
        for n in 0..Markets::MAX {
            markets.add(&format!("a_{n}-b"), german.clone()).unwrap();
        }
        assert_eq!(markets.add("a_0-b", german.clone()), Err(MarketError::Repeated("a_0-b".to_owned())));
        assert_eq!(markets.add("one-more", german), Err(MarketError::Markets));
        let unknown = markets.find("a b").unwrap_err().to_string();
        assert!(unknown.contains("(a_0-b, a_1-b, ") && unknown.contains(", 236 more)"), "{unknown}");
    }

    #[test]
    fn a_market_name_takes_precedence_over_a_suffix() {
        let mut markets = Markets::default();
        markets.add("german", market(&["de", "at"])).unwrap();
        markets.add("com", market(&["com", "net"])).unwrap();
        assert_eq!(markets.find("German").unwrap(), market(&["de", "at"]));
        assert_eq!(markets.find("com").unwrap(), market(&["com", "net"]));
        assert_eq!(markets.find(".com").unwrap(), market(&["com"]));
        assert_eq!(markets.find("FR").unwrap(), market(&["fr"]));
        let unknown = markets.find("south_german").unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "neither a market (com, german) nor a host suffix such as de or co.uk"
        );
        assert!(Markets::default().find("").unwrap_err().to_string().contains("none has a name"));
    }
}
