//! Reads one page of a file on disk: the file itself, or a page of a crawl file.

use std::fmt;
use std::path::Path;

use doppel_crawls::{CrawlClock, FetchedPage, Item, Limits};
use doppel_model::{PageUrl, Timestamp};

use crate::records::FieldArgs;
use crate::records::named_fields;
use doppel_terminal::exit::Failure;

/// Selects one page of a file, for a command that works on single pages.
#[derive(Debug)]
pub struct OnePage<'f> {
    /// The file that contains the page.
    pub file: &'f Path,
    /// Option that named the file, for messages.
    pub option: &'static str,
    /// URL of the page, if the user gave one.
    pub url: Option<&'f str>,
    /// Options that say how to read the records of the file, if it has any.
    pub fields: &'f FieldArgs,
}

impl OnePage<'_> {
    /// Reads the selected page: the newest version of the URL, if the user gave a URL, or else the only page
    /// of the file. If the only page was found at no host, such as a plain file or a record without a URL, it
    /// counts as the page of the given URL. A URL that names a record selects only that record.
    ///
    /// # Errors
    /// If the file cannot be read, if it does not contain the page, or if it has several pages and the user
    /// gave no URL.
    pub fn page(&self) -> anyhow::Result<FetchedPage> {
        let (file, option) = (self.file.display(), self.option);
        let wrong = |text: String| Failure::Usage(format!("{file}: {text}"));
        let parse = |url| PageUrl::parse(url).map_err(|error| wrong(format!("{option} {url}: {error}")));
        let url = self.url.map(parse).transpose()?;
        let input = doppel_crawls::open(self.file, self.fields.options(Limits::at(Timestamp::now())));
        let input = input.map_err(|error| Failure::BadInput(error.to_string()))?;
        // Supplies the same dates as `doppel dedup`.
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
                Ok(FetchedPage { url, ..page })
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

/// Replaces the newest version of a page, unless the known version is later. Versions with the same date are
/// ordered as on a server, except two contents: their hashes are not known here, so the one that comes later
/// in the file wins.
fn take_newer(newest: &mut Option<(FetchedPage, Timestamp)>, page: FetchedPage, date: Timestamp) {
    let new = (date, page.body.order_of_one_date());
    if newest.as_ref().is_none_or(|(known, date)| (*date, known.body.order_of_one_date()) <= new) {
        *newest = Some((page, date));
    }
}

/// URLs of the pages of a file. Stores only the first few.
#[derive(Debug, Default)]
struct Others {
    named: Vec<PageUrl>,
    has_more: bool,
}

impl Others {
    /// Most URLs that are stored.
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
