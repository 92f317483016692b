//! Definitions of a site, for policies that read the site of a page.

/// Which pages form a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sites {
    /// Pages with the same registrable domain, by the public-suffix list with its private part.
    ///
    /// For example, `a.example.co.uk` belongs to `example.co.uk`, and `a.github.io` is a site of its own. A
    /// host without a registrable domain, such as an IP address, is a site of its own.
    Registrable,
    /// Pages with the same host name.
    Host,
    /// Pages with the same host name after its first label is removed, if at least two labels remain. The
    /// definition is from Henzinger, *Finding Near-Duplicate Web Pages*, SIGIR 2006, section 1.
    Parent,
}

impl Sites {
    /// The words for the definitions in the text of a policy, in the order of `ALL`.
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
