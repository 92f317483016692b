//! Reads the texts of the examples from the inputs again, for a few pages only.
//!
//! A version in the inputs is the compared one if it has the same content. The search therefore ends when all
//! pages are found, and another version is not mistaken for a page on record from earlier inputs.

use std::collections::{HashMap, HashSet};

use anyhow::anyhow;
use doppel_crawls::FetchedPage;
use doppel_inputs::reading::page_batches::{BatchSize, read_batches};
use doppel_model::pairwise::Signer;
use doppel_model::{ContentHash, PageUrl, RawContent};
use doppel_terminal::output::say;
use doppel_text::{Extraction, Extractor, difference};

use super::Run;
use super::examples::{Duplicate, Example};

/// Largest number of bytes of a text that are kept for comparison.
const TEXT_MAX: usize = 256 << 10;

/// Texts of the pages that were found in the inputs.
#[derive(Debug, Default)]
pub(super) struct Texts {
    texts: HashMap<(PageUrl, ContentHash), String>,
    /// Whether the inputs could be read again. Also true if no text was needed.
    pub(super) were_read: bool,
}

/// Stops reading when all pages were found. Not an error for the user.
#[derive(Debug, thiserror::Error)]
#[error("all pages were found")]
struct AllFound;

/// State of the search.
struct TextSearch {
    wanted: HashSet<(PageUrl, ContentHash)>,
    extractor: Extractor,
    texts: HashMap<(PageUrl, ContentHash), String>,
}

impl Texts {
    /// Reads the inputs again, and finds the texts of the pages that the report shows side by side. If the
    /// inputs cannot be read again, prints a message and returns the texts found so far.
    pub(super) fn find(examples: &[Example], run: &Run<'_>) -> Self {
        let shown = examples.iter().filter_map(|example| example.shown.as_ref());
        let wanted = shown.flat_map(|Duplicate { url, content, of, kept_content, .. }| {
            [(url, content), (of, kept_content)].map(|(url, content)| Some((url.clone(), (*content)?)))
        });
        let mut search = TextSearch::new(wanted.flatten().collect(), run.signer.clone());
        if search.wanted.is_empty() {
            return Self { were_read: true, ..Self::default() };
        }
        let one = BatchSize { pages: 1, bytes: 0 };
        let read = read_batches(run.inputs, ("looking for examples", false), one, |pages| {
            pages.iter().for_each(|page| search.take(page));
            if search.wanted.is_empty() { Err(anyhow!(AllFound)) } else { Ok(()) }
        });
        let were_read = match read {
            Err(error) if !error.is::<AllFound>() => {
                say!(
                    "doppel: the report has not all texts, because the inputs cannot be read again: {error:#}"
                );
                false
            }
            _ => true,
        };
        Self { texts: search.texts, were_read }
    }

    /// Returns the first words of a page with this content, if they were found.
    pub(super) fn get(&self, page: &PageUrl, content: Option<ContentHash>) -> Option<&str> {
        self.texts.get(&(page.clone(), content?)).map(String::as_str)
    }
}

impl TextSearch {
    fn new(wanted: HashSet<(PageUrl, ContentHash)>, signer: Signer) -> Self {
        Self { wanted, extractor: Extractor::signing(signer), texts: HashMap::new() }
    }

    fn take(&mut self, page: &FetchedPage) {
        let Some(raw) =
            page.body.raw_content().filter(|_| self.wanted.iter().any(|(url, _)| *url == page.url))
        else {
            return;
        };
        let Self { wanted, extractor, texts } = self;
        let found = extractor.guarded(|extractor| text(extractor, &page.url, raw, wanted)).flatten();
        if let Some((content, text)) = found {
            let key = (page.url.clone(), content);
            wanted.remove(&key);
            texts.insert(key, text);
        }
    }
}

/// Returns the content of a page and the first words of the compared text, if the page with this content is
/// wanted.
fn text(
    extractor: &mut Extractor,
    url: &PageUrl,
    raw: RawContent<'_>,
    wanted: &HashSet<(PageUrl, ContentHash)>,
) -> Option<(ContentHash, String)> {
    let Extraction::Page(page) = extractor.extract(url, raw) else { return None };
    let content = page.signature.content();
    if !wanted.contains(&(url.clone(), content)) {
        return None;
    }
    let reads_main = extractor.policy().reads_main();
    let text = if reads_main { extractor.main_text(url, raw) } else { extractor.page_text(url, raw) };
    Some((content, difference::first_words(&text.text()?, TEXT_MAX)))
}
