//! Decoders that may panic.

use crate::error::Reason;

/// Runs a decoder that may panic where data are damaged in a way that it does not expect.
pub(crate) fn guarded<T>(decode: impl FnOnce() -> T) -> Result<T, Reason> {
    let decode = std::panic::AssertUnwindSafe(decode);
    std::panic::catch_unwind(decode).map_err(|_| Reason::Columns("the decoder failed".to_owned()))
}
