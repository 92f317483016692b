//! The language of a text, told from its beginning.

/// The ISO 639-3 code, if it can be told reliably. Shorter texts than about 20 letters never can.
pub(super) fn language(sample: &str) -> Option<Box<str>> {
    let info = whatlang::detect(sample)?;
    info.is_reliable().then(|| info.lang().code().into())
}
