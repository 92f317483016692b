//! Crawls on disk as batches of pages.

use doppel_crawls::Fetched;

use crate::arguments::InputArgs;
use crate::ingested::Reading;
use crate::reading::crawl::{FileEnd, Read, content_bytes, read_all};
use crate::records::record_names::Origin;
use crate::tally::Tally;

/// How much is handed over at once: so many pages, or fewer that have so many bytes. One page may be larger.
#[derive(Debug, Clone, Copy)]
pub struct BatchSize {
    /// Most pages of a batch.
    pub pages: usize,
    /// Bytes of HTML and text at which a batch ends.
    pub bytes: u64,
}

/// Reads every input in order and hands its pages, with dates, to `each` in batches, of which the last may be empty. It is said on
/// the terminal what is being done, and whether bad records are told of.
///
/// # Errors
/// When an input is not there, before anything is read; or what `each` fails with.
pub fn read_batches(
    inputs: &InputArgs,
    doing: (&'static str, bool),
    size: BatchSize,
    mut each: impl FnMut(Vec<Fetched>) -> anyhow::Result<()>,
) -> anyhow::Result<Tally> {
    read_files(inputs, doing, (size, None), |batch| each(batch.pages))
}

/// Pages in their order.
#[derive(Debug, Default)]
pub struct PageBatch {
    /// The pages, redirects and deaths, in input order.
    pub pages: Vec<Fetched>,
    /// Where each page comes from.
    pub origins: Vec<Origin>,
    /// The files that end in the batch or before its first page.
    pub ended: Vec<FileEnd>,
}

/// Like [`read_batches`], for a collection: files that `reading` knows are left out.
///
/// # Errors
/// The same.
pub fn read_files(
    inputs: &InputArgs,
    doing: (&'static str, bool),
    (size, reading): (BatchSize, Option<&Reading>),
    mut each: impl FnMut(PageBatch) -> anyhow::Result<()>,
) -> anyhow::Result<Tally> {
    let (mut batch, mut bytes) = (PageBatch::default(), 0);
    let tally = read_all(inputs, doing, reading, |read| {
        match read {
            Read::End(end) => batch.ended.push(end),
            Read::Page(at, page) => {
                bytes += content_bytes(&page);
                batch.pages.push(page);
                batch.origins.push(at.into());
                if batch.pages.len() >= size.pages || bytes >= size.bytes {
                    bytes = 0;
                    each(std::mem::take(&mut batch))?;
                }
            }
        }
        Ok(())
    })?;
    each(batch)?;
    Ok(tally)
}
