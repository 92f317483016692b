//! Counts pages that were read but could not be used, such as pages on which the extractor panics. A command
//! that reads its inputs several times meets these pages in every pass, but reports them only in the first.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use doppel_model::PageUrl;

use crate::arguments::InputArgs;
use crate::records::bad_records::BadFile;
use crate::records::shown_messages::ShownMessages;
use doppel_terminal::output::say;

/// Pages that could not be used in one pass: number and bytes, by reason.
#[derive(Debug, Default)]
pub struct UnusablePages {
    by_reason: BTreeMap<String, (u64, u64)>,
    file: Option<BadFile>,
    told: Arc<ShownMessages>,
}

/// Number and bytes of the pages that could not be used for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusableCount {
    /// Reason why the pages could not be used.
    pub reason: String,
    /// Number of pages that could not be used.
    pub pages: u64,
    /// Bytes of HTML or text of these pages.
    pub bytes: u64,
}

impl From<(String, (u64, u64))> for UnusableCount {
    fn from((reason, (pages, bytes)): (String, (u64, u64))) -> Self {
        Self { reason, pages, bytes }
    }
}

impl UnusablePages {
    /// Creates an empty count. Unusable pages will be written to the file of bad records of `inputs`.
    pub fn of(inputs: &InputArgs) -> Self {
        let (file, told) = (inputs.records.bad.clone(), Arc::clone(&inputs.records.told));
        Self { by_reason: BTreeMap::new(), file, told }
    }

    /// Counts of the pass so far, in the order of the reasons.
    #[cfg(test)]
    pub fn by_reason(&self) -> impl Iterator<Item = UnusableCount> {
        self.by_reason.clone().into_iter().map(UnusableCount::from)
    }

    /// Ends the pass, and returns its counts in the order of the reasons.
    pub fn end(self) -> impl Iterator<Item = UnusableCount> {
        self.told.note(self.by_reason.keys().cloned());
        self.by_reason.into_iter().map(UnusableCount::from)
    }

    /// Counts a page of `bytes` bytes under a reason. Unless an earlier pass has shown the reason, also
    /// writes the page to the file of bad records, and shows the first page of each reason with what is
    /// `wrong`.
    pub fn note(&mut self, reason: &str, (url, bytes): (&PageUrl, u64), wrong: &dyn fmt::Display) {
        let is_known = self.told.knows(reason);
        if let Some(file) = self.file.as_ref().filter(|_| !is_known) {
            file.note_page(reason, url.as_str(), wrong.to_string());
        }
        let (records, sum) = self.by_reason.entry(reason.to_owned()).or_default();
        if *records == 0 && !is_known {
            say!("doppel: {url}: {wrong}; others like it are only counted");
        }
        *records += 1;
        *sum += bytes;
    }
}
