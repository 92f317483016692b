//! One kind of request.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The version of the protocol. A node answers callers of its own version alone.
pub const VERSION: u32 = 9;

/// A body that is small, in bytes.
const SMALL: usize = 1 << 20;

/// One kind of request: what goes there, what comes back, and within which limits.
pub trait Call: 'static {
    /// Names it in the path.
    const NAME: &'static str;
    /// The maximum size of the request, in bytes.
    const REQUEST_BYTES_MAX: usize = SMALL;
    /// The maximum size of the answer, in bytes.
    const ANSWER_BYTES_MAX: usize = SMALL;
    /// The caller waits no longer, all attempts together.
    const DEADLINE: Duration = Duration::from_secs(30);
    /// Whether it may be carried out twice. If so, it is made again when the connection breaks off.
    const REPEATABLE: bool = true;
    /// What is asked for.
    type Request: Serialize + DeserializeOwned + Send + 'static;
    /// What comes of it.
    type Answer: Serialize + DeserializeOwned + Send + 'static;
}

/// Declares calls: `Name = "path": Request => Answer;`, and constants in braces where they differ from those of [`Call`].
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $path:literal: $request:ty => $answer:ty
        $({ $($constant:ident: $type:ty = $value:expr),* $(,)? })?;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        impl $crate::call::Call for $name {
            const NAME: &'static str = $path;
            $($(const $constant: $type = $value;)*)?
            type Request = $request;
            type Answer = $answer;
        }
    )*};
}
pub(crate) use calls;

/// A closure that answers with a clone of its own of an `Arc`: `with!(node, |node, request| ...)`.
macro_rules! with {
    ($of:ident, |$name:ident, $request:pat_param| $answer:expr) => {{
        let $name = std::sync::Arc::clone($of);
        move |$request| $answer
    }};
}
pub(crate) use with;
