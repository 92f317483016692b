//! A guarantee that was broken.

use std::fmt;

/// Which invariant, and how it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) invariant: &'static str,
    pub(crate) what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.what)
    }
}

pub(crate) type Checked<T = ()> = Result<T, Violation>;

/// Ends a check in a violation unless the condition holds.
macro_rules! holds {
    ($invariant:expr, $condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::sim::violation::Violation { invariant: $invariant, what: format!($($what)+) });
        }
    };
}
pub(crate) use holds;

/// A store or tier that failed where it must not.
pub(crate) fn failed(what: &'static str) -> impl Fn(Box<dyn std::error::Error>) -> Violation {
    move |error| Violation { invariant: "nothing fails", what: format!("{what}: {error}") }
}
