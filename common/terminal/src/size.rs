//! Sizes in bytes as command-line arguments: `512MB`, `2GiB`.

use std::str::FromStr;

/// Size in bytes, parsed from a number with an optional unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteSize(pub u64);

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match &*text[digits.len()..].to_ascii_lowercase() {
            "" | "b" => Some(1),
            "kb" => Some(1_000),
            "mb" => Some(1_000_000),
            "gb" => Some(1_000_000_000),
            "tb" => Some(1_000_000_000_000),
            "kib" => Some(1 << 10),
            "mib" => Some(1 << 20),
            "gib" => Some(1 << 30),
            "tib" => Some(1 << 40),
            _ => None,
        };
        let digits = digits.trim_end();
        // `parse` also accepts a sign, which a size must not have.
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let size = digits.parse::<u64>().ok().filter(|_| is_number).zip(unit);
        let size = size.and_then(|(number, unit)| number.checked_mul(unit));
        size.map(Self).ok_or_else(|| "a size such as 512MB, 2GiB or a number of bytes is expected".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let size = |text: &str| text.parse::<ByteSize>().ok().map(|size| size.0);
        assert_eq!(size("512MB"), Some(512_000_000));
        assert_eq!((size("2GiB"), size("64 kib"), size("7")), (Some(2 << 30), Some(64 << 10), Some(7)));
        assert_eq!((size("1TB"), size("2TiB")), (Some(1_000_000_000_000), Some(2 << 40)));
        assert_eq!(size("+512MB"), None);
        assert_eq!((size(""), size("MB"), size("5XB"), size("99999999999GB")), (None, None, None, None));
    }
}
