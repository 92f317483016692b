//! The part of the limit of pending pages that one client may use.

use doppel_model::ClientId;

use super::*;

const ONE: ClientId = ClientId(1);
const OTHER: ClientId = ClientId(2);

/// Starts tier 1 beside an index that accepts no orders, so that every page with a content stays pending.
fn start_without_decisions(store: &Arc<Memory>) -> Arc<Tier1> {
    let tier1 =
        Tier1::open_over_stores(vec![Arc::clone(store) as Arc<dyn Store>], &config(Retention::DEFAULT, 1))
            .unwrap();
    let tier2 = Arc::new(LinkingIndex::naming(0));
    tier2.refusals.store(usize::MAX, Ordering::Relaxed);
    tier1.start(tier2 as Arc<dyn IndexOrders>).unwrap();
    tier1
}

/// Submits pages from `first` on until one is refused. Returns how many were accepted, and the refusal.
fn submit_until_refused(tier1: &Tier1, client: ClientId, first: u64) -> (u64, Tier1Error) {
    let submit = |page: u64| tier1.submit_for(client, vec![submission(page)]);
    (first..first + 1_000).find_map(|page| Some((page - first, submit(page).err()?))).unwrap()
}

#[test]
fn a_client_may_use_half_of_the_pending_pages_also_after_a_start() {
    let store = Arc::new(Memory::default());
    let tier1 = start_without_decisions(&store);
    let full = Tier1Error::ClientFull { pending: 50, limit: 50 };
    assert_eq!(submit_until_refused(&tier1, ONE, 0), (50, full.clone()));
    // A dead page is decided at once and takes no room. It frees the room of a page that was pending.
    let gone = version(0, 2, Body::Dead);
    assert_eq!(tier1.submit_for(ONE, vec![gone]), Ok(vec![SubmissionOutcome::Confirmed]));
    assert_eq!(submit_until_refused(&tier1, ONE, 100), (1, full.clone()));
    // A newer content of a page counts for the client that sends it.
    tier1.submit_for(OTHER, vec![version(1, 2, content(900))]).unwrap();
    assert_eq!(submit_until_refused(&tier1, ONE, 200), (1, full.clone()));
    tier1.stop();
    drop(tier1);
    let tier1 = start_without_decisions(&store);
    let began = std::time::Instant::now();
    while tier1.answering_owner(RangeId(0)).unwrap().figures().pending_of(ONE) < 50 {
        assert!(began.elapsed() < PATIENCE, "the pending pages of the client were not found");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(submit_until_refused(&tier1, ONE, 300), (0, full));
    // The other client may use the rest. Callers without a limit of their own get no more than that.
    assert_eq!(submit_until_refused(&tier1, OTHER, 400), (49, Tier1Error::Full { pending: 100, limit: 100 }));
    assert_eq!(submit_until_refused(&tier1, ClientId::NONE, 500).0, 0);
    tier1.stop();
}
