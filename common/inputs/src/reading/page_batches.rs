//! Reads the inputs as batches of dated pages.

use doppel_crawls::FetchedPage;

use crate::arguments::InputArgs;
use crate::ingested::ReadingPlan;
use crate::reading::crawl::{FileEnd, ReadItem, content_bytes, read_all};
use crate::records::record_names::Origin;
use crate::tally::Tally;

/// Limits of a batch. A batch ends with the page that reaches either limit, so a large page may exceed the
/// limit of bytes.
#[derive(Debug, Clone, Copy)]
pub struct BatchSize {
    /// Most pages of a batch.
    pub pages: usize,
    /// Bytes of HTML and text at which a batch ends.
    pub bytes: u64,
}

/// Reads every input in order and hands its pages, with dates, to `each` in batches. The last batch may be
/// empty. `doing` contains the label of the progress bar, and whether bad records are shown.
///
/// # Errors
/// If an input does not exist, which is found before anything is read; or if `each` fails.
pub fn read_batches(
    inputs: &InputArgs,
    doing: (&'static str, bool),
    size: BatchSize,
    mut each: impl FnMut(Vec<FetchedPage>) -> anyhow::Result<()>,
) -> anyhow::Result<Tally> {
    read_files(inputs, doing, (size, None), |batch| each(batch.pages))
}

/// A batch of pages in the order of the inputs.
#[derive(Debug, Default)]
pub struct PageBatch {
    /// The pages, redirects and deaths, in input order.
    pub pages: Vec<FetchedPage>,
    /// Origin of each page, in the same order.
    pub origins: Vec<Origin>,
    /// Files that end in the batch or before its first page.
    pub ended: Vec<FileEnd>,
}

/// Like [`read_batches`], but leaves out the files that `reading` knows, and passes origins and ends of files
/// to `each`. For collections.
///
/// # Errors
/// The errors of [`read_batches`].
pub fn read_files(
    inputs: &InputArgs,
    doing: (&'static str, bool),
    (size, reading): (BatchSize, Option<&ReadingPlan>),
    mut each: impl FnMut(PageBatch) -> anyhow::Result<()>,
) -> anyhow::Result<Tally> {
    let (mut batch, mut bytes) = (PageBatch::default(), 0);
    let tally = read_all(inputs, doing, reading, |read| {
        match read {
            ReadItem::End(end) => batch.ended.push(end),
            ReadItem::Page(at, page) => {
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
