//! One page of a file on disk: the file itself, or one of a crawl file.

use std::fmt;
use std::path::Path;

use doppel_crawls::{CrawlClock, Fetched, Item, Limits};
use doppel_model::{PageUrl, Timestamp};

use crate::records::FieldArgs;
use crate::records::named_fields;
use doppel_terminal::exit::Failure;

/// A file, and the option that names its page.
#[derive(Debug)]
pub struct OnePage<'f> {
    /// The file that contains the page.
    pub file: &'f Path,
    /// Option that named the file, for messages.
    pub option: &'static str,
    /// URL of the page, if the user gave one.
    pub url: Option<&'f str>,
    /// How its records are read, if it has some.
    pub fields: &'f FieldArgs,
}

impl OnePage<'_> {
    /// The page that is meant: the newest of the URL that is given, or else the only one of the file. What was found nowhere, as a plain file,
    /// or a record without a URL, is taken for that of the URL; but the name of a record is that of no other.
    ///
    /// # Errors
    /// When the file cannot be read, or no page or several may be meant.
    pub fn page(&self) -> anyhow::Result<Fetched> {
        let (file, option) = (self.file.display(), self.option);
        let wrong = |text: String| Failure::Usage(format!("{file}: {text}"));
        let parse = |url| PageUrl::parse(url).map_err(|error| wrong(format!("{option} {url}: {error}")));
        let url = self.url.map(parse).transpose()?;
        let input = doppel_crawls::open(self.file, self.fields.options(Limits::at(Timestamp::now())));
        let input = input.map_err(|error| Failure::BadInput(error.to_string()))?;
        // Dates are those of `doppel dedup`.
        let mut clock = CrawlClock::new();
        clock.begin(input.modified());
        let (mut meant, mut only, mut others) = (None, None, Others::default());
        let (mut bad, mut skipped) = (None, None);
        for item in input {
            match item {
                Item::Page(page) => {
                    let date = match page.fetched_at {
                        None if page.url.is_record() => clock.date_of_record(),
                        given => clock.date(given),
                    };
                    if url.as_ref() == Some(&page.url) {
                        take_newer(&mut meant, page, date);
                    } else if page.body.has_content() {
                        others.note(&page.url);
                        if url.is_none() && !others.is_one() {
                            let text = format!(
                                "it has several pages: say which with {option} URL, such as {others}"
                            );
                            return Err(wrong(text).into());
                        }
                        take_newer(&mut only, page, date);
                    }
                }
                Item::Fields(map) => named_fields::require(&map, &file)?,
                Item::Skipped(skip) => skipped = skipped.or(Some(skip)),
                Item::Bad(error) => bad = bad.or(Some(error)),
            }
        }
        let (meant, only) =
            (meant.map(|(page, _)| page), only.map(|(page, _)| page).filter(|_| others.is_one()));
        match (meant, only, url) {
            (Some(page), ..) | (None, Some(page), None) => Ok(page),
            (None, Some(page), Some(url)) if page.url.host().is_empty() && !url.is_record() => {
                Ok(Fetched { url, ..page })
            }
            (None, _, Some(url)) if !others.is_none() => {
                Err(Failure::BadInput(format!("{file}: {url} is not there, but {others}")).into())
            }
            _ => {
                let why = match (bad, skipped) {
                    (Some(bad), _) => bad.to_string(),
                    (None, Some(skip)) => format!("there is no page in {file}: {skip}"),
                    (None, None) => format!("there is no page in {file}"),
                };
                Err(Failure::BadInput(why).into())
            }
        }
    }
}

/// Takes another version of a page, unless a later one is known. Versions of one date are ordered as on a server, but for contents: without
/// their hashes, the one that comes later in the file counts.
fn take_newer(newest: &mut Option<(Fetched, Timestamp)>, page: Fetched, date: Timestamp) {
    let new = (date, page.body.order_of_one_date());
    if newest.as_ref().is_none_or(|(known, date)| (*date, known.body.order_of_one_date()) <= new) {
        *newest = Some((page, date));
    }
}

/// URLs of a file, the first few by name.
#[derive(Debug, Default)]
struct Others {
    named: Vec<PageUrl>,
    has_more: bool,
}

impl Others {
    /// How many are named.
    const NAMED: usize = 5;

    fn note(&mut self, url: &PageUrl) {
        if self.named.contains(url) {
            return;
        }
        if self.named.len() < Self::NAMED {
            self.named.push(url.clone());
        } else {
            self.has_more = true;
        }
    }

    fn is_none(&self) -> bool {
        self.named.is_empty()
    }

    fn is_one(&self) -> bool {
        self.named.len() == 1
    }
}

impl fmt::Display for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, url) in self.named.iter().enumerate() {
            write!(f, "{}{url}", if at > 0 { ", " } else { "" })?;
        }
        if self.has_more { f.write_str(" and others") } else { Ok(()) }
    }
}
