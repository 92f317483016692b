//! Reasons for which a valid record or file gives no page.
//!
//! A skip is not an error: readers return a [`SkipReason`] item, and callers count the items by reason.
//! Damaged or invalid input is an [`InputError`](crate::InputError) instead.

use std::fmt;

/// Why a valid record or file gives no page. Skipped items are counted by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkipReason {
    /// An HTTP status that says nothing about the content of the page.
    Status(u16),
    /// The content is neither HTML nor text.
    ContentType,
    /// A WARC revisit that found the page unchanged.
    Unchanged,
    /// A WARC revisit that refers to a record which the reader did not find in this file.
    OriginalUnknown,
    /// A WARC revisit with an unknown profile.
    RevisitProfile,
    /// A redirect that names no target.
    NoLocation,
    /// A redirect whose target is not a valid page URL.
    BadLocation,
    /// A redirect from a page to itself.
    RedirectToItself,
    /// A record whose URL has a scheme other than http, https or file, such as a DNS record.
    Scheme,
    /// A WARC record that holds one segment of a longer record.
    Segment,
    /// An unknown WARC record type.
    RecordKind,
    /// A file whose name is not that of an HTML, text or Markdown file.
    FileName,
    /// A file without an extension whose content is not text.
    Binary,
    /// A file or directory whose name begins with a dot.
    Hidden,
    /// A symbolic link or a special file.
    Link,
    /// A redirect, or the death of a page, in a record whose URL is missing or not read. Only the page of a
    /// URL can be redirected or die.
    NoRow,
}

impl SkipReason {
    /// Whether the skipped item counts as a record: a capture, a row, or a file of a directory of pages.
    /// Other records of a WARC file, links and hidden files do not count.
    #[must_use]
    pub fn is_of_record(self) -> bool {
        !matches!(self, Self::RecordKind | Self::Hidden | Self::Link)
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Status(status) => return write!(f, "HTTP status {status}"),
            Self::ContentType => "neither HTML nor text",
            Self::Unchanged => "unchanged revisit",
            Self::OriginalUnknown => "revisit of a record that is not found in the file",
            Self::RevisitProfile => "unknown revisit profile",
            Self::NoLocation => "redirect without a target",
            Self::BadLocation => "redirect to something that is no page",
            Self::RedirectToItself => "redirect to itself",
            Self::Scheme => "not http, https or file",
            Self::Segment => "part of a segmented record",
            Self::RecordKind => "unknown kind of record",
            Self::FileName => "file name of neither HTML nor text",
            Self::Binary => "binary, not text",
            Self::Hidden => "hidden",
            Self::Link => "symbolic link or special file",
            Self::NoRow => "redirect or death of a record without a URL",
        })
    }
}
