//! The heads of ARC records (<https://archive.org/web/researcher/ArcFileFormat.php>), the format of the Internet Archive before
//! WARC. A head is one line:
//!
//! ```text
//! version 1: URL IP-address Archive-date Content-type Archive-length
//! version 2: URL IP-address Archive-date Content-type Result-code Checksum Location Offset Filename Archive-length
//! ```
//!
//! URLs and media types of real files have spaces in them, so the address and the date are looked for: the URL is what is in
//! front of them.

use std::net::IpAddr;
use std::ops::Range;

/// The scheme of the record that describes a file, which is its first.
pub(super) const ABOUT: &[u8] = b"filedesc:";

/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 64 << 10;

/// The parts of a line.
pub(super) struct Parts {
    pub(super) url: Range<usize>,
    pub(super) date: Range<usize>,
    /// What follows the date, without the length.
    pub(super) media: Range<usize>,
    /// The last part of the line, if two or more follow the date.
    pub(super) length: Option<Range<usize>>,
    /// Whether the part before the date is an address.
    has_address: bool,
}

impl Parts {
    pub(super) fn of(line: &[u8]) -> Option<Self> {
        let words: Vec<Range<usize>> = words(line);
        let is_date = |word: &Range<usize>, bytes: &dyn Fn(usize) -> bool| {
            bytes(word.len()) && line[word.clone()].iter().all(u8::is_ascii_digit)
        };
        let is_dated_address = |at: &usize| {
            is_date(&words[*at], &|bytes| (8..=17).contains(&bytes))
                && is_address(&line[words[at - 1].clone()])
        };
        let places = 2..words.len();
        let address = places.clone().find(is_dated_address);
        let at = address.or_else(|| places.clone().find(|at| is_date(&words[*at], &|bytes| bytes == 14)))?;
        let rest = &words[at + 1..];
        let media = rest.first().map_or(line.len()..line.len(), Clone::clone);
        let has_scheme =
            line.first().is_some_and(u8::is_ascii_alphabetic) && line[words[0].clone()].contains(&b':');
        let has_length = rest.len() > 1 && rest.last().is_some_and(|word| is_date(word, &|_| true));
        // A line that is right otherwise is one of a record, whose URL is wrong.
        let is_line = has_scheme || address.is_some() && words[at].len() == 14 && has_length;
        is_line.then(|| Self {
            url: words[0].start..words[at - 2].end,
            date: words[at].clone(),
            media,
            length: rest.last().filter(|_| rest.len() > 1).cloned(),
            has_address: address.is_some(),
        })
    }
}

/// Whether a record begins here: `bytes` begin with a whole line that has an address and a date where a head has them.
pub(super) fn begins_here(bytes: &[u8]) -> bool {
    let bytes = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let line = memchr::memchr(b'\n', bytes).map(|end| &bytes[..end]);
    // Most lines of text are told from a head by their end, which is a digit.
    line.is_some_and(|line| Parts::of(line).is_some_and(|parts| parts.has_address))
}

/// Whether a line begins here that would be the head of a record, were one part of it not damaged: two of a URL, an address and a date are where
/// a head has them, and a length is.
pub(super) fn is_damaged(bytes: &[u8]) -> bool {
    let bytes = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let Some(line) = memchr::memchr(b'\n', bytes).map(|end| &bytes[..end]) else { return false };
    let words = words(line);
    let is_number = |word: &Range<usize>| line[word.clone()].iter().all(u8::is_ascii_digit);
    let has_url = line.starts_with(b"http://") || line.starts_with(b"https://");
    let has_address = words.iter().skip(1).any(|word| is_address(&line[word.clone()]));
    let has_date = words.iter().skip(1).any(|word| word.len() == 14 && is_number(word));
    let has_length = words.last().is_some_and(is_number);
    has_length && u8::from(has_url) + u8::from(has_address) + u8::from(has_date) >= 2
}

/// Whether a file begins like one of ARC.
pub(super) fn is_arc(beginning: &[u8]) -> bool {
    beginning.starts_with(ABOUT) || begins_here(beginning)
}

/// Whether these bytes, which nothing follows, may be the first ones of a line that is cut off.
pub(super) fn is_cut(bytes: &[u8]) -> bool {
    let scheme = bytes.iter().take_while(|b| b.is_ascii_alphanumeric()).count();
    !bytes.contains(&b'\n') && (scheme == bytes.len() || bytes[scheme..].starts_with(b"://"))
}

fn words(line: &[u8]) -> Vec<Range<usize>> {
    let line = line.trim_ascii_end();
    let mut words = Vec::new();
    let mut start = 0;
    for at in memchr::memchr2_iter(b' ', b'\t', line).chain([line.len()]) {
        if at > start {
            words.push(start..at);
        }
        start = at + 1;
    }
    words
}

fn is_address(word: &[u8]) -> bool {
    str::from_utf8(word).is_ok_and(|word| word.parse::<IpAddr>().is_ok())
}
