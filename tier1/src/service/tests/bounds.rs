//! Limits of lists in one call. A longer list is refused before anything is done.

use std::ops::Range;

use doppel_protocol::{BATCH_PAGES_MAX, LIST_MAX};

use super::*;

over_ranges! {
    a_list_above_the_limit_is_refused_as_a_whole,
    an_answer_is_limited_whatever_limit_the_caller_asks_for,
}

fn dead_pages(pages: Range<u64>) -> Vec<Submission> {
    let submission = |page| Submission {
        url: url(page),
        fetched_at: Timestamp::from_millis(1),
        popularity: None,
        language: None,
        canonical: None,
        body: Body::Dead,
    };
    pages.map(submission).collect()
}

fn a_list_above_the_limit_is_refused_as_a_whole(ranges: u16) {
    let tier1 = start(&Arc::new(Memory::default()), ranges);
    let ids: Vec<PageId> = (0..=BATCH_PAGES_MAX as u64).map(|page| url(page).id()).collect();
    let refused = Tier1Error::BatchTooLarge { found: BATCH_PAGES_MAX + 1, limit: BATCH_PAGES_MAX };
    assert_eq!(tier1.submit(dead_pages(0..BATCH_PAGES_MAX as u64 + 1)).unwrap_err(), refused);
    assert_eq!(tier1.totals().unwrap().counters.submissions, 0);
    assert_eq!(tier1.submit(dead_pages(0..BATCH_PAGES_MAX as u64)).unwrap().len(), BATCH_PAGES_MAX);
    assert_eq!(tier1.pages(&ids).unwrap_err(), refused);
    assert_eq!(tier1.purge(&ids).unwrap_err(), refused);
    assert!(tier1.pages(&ids[1..]).unwrap()[0].is_some(), "nothing was purged");
    assert_eq!(tier1.purge(&ids[1..]).unwrap(), BATCH_PAGES_MAX as u64 - 1);
    tier1.stop();
}

fn an_answer_is_limited_whatever_limit_the_caller_asks_for(ranges: u16) {
    let tier1 = start(&Arc::new(Memory::default()), ranges);
    let all = LIST_MAX as u64 + 500;
    for from in (0..all).step_by(BATCH_PAGES_MAX) {
        tier1.submit(dead_pages(from..all.min(from + BATCH_PAGES_MAX as u64))).unwrap();
    }
    let first = tier1.changes(None, usize::MAX, Duration::ZERO).unwrap();
    assert!(!first.at_end && first.changes.len() <= LIST_MAX, "{}", first.changes.len());
    let mut found = first.changes.len();
    let (mut cursor, mut at_end) = (first.cursor, false);
    while !at_end {
        let more = tier1.changes(Some(&cursor), usize::MAX, Duration::ZERO).unwrap();
        found += more.changes.len();
        (cursor, at_end) = (more.cursor, more.at_end);
    }
    assert_eq!(found as u64, all);
    tier1.stop();
}
