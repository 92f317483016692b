//! Parses and recognises the heads of ARC records (<https://archive.org/web/researcher/ArcFileFormat.php>).
//! ARC is the format of the Internet Archive before WARC. A head is one line:
//!
//! ```text
//! version 1: URL IP-address Archive-date Content-type Archive-length
//! version 2: URL IP-address Archive-date Content-type Result-code Checksum Location Offset Filename Archive-length
//! ```
//!
//! URLs and media types in real files contain spaces. The parser therefore searches for the address and the
//! date, and takes everything before them as the URL.

use std::net::IpAddr;
use std::ops::Range;

/// The URL scheme of the first record of a file, which describes the file itself.
pub(crate) const FILE_DESCRIPTION_SCHEME: &[u8] = b"filedesc:";

/// The longest line that is inspected, in bytes.
const LINE_BYTES_MAX: usize = 64 << 10;

/// The parts of a head line, as byte ranges of the line.
pub(crate) struct ArcLine {
    pub(crate) url: Range<usize>,
    pub(crate) date: Range<usize>,
    /// First word after the date. Empty if the line ends with the date.
    pub(crate) media: Range<usize>,
    /// Last word of the line, if at least two words follow the date.
    pub(crate) length: Option<Range<usize>>,
    /// Whether the word before the date is an IP address.
    has_address: bool,
}

impl ArcLine {
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
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
        // A line that is otherwise complete belongs to a record with an invalid URL.
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

/// Whether `bytes` begin with a record: a whole line with an address and a date in the positions of a head.
pub(crate) fn is_record_start(bytes: &[u8]) -> bool {
    let bytes = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let line = memchr::memchr(b'\n', bytes).map(|end| &bytes[..end]);
    line.is_some_and(|line| ArcLine::parse(line).is_some_and(|parts| parts.has_address))
}

/// Whether `bytes` begin with a head line of which one part is damaged. The line must contain two of a URL,
/// an address and a date in the positions of a head, and end with a length.
pub(crate) fn is_damaged_record_start(bytes: &[u8]) -> bool {
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

/// Whether a file begins like an ARC file.
pub(crate) fn is_arc(beginning: &[u8]) -> bool {
    beginning.starts_with(FILE_DESCRIPTION_SCHEME) || is_record_start(beginning)
}

/// Whether `bytes`, which are the last bytes of the data, may be the beginning of a head line that is cut
/// off.
pub(crate) fn is_partial_record_start(bytes: &[u8]) -> bool {
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
