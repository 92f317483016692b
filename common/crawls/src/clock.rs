//! Supplies dates for pages that have none.

use doppel_model::Timestamp;
use doppel_protocol::page::AHEAD_MAX_MS;

/// How far the date of a record may be behind the latest change of an input: less than servers accept.
const AHEAD_MS: i64 = AHEAD_MAX_MS / 24 * 23;

/// Supplies missing dates. They increase over the inputs in the order in which the inputs are given, and depend
/// on the inputs alone: reading the same files again gives the same dates, so nothing looks new.
///
/// A page without a date gets the modification time of its input. If the earlier inputs contain a later date,
/// it gets that date plus one millisecond instead.
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
/// // The second input was read before: what follows gets the dates that it would have got.
/// let had = (clock.supplied_first(), clock.latest_of_input());
/// let mut again = CrawlClock::new();
/// again.begin(at(500));
/// again.date(Some(at(900)));
/// assert!(again.pass(at(600), had));
/// clock.begin(at(700));
/// again.begin(at(700));
/// assert_eq!(again.date(None), clock.date(None));
/// // Behind other inputs it would get other dates, so it is to be read.
/// assert!(!CrawlClock::new().pass(at(600), had));
/// ```
#[derive(Debug, Default)]
pub struct CrawlClock {
    supplied: Option<Timestamp>,
    latest: Option<Timestamp>,
    /// The latest date of this input, and the first that was supplied in it.
    latest_of_input: Option<Timestamp>,
    supplied_first: Option<Timestamp>,
    /// The last date that is supplied to a record; none before the first input.
    last: Option<Timestamp>,
}

impl CrawlClock {
    /// A clock before the first input.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins the next input; `modified` is its [modification time](super::Input::modified).
    pub fn begin(&mut self, modified: Timestamp) {
        let after = self.latest.map(|latest| latest.plus_millis(1));
        self.supplied = Some(after.map_or(modified, |after| after.max(modified)));
        self.last = self.last.max(Some(modified.plus_millis(AHEAD_MS)));
        (self.latest_of_input, self.supplied_first) = (None, None);
    }

    /// The latest date of this input so far.
    #[must_use]
    pub fn latest_of_input(&self) -> Option<Timestamp> {
        self.latest_of_input
    }

    /// The first date that was supplied to a page of this input, if one had none.
    #[must_use]
    pub fn supplied_first(&self) -> Option<Timestamp> {
        self.supplied_first
    }

    /// Leaves the next input out, which was read before, when `supplied_first` and `latest_of_input` were these. Later inputs get the dates that they would have got.
    /// Returns false, and does nothing, where its pages would get other dates now.
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

    /// Leaves the next input out, whose pages are there with the dates that they got before.
    pub fn pass_replayed(&mut self, modified: Timestamp, latest_of_input: Option<Timestamp>) {
        self.begin(modified);
        self.latest = self.latest.max(latest_of_input);
    }

    /// The date of the next record of this input that has neither a date nor a URL. It is a millisecond later than that of the record before, so that of equal
    /// records the first is the oldest. After some 80 million records all get one date: dates may not be far ahead.
    pub fn date_of_record(&mut self) -> Timestamp {
        let date = self.date(None);
        self.supplied = self
            .supplied
            .map(|supplied| supplied.max(supplied.plus_millis(1).min(self.last.unwrap_or(supplied))));
        date
    }

    /// The date of the next page of this input. `given` is the date in the crawl, if any.
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
