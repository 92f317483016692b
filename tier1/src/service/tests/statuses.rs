//! The status table after a start.

use std::time::Instant;

use doppel_protocol::answer::Advice;

use super::*;

over_ranges! {
    a_start_fills_the_table_beside_the_service,
}

/// Waits until the table has an answer that is wanted.
fn await_advice(tier1: &Tier1, page: u64, wanted: impl Fn(&Advice) -> bool) -> Advice {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match tier1.known_advice(&url(page)).filter(&wanted) {
            Some(advice) => return advice,
            None => assert!(Instant::now() < deadline, "{:?}", tier1.known_advice(&url(page))),
        }
        std::thread::yield_now();
    }
}

fn a_start_fills_the_table_beside_the_service(ranges: u16) {
    let store = Arc::new(Memory::default());
    let tier1 = start(&store, ranges);
    for page in 0..40 {
        submit(&tier1, page, 1, content(page % 20 * 1_000));
    }
    submit(&tier1, 50, 1, Body::Dead);
    assert!(tier1.flush(PATIENCE).unwrap());
    let all = || (0..40).chain([50, 60]);
    // What was never heard of is known to be unknown at the end alone.
    let answers = |tier1: &Tier1| -> Vec<Advice> {
        await_advice(tier1, 1_000, |_| true);
        all().map(|page| await_advice(tier1, page, |_| true)).collect()
    };
    let before = answers(&tier1);
    tier1.stop();

    let tier1 = start(&store, ranges);
    assert_eq!(answers(&tier1), before);
    assert!(tier1.totals().unwrap().status_table_bytes > 0);
    tier1.stop();
}
