//! A scan in pages: it returns every live page once. Together with the feed since before the scan it shows
//! the newest state of all pages.

use doppel_protocol::{PageScan, SCAN_LINES_MAX};

use super::*;

over_ranges! {
    a_scan_gives_every_live_page_once_whatever_the_limit,
    changes_during_a_scan_are_in_the_feed_since_before_it,
}

fn start_with_pages(ranges: u16) -> Arc<Tier1> {
    let tier1 = start(&Arc::new(Memory::default()), ranges);
    for page in 0..20 {
        submit(&tier1, page, 1, content(page * 1_000));
    }
    // A run of dead pages fills whole pages of a scan.
    for page in 20..60 {
        submit(&tier1, page, 1, Body::Dead);
    }
    assert!(tier1.flush(PATIENCE).unwrap());
    tier1
}

fn a_scan_gives_every_live_page_once_whatever_the_limit(ranges: u16) {
    let tier1 = start_with_pages(ranges);
    let mut all: Vec<PageUrl> = (0..20).map(url).collect();
    all.sort();
    for limit in [0, 1, 2, 7, 60, SCAN_LINES_MAX, usize::MAX] {
        let (mut urls, mut after) = (Vec::new(), None);
        loop {
            let page = tier1.scan(after, limit).unwrap();
            assert!(page.lines.len() <= limit.max(1));
            urls.extend(page.lines.into_iter().map(|line| line.url));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        urls.sort();
        assert_eq!(urls, all, "{limit}");
    }
    tier1.stop();
}

fn changes_during_a_scan_are_in_the_feed_since_before_it(ranges: u16) {
    let tier1 = start_with_pages(ranges);
    let cursor = tier1.cursor().unwrap();
    let first = tier1.scan(None, 1).unwrap();
    submit(&tier1, 0, 2, Body::Dead);
    submit(&tier1, 20, 2, content(20_000));
    assert!(tier1.flush(PATIENCE).unwrap());
    assert!(first.next.is_some());
    let changes = tier1.changes(Some(&cursor), 100, Duration::ZERO).unwrap();
    let urls: Vec<PageUrl> = changes.changes.into_iter().map(|change| change.line.url).collect();
    assert!(changes.at_end && urls.contains(&url(0)) && urls.contains(&url(20)), "{urls:?}");
    let lines = PageScan::new(&*tier1).collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(lines.len(), 20);
    tier1.stop();
}
