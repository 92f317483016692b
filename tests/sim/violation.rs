//! A violation of an invariant.

use std::fmt;

/// The violated invariant, and what was observed.
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

/// Ends a check with a violation unless the condition holds.
macro_rules! holds {
    ($invariant:expr, $condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::sim::violation::Violation { invariant: $invariant, what: format!($($what)+) });
        }
    };
}
pub(crate) use holds;

/// Converts an error into a violation, for calls that must not fail.
pub(crate) fn failed(what: &'static str) -> impl Fn(Box<dyn std::error::Error>) -> Violation {
    move |error| Violation { invariant: "nothing fails", what: format!("{what}: {error}") }
}
