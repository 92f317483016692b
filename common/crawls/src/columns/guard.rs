//! Turns panics of the Parquet and Arrow decoders into errors. These decoders panic on some damaged files,
//! and one damaged file must not end the process.

use doppel_streams::Reason;

/// Runs a decoder, and returns an error if the decoder panics on damaged data.
pub(crate) fn guarded<T>(decode: impl FnOnce() -> T) -> Result<T, Reason> {
    let decode = std::panic::AssertUnwindSafe(decode);
    std::panic::catch_unwind(decode)
        .map_err(|_| Reason::Columns("the decoder panicked on damaged data".to_owned()))
}
