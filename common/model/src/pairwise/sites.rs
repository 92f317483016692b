//! What a site is, for policies that read it.

/// What a site is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sites {
    /// The registrable domain by the public-suffix list, its private part included: `a.example.co.uk` is of `example.co.uk`, and
    /// `a.github.io` is a site of its own. A host without one, such as an address, is a site of its own.
    Registrable,
    /// Equal host names.
    Host,
    /// The host without its first label, where two labels stay: Henzinger, SIGIR 2006, section 1.
    Parent,
}

impl Sites {
    /// The words for them in the text of a policy.
    pub(super) const WORDS: [&'static str; 3] = ["registrable", "host", "parent"];

    const ALL: [Self; 3] = [Self::Registrable, Self::Host, Self::Parent];

    pub(super) fn word(self) -> &'static str {
        let at = Self::ALL.iter().position(|sites| *sites == self).unwrap_or_default();
        Self::WORDS[at]
    }

    pub(super) fn of_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().position(|known| *known == word).map(|at| Self::ALL[at])
    }
}
