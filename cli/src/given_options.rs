//! Finds out which options the user has given. clap fills in defaults, so the values alone do not show
//! whether an option was given.

use clap::ArgMatches;
use clap::parser::ValueSource;

/// Names of the options that the user has given to a command, without dashes.
#[derive(Debug, Clone, Default)]
pub(crate) struct GivenOptions(Vec<String>);

impl GivenOptions {
    /// Collects the given options of the matched command.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let is_given = |id: &str| {
            matches.try_contains_id(id).unwrap_or(false)
                && matches.value_source(id).is_some_and(|source| source != ValueSource::DefaultValue)
        };
        let ids = matches.ids().map(clap::Id::as_str).filter(|id| is_given(id));
        Self(ids.map(|id| id.replace('_', "-")).collect())
    }

    /// Returns the given options among `options`, with dashes, in the order of `options`.
    pub(crate) fn among(&self, options: &[&str]) -> Vec<String> {
        let given = options.iter().filter(|option| self.0.iter().any(|given| given == **option));
        given.map(|option| format!("--{option}")).collect()
    }
}

/// Formats words as a list: `a`, `a and b`, `a, b and c`.
pub(crate) fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    #[test]
    fn defaults_are_not_given() {
        let option = |name: &'static str| Arg::new(name).long(name).default_value("1");
        let command = Command::new("x").args([option("one-more"), option("two"), option("three")]);
        let matches = command.get_matches_from(["x", "--three", "1", "--one-more", "7"]);
        let given = GivenOptions::of(&matches);
        assert_eq!(given.among(&["one-more", "two", "three"]), ["--one-more", "--three"]);
        assert_eq!(listed(&given.among(&["one-more", "two", "three"])), "--one-more and --three");
        assert_eq!(listed(&given.among(&["two"])), "");
    }
}
