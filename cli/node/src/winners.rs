//! The file of `--winners`: the rules by which winners are elected, and the named markets.
//!
//! The file is TOML of at most [`BYTES_MAX`] bytes, and all its fields are optional. Errors name the line of
//! an unknown, repeated or invalid field.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use doppel_contract::{Market, Markets, WinnerRule};
use doppel_protocol::WinnerOrder;
use doppel_terminal::toml_file::{self, TomlFault, TomlFileError};
use serde::Deserialize;
use toml::Spanned;

/// Largest accepted file, in bytes: enough for the largest number of markets.
const BYTES_MAX: u64 = 256 << 10;

/// Settings in a file of `--winners`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WinnerSettings {
    /// Order of the rules, if the file has one.
    pub order: Option<WinnerOrder>,
    /// Markets with their names.
    pub markets: Markets,
}

/// Contents of the file, as TOML.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WinnersToml {
    rules: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    markets: BTreeMap<Spanned<String>, Spanned<Vec<Spanned<String>>>>,
}

impl WinnerSettings {
    /// Reads a file of rules and markets.
    ///
    /// # Errors
    /// If the file cannot be read or used; the message names file, line and reason.
    pub fn read(path: &Path) -> Result<Self, TomlFileError> {
        toml_file::read(path, BYTES_MAX, Self::parse)
    }

    fn parse(text: &str) -> Result<Self, TomlFault> {
        let WinnersToml { rules, markets } = toml_file::parse(text)?;
        let mut winners = Self { order: rules.as_deref().map(order).transpose()?, ..Self::default() };
        for (name, suffixes) in &markets {
            let suffixes_span = suffixes.span();
            let suffixes: Result<Vec<_>, TomlFault> =
                suffixes.get_ref().iter().map(toml_file::value).collect();
            let market = Market::new(suffixes?).map_err(fault(suffixes_span))?;
            winners.markets.add(name.get_ref(), market).map_err(fault(name.span()))?;
        }
        Ok(winners)
    }
}

fn fault<E: ToString>(span: Range<usize>) -> impl Fn(E) -> TomlFault {
    move |error| (span.clone(), error.to_string())
}

fn order(names: &[Spanned<String>]) -> Result<WinnerOrder, TomlFault> {
    let rules = names.iter().map(|name| {
        name.get_ref().parse().map_err(|_| {
            let known: Vec<String> = WinnerOrder::RULES.iter().map(WinnerRule::to_string).collect();
            (name.span(), format!("{:?} is no rule; the rules are {}", name.get_ref(), known.join(", ")))
        })
    });
    let rules = rules.collect::<Result<Vec<WinnerRule>, TomlFault>>()?;
    WinnerOrder::new(&rules).map_err(|error| (names[error.at].span(), error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Result of reading a file with this text. The error message is without the name of the file.
    fn read(text: impl AsRef<[u8]>) -> Result<WinnerSettings, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        WinnerSettings::read(file.path()).map_err(|error| {
            let message = error.to_string();
            message.strip_prefix(&file.path().display().to_string()).unwrap_or(&message).to_owned()
        })
    }

    #[test]
    fn the_example_is_the_default() {
        let example = WinnerSettings::parse(include_str!("../../../deploy/winners.toml")).unwrap();
        assert_eq!(example.order, Some(WinnerOrder::DEFAULT));
        let names: Vec<&str> = example.markets.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["british", "german"]);
        assert_eq!(example.markets.find("german").unwrap().suffixes().len(), 3);
    }

    #[test]
    fn the_documented_file_can_be_read() {
        let documented = include_str!("../../../docs/reference/winner-rules.md")
            .split("```")
            .find_map(|part| part.strip_prefix("toml\n"));
        let winners = WinnerSettings::parse(documented.unwrap()).unwrap();
        assert_eq!(winners.order.unwrap().rules().next(), Some(WinnerRule::Https));
        assert!(winners.markets.find("german").is_ok());
    }

    #[test]
    fn everything_is_optional() {
        assert_eq!(read("").unwrap(), WinnerSettings::default());
        let none = read("rules = []").unwrap();
        assert_eq!(none.order, Some(WinnerOrder::new(&[]).unwrap()), "the URL alone");
        let some = read("rules = ['https', 'url']\n[markets]\nnordic = ['se', '.NO']").unwrap();
        assert_eq!(some.order, Some(WinnerOrder::new(&[WinnerRule::Https]).unwrap()));
        let nordic: Vec<String> =
            some.markets.find("nordic").unwrap().suffixes().iter().map(ToString::to_string).collect();
        assert_eq!(nordic, ["se", "no"]);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, line, says) in [
            ("rules = [", 1, "array"),
            ("\nrule = []", 2, "unknown field `rule`"),
            ("rules = 'https'", 1, "expected a sequence"),
            (
                "rules = [\n  'https',\n  'beauty',\n]",
                3,
                "\"beauty\" is no rule; the rules are popularity, day_first_seen",
            ),
            ("rules = [\n  'https',\n  'popularity',\n  'https']", 4, "https is named twice"),
            ("rules = ['url',\n'https']", 2, "https comes after url"),
            ("rules = ['market']", 1, "market is not named here"),
            ("rules = [1]", 1, "expected a string"),
            ("rules = []\nrules = []", 2, "duplicate key"),
            ("[markets]\na = ['de']\nGerman = ['de']", 3, "the name of a market is"),
            ("[markets]\na = ['de',\n'd e']", 3, "a host suffix such as de"),
            ("[markets]\n\na = []", 3, "1 to 64 host suffixes, not 0"),
            ("[markets]\na = 'de'", 2, "expected a sequence"),
            ("[markets.a]\nde = 1", 1, "expected a sequence"),
            ("\n[market]", 2, "unknown field `market`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(
                error.starts_with(&format!(", line {line}: ")) && error.contains(says),
                "{text:?}: {error}"
            );
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        let latin1 = read(b"rules = []\n# \xe4").unwrap_err();
        assert_eq!(latin1, ", line 2: is not UTF-8");
    }

    #[test]
    fn what_is_read_is_bounded() {
        let markets = |count| -> String {
            let line = |n| format!("m{n} = ['de']\n");
            "[markets]\n".to_owned() + &(0..count).map(line).collect::<String>()
        };
        assert_eq!(read(markets(Markets::MAX)).unwrap().markets.iter().count(), Markets::MAX);
        assert!(read(markets(Markets::MAX + 1)).unwrap_err().contains("at most 256 markets"));
        let suffixes = "'de', ".repeat(Market::SUFFIXES_MAX + 1);
        assert!(read(format!("[markets]\na = [{suffixes}]")).unwrap_err().contains("not 65"));
        let deep = format!("rules = {}", "[".repeat(200_000));
        assert!(read(deep).unwrap_err().starts_with(", line 1: "));
        let long = "#".repeat(BYTES_MAX as usize + 1);
        assert_eq!(read(long).unwrap_err(), " has more than 262144 bytes");
        let absent = WinnerSettings::read(Path::new("no/such/file.toml")).unwrap_err();
        assert_eq!(absent.to_string(), "cannot read no/such/file.toml");
    }
}
