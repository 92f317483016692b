//! Recognises files that store records by columns by their first bytes.

/// The first bytes of an Arrow file.
pub(crate) const ARROW_FILE: &[u8] = b"ARROW1";

/// Whether the first bytes of a file are those of a Parquet file.
pub(crate) fn is_parquet(beginning: &[u8]) -> bool {
    beginning.starts_with(b"PAR1") || beginning.starts_with(b"PARE")
}

/// Whether the first bytes of a file are those of an Arrow file.
pub(crate) fn is_arrow_file(beginning: &[u8]) -> bool {
    beginning.starts_with(ARROW_FILE)
}

/// Whether the first bytes of a file are those of an Arrow stream: the continuation marker, then a length
/// that is divisible by 8.
pub(crate) fn is_arrow_stream(beginning: &[u8]) -> bool {
    matches!(beginning, [0xff, 0xff, 0xff, 0xff, low, _, _, high, ..] if low % 8 == 0 && *high < 4)
}
