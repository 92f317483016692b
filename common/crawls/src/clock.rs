//! [`CrawlClock`]: supplies dates for pages whose crawl records none.
//!
//! The supplied dates depend only on the inputs and their order. Reading the same files again must give the
//! same dates, or unchanged pages would look new.

use doppel_contract::page::AHEAD_MAX_MS;
use doppel_model::Timestamp;

/// How far the supplied date of a record may be after the modification time of its input. Less than servers
/// accept.
const AHEAD_MS: i64 = AHEAD_MAX_MS / 24 * 23;

/// Supplies missing dates, which increase over the inputs in the order in which the inputs are given. The
/// dates depend only on the inputs: reading the same files again gives the same dates, so no page looks new.
///
/// A page without a date gets the modification time of its input. If an earlier input contains a later date,
/// the page gets that date plus one millisecond instead.
///
/// ```
/// use doppel_crawls::CrawlClock;
/// use doppel_model::Timestamp;
///
/// let at = Timestamp::from_millis;
/// let mut clock = CrawlClock::new();
/// clock.begin(at(500));
/// assert_eq!(clock.date(None), at(500));
/// assert_eq!(clock.date(Some(at(900))), at(900));
/// clock.begin(at(600));
/// assert_eq!(clock.date(None), at(901));
/// assert_eq!((clock.date_of_record(), clock.date_of_record()), (at(901), at(902)));
///
/// // If an earlier run has read the second input, a new clock can pass it. Later inputs get the same dates.
/// let had = (clock.supplied_first(), clock.latest_of_input());
/// let mut again = CrawlClock::new();
/// again.begin(at(500));
/// again.date(Some(at(900)));
/// assert!(again.pass(at(600), had));
/// clock.begin(at(700));
/// again.begin(at(700));
/// assert_eq!(again.date(None), clock.date(None));
/// // After other inputs, the pages of the second input would get other dates, so it must be read.
/// assert!(!CrawlClock::new().pass(at(600), had));
/// ```
#[derive(Debug, Default)]
pub struct CrawlClock {
    /// The date for the next page without a date.
    supplied: Option<Timestamp>,
    /// The latest date of all inputs so far.
    latest: Option<Timestamp>,
    /// The latest date of this input, and the first date supplied in it.
    latest_of_input: Option<Timestamp>,
    supplied_first: Option<Timestamp>,
    /// The last date that a record may get. `None` before the first input.
    last: Option<Timestamp>,
}

impl CrawlClock {
    /// Creates a clock before the first input.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins the next input, whose [modification time](super::Input::modified) is `modified`.
    pub fn begin(&mut self, modified: Timestamp) {
        let after = self.latest.map(|latest| latest.plus_millis(1));
        self.supplied = Some(after.map_or(modified, |after| after.max(modified)));
        self.last = self.last.max(Some(modified.plus_millis(AHEAD_MS)));
        (self.latest_of_input, self.supplied_first) = (None, None);
    }

    /// Latest date of this input so far.
    #[must_use]
    pub fn latest_of_input(&self) -> Option<Timestamp> {
        self.latest_of_input
    }

    /// First date supplied to a page of this input. `None` if no page of it lacked a date.
    #[must_use]
    pub fn supplied_first(&self) -> Option<Timestamp> {
        self.supplied_first
    }

    /// Skips the next input, which an earlier run has read with these values of `supplied_first` and
    /// `latest_of_input`. Later inputs get the same dates as if the input were read. Returns false, and
    /// changes nothing, if the pages of the input would get other dates now.
    #[must_use]
    pub fn pass(
        &mut self,
        modified: Timestamp,
        (supplied_first, latest_of_input): (Option<Timestamp>, Option<Timestamp>),
    ) -> bool {
        let mut begun = Self { ..*self };
        begun.begin(modified);
        if supplied_first.is_some() && supplied_first != begun.supplied {
            return false;
        }
        self.pass_replayed(modified, latest_of_input);
        true
    }

    /// Skips the next input because its pages are already stored with the dates that an earlier run supplied.
    pub fn pass_replayed(&mut self, modified: Timestamp, latest_of_input: Option<Timestamp>) {
        self.begin(modified);
        self.latest = self.latest.max(latest_of_input);
    }

    /// Returns the date of the next record of this input that has neither a date nor a URL. Each date is one
    /// millisecond after the previous one, so that the first of several equal records is the oldest. After
    /// some 80 million records, all further records get the same date, because dates must not lie far ahead.
    pub fn date_of_record(&mut self) -> Timestamp {
        let date = self.date(None);
        self.supplied = self
            .supplied
            .map(|supplied| supplied.max(supplied.plus_millis(1).min(self.last.unwrap_or(supplied))));
        date
    }

    /// Returns the date of the next page of this input. `given` is the date that the crawl records, if any.
    pub fn date(&mut self, given: Option<Timestamp>) -> Timestamp {
        if given.is_none() && self.supplied_first.is_none() {
            self.supplied_first = self.supplied;
        }
        let date = given.or(self.supplied).unwrap_or(Timestamp::from_millis(0));
        self.latest = self.latest.max(Some(date));
        self.latest_of_input = self.latest_of_input.max(Some(date));
        date
    }
}
