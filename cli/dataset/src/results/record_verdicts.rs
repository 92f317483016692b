//! The verdict on each record, by its number in the order of the inputs, in one byte each.

use doppel_crawls::copy::Removal;
use doppel_model::PageId;

/// The verdict on a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The record was read and could not be used.
    Bad,
    /// The page has a newer version.
    Superseded,
    /// The newest version of a page that is not live.
    Dead,
    /// The newest version of a page, which is a redirect and not live.
    DeadRedirect,
    /// The newest version of a page that stands for itself.
    Kept,
    /// The newest version of a page that is a duplicate of another page.
    Duplicate,
    /// The newest version of a redirect to a page on record.
    Redirect,
}

impl Verdict {
    const ALL: [Self; 7] = [
        Self::Bad,
        Self::Superseded,
        Self::Dead,
        Self::DeadRedirect,
        Self::Kept,
        Self::Duplicate,
        Self::Redirect,
    ];

    /// Why the record is removed. `None` if the record is kept or could not be used.
    pub(super) fn removal(self) -> Option<Removal> {
        match self {
            Self::Bad | Self::Kept => None,
            Self::Superseded => Some(Removal::Superseded),
            Self::Dead | Self::DeadRedirect => Some(Removal::Dead),
            Self::Redirect => Some(Removal::Redirect),
            Self::Duplicate => Some(Removal::Duplicate),
        }
    }
}

/// Mask of the bits of the verdict in a byte. The other bits are from the id of the page. If the second
/// reading finds other pages than the first, these bits show it after a few records.
const VERDICT: u8 = 7;

/// The verdict on a record, and bits of the id of its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record(u8);

impl Record {
    pub(super) const BAD: Self = Self(Verdict::Bad as u8);

    pub(super) fn new(page: PageId, verdict: Verdict) -> Self {
        Self(Self::bits(page) | verdict as u8)
    }

    pub(super) fn verdict(self) -> Verdict {
        Verdict::ALL.get(usize::from(self.0 & VERDICT)).copied().unwrap_or(Verdict::Bad)
    }

    pub(super) fn is_of(self, page: PageId) -> bool {
        self.verdict() == Verdict::Bad || self.0 & !VERDICT == Self::bits(page)
    }

    fn bits(page: PageId) -> u8 {
        page.bytes().last().map_or(0, |byte| byte & !VERDICT)
    }
}

/// Verdicts by the numbers of records.
#[derive(Debug, Default)]
pub(super) struct Records(pub(super) Vec<Record>);

impl Records {
    #[cfg(test)]
    pub(super) fn of(verdicts: impl IntoIterator<Item = Verdict>) -> Self {
        Self(verdicts.into_iter().map(|verdict| Record(verdict as u8)).collect())
    }

    pub(super) fn verdict(&self, number: u64) -> Verdict {
        let record = usize::try_from(number).ok().and_then(|at| self.0.get(at));
        record.map_or(Verdict::Bad, |record| record.verdict())
    }

    /// Changes the verdict on a record that was set before.
    pub(super) fn judge(&mut self, number: u64, verdict: Verdict) {
        if let Some(record) = usize::try_from(number).ok().and_then(|at| self.0.get_mut(at)) {
            *record = Record(record.0 & !VERDICT | verdict as u8);
        }
    }

    pub(super) fn set(&mut self, number: u64, record: Record) {
        let Ok(at) = usize::try_from(number) else { return };
        if self.0.len() <= at {
            self.0.resize(at + 1, Record::BAD);
        }
        self.0[at] = record;
    }
}
