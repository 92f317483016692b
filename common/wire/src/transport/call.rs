//! The definition of a kind of call.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Version of the protocol. A node answers only callers of its own version.
pub const VERSION: u32 = 9;

/// Size limit of a small body, in bytes.
const SMALL: usize = 1 << 20;

/// A kind of call: its argument, its result, and its limits.
pub trait Call: 'static {
    /// Name of the call, which is part of the path.
    const NAME: &'static str;
    /// Maximum size of the request in bytes.
    const REQUEST_BYTES_MAX: usize = SMALL;
    /// Maximum size of the answer in bytes.
    const ANSWER_BYTES_MAX: usize = SMALL;
    /// Maximum time that the caller waits, over all attempts.
    const DEADLINE: Duration = Duration::from_secs(30);
    /// Whether the call is idempotent. If it is, the caller retries it when the connection breaks off.
    const REPEATABLE: bool = true;
    /// Type of the argument.
    type Request: Serialize + DeserializeOwned + Send + 'static;
    /// Type of the result.
    type Answer: Serialize + DeserializeOwned + Send + 'static;
}

/// Name and limits of a kind of call. Code that is the same for all calls takes this value instead of a type
/// parameter, so it is compiled once and not once for each call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallKind {
    /// [`Call::NAME`].
    pub(crate) name: &'static str,
    /// [`Call::REQUEST_BYTES_MAX`].
    pub(crate) request_bytes_max: usize,
    /// [`Call::ANSWER_BYTES_MAX`].
    pub(crate) answer_bytes_max: usize,
    /// [`Call::DEADLINE`].
    pub(crate) deadline: Duration,
    /// [`Call::REPEATABLE`].
    pub(crate) repeatable: bool,
}

impl CallKind {
    /// The kind of the call `C`.
    pub(crate) fn of<C: Call>() -> Self {
        Self {
            name: C::NAME,
            request_bytes_max: C::REQUEST_BYTES_MAX,
            answer_bytes_max: C::ANSWER_BYTES_MAX,
            deadline: C::DEADLINE,
            repeatable: C::REPEATABLE,
        }
    }
}

/// Declares calls: `Name = "path": Request => Answer;`. Braces contain constants that differ from the
/// defaults of [`Call`].
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $path:literal: $request:ty => $answer:ty
        $({ $($constant:ident: $type:ty = $value:expr),* $(,)? })?;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        impl $crate::transport::call::Call for $name {
            const NAME: &'static str = $path;
            $($(const $constant: $type = $value;)*)?
            type Request = $request;
            type Answer = $answer;
        }
    )*};
}
pub(crate) use calls;

/// Creates a closure that owns a clone of an `Arc`: `with!(node, |node, request| ...)`.
macro_rules! with {
    ($of:ident, |$name:ident, $request:pat_param| $answer:expr) => {{
        let $name = std::sync::Arc::clone($of);
        move |$request| $answer
    }};
}
pub(crate) use with;
