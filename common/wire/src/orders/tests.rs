//! The queue with a clock of the test, and its thread with a router of the test.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use doppel_model::signature::{Builder, Signature};
use doppel_model::{ContentHash, Epoch, PageId, RangeId};
use doppel_protocol::{
    IndexCommand, IndexError, IndexOrders, LoadReport, Orders, Pair, PartitionLookup, RefusedOrders, Tier2Api,
};

use super::courier::Courier;
use super::queue::{BYTES_MAX, CALL_COMMANDS, COMMANDS_MAX, Queue, Sent};
use super::{OrdersAnswer, OrdersRequest, take};
use crate::peer::WireError;
use crate::pieces::SIGNATURES_BYTES;

const SECOND: Duration = Duration::from_secs(1);

fn orders(range: u16, first: u64, count: usize) -> Orders {
    let remove = IndexCommand::Remove { page: PageId::from_bytes([1; 16]), content: content() };
    Orders { range: RangeId(range), epoch: Epoch(1), first, commands: vec![remove; count] }
}

fn content() -> ContentHash {
    Builder::new().build(&[1]).content()
}

/// Orders that bring a signature each.
fn long(range: u16, first: u64, signature: &Arc<Signature>, count: usize) -> Orders {
    let put = IndexCommand::Put {
        page: PageId::from_bytes([1; 16]),
        signature: Arc::clone(signature),
        search: None,
    };
    Orders { commands: vec![put; count], ..orders(range, first, 0) }
}

/// The range, first index and number of each of the orders of a call.
fn of_call(request: &OrdersRequest) -> Vec<(u16, u64, usize)> {
    request.orders.iter().map(|orders| (orders.range.0, orders.first, orders.commands.len())).collect()
}

/// A router that says so.
fn says(session: u64, taken: Vec<Result<(), IndexError>>, waiting: u64) -> OrdersAnswer {
    OrdersAnswer { session, taken, waiting: Ok(waiting) }
}

fn lost() -> WireError {
    let (node, address) = ("router".parse().unwrap(), "127.0.0.1:1".into());
    WireError::Unreachable { node, address, reason: "as it should".to_owned(), unsent: false }
}

/// A queue that knows the session 7.
fn queue(now: Instant) -> Queue {
    let mut queue = Queue::default();
    let (request, sent) = queue.next_call(now);
    assert!(request.session.is_none() && request.orders.is_empty());
    queue.answered(&sent, says(7, Vec::new(), 0), now);
    queue
}

/// Makes the next call, which is due.
fn next(queue: &mut Queue, now: Instant) -> (Vec<(u16, u64, usize)>, Sent) {
    assert!(queue.due(now) <= now, "a call is due");
    let (request, sent) = queue.next_call(now);
    (of_call(&request), sent)
}

#[test]
fn orders_go_in_order_until_they_are_taken() {
    let mut now = Instant::now();
    let mut queue = Queue::default();
    queue.push(orders(1, 5, 2)).unwrap();
    queue.push(orders(2, 1, 1)).unwrap();
    // They wait until the session is known. The first one that is learnt loses nothing.
    let (request, sent) = queue.next_call(now);
    assert!(request.session.is_none() && request.orders.is_empty());
    queue.answered(&sent, says(7, Vec::new(), 0), now);
    assert!(!queue.has_lost(RangeId(1)));
    let expected = [(1, 5, 2), (2, 1, 1)];
    for pause in [50, 100, 200, 400, 800, 1_000, 1_000] {
        let (shown, sent) = next(&mut queue, now);
        assert_eq!(shown, expected);
        queue.failed(&sent, &lost(), now);
        assert_eq!(queue.due(now), now + Duration::from_millis(pause));
        now = queue.due(now);
    }
    let (shown, sent) = next(&mut queue, now);
    assert_eq!(shown, expected);
    // These come while the call is under way.
    queue.push(orders(1, 7, 0)).unwrap();
    queue.push(orders(1, 7, 1)).unwrap();
    queue.answered(&sent, says(7, vec![Ok(()), Ok(())], 3), now);
    let (shown, sent) = next(&mut queue, now);
    assert_eq!(shown, [(1, 7, 0), (1, 7, 1)]);
    // An answer that does not fit takes nothing.
    queue.answered(&sent, says(7, vec![Ok(())], 3), now);
    assert_eq!(queue.due(now), now + Duration::from_millis(50));
    now = queue.due(now);
    let (shown, sent) = next(&mut queue, now);
    assert_eq!(shown, [(1, 7, 0), (1, 7, 1)]);
    queue.answered(&sent, says(7, vec![Ok(()), Ok(())], 4), now);
    // Nothing is left: it asks from time to time.
    assert_eq!(queue.due(now), now + Duration::from_millis(250));
    assert!(next(&mut queue, now + Duration::from_millis(250)).0.is_empty());
}

#[test]
fn orders_that_are_too_many_or_too_long_for_a_call_are_split() {
    let now = Instant::now();
    let mut queue = queue(now);
    queue.push(orders(1, 1, CALL_COMMANDS + 10)).unwrap();
    queue.push(orders(2, 1, 3)).unwrap();
    let (shown, sent) = next(&mut queue, now);
    assert_eq!(shown, [(1, 1, CALL_COMMANDS)]);
    queue.answered(&sent, says(7, vec![Ok(())], 0), now);
    let (shown, sent) = next(&mut queue, now);
    assert_eq!(shown, [(1, CALL_COMMANDS as u64 + 1, 10), (2, 1, 3)]);
    queue.answered(&sent, says(7, vec![Ok(()), Ok(())], 0), now);

    let signature = Arc::new(Builder::new().build(&(0..700_000).collect::<Vec<_>>()));
    let fit = SIGNATURES_BYTES / signature.as_bytes().len() + 1;
    queue.push(long(1, 1, &signature, fit + 1)).unwrap();
    queue.push(orders(1, fit as u64 + 2, 1)).unwrap();
    let (shown, sent) = next(&mut queue, now);
    assert_eq!(shown, [(1, 1, fit)]);
    queue.answered(&sent, says(7, vec![Ok(())], 0), now);
    assert_eq!(next(&mut queue, now).0, [(1, fit as u64 + 1, 1), (1, fit as u64 + 2, 1)]);
}

#[test]
fn the_queue_is_bounded() {
    let mut queue = Queue::default();
    queue.push(orders(1, 1, COMMANDS_MAX - 1)).unwrap();
    queue.push(orders(2, 1, 1)).unwrap();
    let refused = queue.push(orders(3, 9, 1)).unwrap_err();
    assert!(matches!(refused.error, IndexError::Unavailable(_)), "{refused}");
    assert_eq!(
        (refused.orders.range, refused.orders.first, refused.orders.commands.len()),
        (RangeId(3), 9, 1)
    );
    // One that is too large fits into an empty one.
    let mut queue = Queue::default();
    queue.push(orders(1, 1, 2 * COMMANDS_MAX)).unwrap();
    queue.push(orders(1, 1, 1)).unwrap_err();

    let signature = Arc::new(Builder::new().build(&(0..700_000).collect::<Vec<_>>()));
    let fit = BYTES_MAX / signature.as_bytes().len();
    let mut queue = Queue::default();
    queue.push(long(1, 1, &signature, fit)).unwrap();
    queue.push(long(1, 1, &signature, 1)).unwrap_err();
    queue.push(orders(1, fit as u64 + 1, 1)).unwrap();
    // Announcements are bounded, too.
    let mut queue = Queue::default();
    let pushed = (0..2 * COMMANDS_MAX).take_while(|_| queue.push(orders(1, 1, 0)).is_ok());
    assert_eq!(pushed.count(), COMMANDS_MAX);
}

#[test]
fn a_router_that_was_started_anew_loses_what_its_ranges_had_sent() {
    let now = Instant::now();
    let mut queue = queue(now);
    for range in [1, 2] {
        queue.push(orders(range, 1, 2)).unwrap();
    }
    let (_, sent) = next(&mut queue, now);
    queue.answered(&sent, says(7, vec![Ok(()), Ok(())], 4), now);
    queue.push(orders(1, 3, 1)).unwrap();
    let (shown, sent) = next(&mut queue, now);
    assert_eq!(shown, [(1, 3, 1)]);
    queue.push(orders(1, 4, 1)).unwrap();
    queue.answered(&sent, says(8, Vec::new(), 5), now);
    assert_eq!(queue.waiting(now), Ok(5), "nothing is left in the queue");
    // One that comes afterwards has lost nothing.
    queue.push(orders(3, 1, 1)).unwrap();
    for (range, expected) in [(1, true), (2, true), (3, false), (1, false), (2, false)] {
        assert_eq!(queue.has_lost(RangeId(range)), expected, "{range}");
    }
    let (request, sent) = queue.next_call(now);
    assert_eq!((request.session, of_call(&request)), (Some(8), vec![(3, 1, 1)]));
    queue.answered(&sent, says(9, Vec::new(), 0), now);
    assert!((1..=3).all(|range| queue.has_lost(RangeId(range))), "all of them, once more");
}

#[test]
fn a_range_that_is_refused_waits_and_the_others_go_on() {
    let mut now = Instant::now();
    let mut queue = queue(now);
    for (range, first) in [(1, 1), (2, 1), (1, 2)] {
        queue.push(orders(range, first, 1)).unwrap();
    }
    let why = || Err(IndexError::Unavailable("as it should".to_owned()));
    let (shown, sent) = next(&mut queue, now);
    assert_eq!(shown, [(1, 1, 1), (2, 1, 1), (1, 2, 1)]);
    queue.answered(&sent, says(7, vec![why(), Ok(()), why()], 0), now);
    queue.push(orders(2, 2, 1)).unwrap();
    queue.push(orders(1, 3, 1)).unwrap();
    let (shown, sent) = next(&mut queue, now);
    assert_eq!(shown, [(2, 2, 1)]);
    queue.answered(&sent, says(7, vec![Ok(())], 0), now);
    // The first pause, although two of its orders were refused.
    assert_eq!(queue.due(now), now + Duration::from_millis(50));
    now += SECOND;
    let (shown, sent) = next(&mut queue, now);
    assert_eq!(shown, [(1, 1, 1), (1, 2, 1), (1, 3, 1)]);
    queue.answered(
        &sent,
        says(7, vec![Ok(()), Err(IndexError::Stopping), Err(IndexError::Stopping)], 0),
        now,
    );
    assert!(queue.due(now) > now);
    now += SECOND;
    let (shown, sent) = next(&mut queue, now);
    assert_eq!(shown, [(1, 2, 1), (1, 3, 1)]);
    // Stale ones are dropped alone, and a gap takes all of the range with it.
    let stale = || Err(IndexError::StaleEpoch { present: Epoch(2) });
    queue.answered(&sent, says(7, vec![stale(), Ok(())], 0), now);
    assert_eq!(queue.waiting(now), Ok(0));
    assert!(!queue.has_lost(RangeId(1)));
    for (range, first) in [(1, 9), (2, 3), (1, 10)] {
        queue.push(orders(range, first, 1)).unwrap();
    }
    let (_, sent) = next(&mut queue, now);
    queue.push(orders(1, 11, 1)).unwrap();
    let gap = || Err(IndexError::Gap { expected: 4 });
    queue.answered(&sent, says(7, vec![gap(), why(), gap()], 0), now);
    assert_eq!(queue.waiting(now), Ok(1));
    assert!(queue.has_lost(RangeId(1)) && !queue.has_lost(RangeId(1)) && !queue.has_lost(RangeId(2)));
}

#[test]
fn those_that_wait_are_known_while_the_router_answers() {
    let mut now = Instant::now();
    let mut queue = Queue::default();
    queue.waiting(now).unwrap_err();
    let (_, sent) = queue.next_call(now);
    queue.answered(&sent, says(7, Vec::new(), 40), now);
    queue.push(orders(1, 1, 2)).unwrap();
    assert_eq!(queue.waiting(now), Ok(42));
    now += 5 * SECOND;
    assert_eq!(queue.waiting(now), Ok(42));
    now += SECOND;
    assert!(matches!(queue.waiting(now), Err(IndexError::Unavailable(_))));
    let (_, sent) = next(&mut queue, now);
    queue.answered(
        &sent,
        OrdersAnswer { waiting: Err(IndexError::Stopping), ..says(7, vec![Ok(())], 0) },
        now,
    );
    assert_eq!(queue.waiting(now), Err(IndexError::Stopping));
}

#[test]
fn a_flush_is_told_until_what_was_queued_has_been_sent() {
    let mut now = Instant::now();
    let mut queue = Queue::default();
    queue.flush();
    let (request, sent) = queue.next_call(now);
    assert!(!request.flush);
    queue.answered(&sent, says(7, Vec::new(), 0), now);
    queue.push(orders(1, 1, CALL_COMMANDS + 1)).unwrap();
    let flushes = |queue: &mut Queue, now| {
        let (request, sent) = queue.next_call(now);
        (request.flush, sent)
    };
    let (flush, sent) = flushes(&mut queue, now);
    assert!(flush);
    queue.answered(&sent, says(7, vec![Ok(())], 0), now);
    let (flush, sent) = flushes(&mut queue, now);
    assert!(flush);
    queue.failed(&sent, &lost(), now);
    now += SECOND;
    let (flush, sent) = flushes(&mut queue, now);
    assert!(flush);
    queue.answered(&sent, says(7, vec![Ok(())], 0), now);
    assert!(!flushes(&mut queue, now).0 && queue.due(now) > now);
}

/// A router that keeps what it takes, and refuses a range now and then.
#[derive(Default)]
struct Router(Mutex<Taken>);

#[derive(Default)]
struct Taken {
    next: BTreeMap<RangeId, u64>,
    order: Vec<(RangeId, u64)>,
    calls: usize,
    flushes: usize,
}

impl IndexOrders for Router {
    fn submit(&self, orders: Orders) -> Result<(), RefusedOrders> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.calls += 1;
        if taken.calls.is_multiple_of(13) {
            return Err(RefusedOrders { orders, error: IndexError::Unavailable("as it should".to_owned()) });
        }
        let next = taken.next.get(&orders.range).copied().unwrap_or(1);
        if orders.first > next {
            return Err(RefusedOrders { orders, error: IndexError::Gap { expected: next } });
        }
        let end = orders.first + orders.commands.len() as u64;
        taken.order.extend((next..end).map(|index| (orders.range, index)));
        taken.next.insert(orders.range, next.max(end));
        Ok(())
    }
}

impl Tier2Api for Router {
    fn probe(&self, _: &Signature) -> Result<Vec<Pair>, IndexError> {
        unreachable!("nobody asks")
    }

    fn locate(&self, _: &Signature) -> Result<PartitionLookup, IndexError> {
        unreachable!("nobody asks")
    }

    fn load(&self) -> Result<LoadReport, IndexError> {
        unreachable!("nobody asks")
    }

    fn waiting(&self) -> Result<usize, IndexError> {
        Ok(0)
    }

    fn flush_batch(&self) -> Result<(), IndexError> {
        self.0.lock().unwrap().flushes += 1;
        Ok(())
    }
}

fn until(what: impl Fn() -> bool) {
    let begin = Instant::now();
    while !what() {
        assert!(begin.elapsed() < 20 * SECOND, "it does not come about");
        sleep(Duration::from_millis(2));
    }
}

#[test]
fn the_thread_hands_over_everything_in_order_over_a_way_that_loses_calls() {
    let router = Arc::new(Router::default());
    let (calls, way) = (Mutex::new(0), Arc::clone(&router));
    let courier = Courier::start(move |request| {
        let mut calls = calls.lock().unwrap();
        *calls += 1;
        match *calls % 4 {
            1 => Err(lost()),
            // It arrives, and the answer is lost.
            3 => {
                take(&*way, 7, request);
                Err(lost())
            }
            _ => Ok(take(&*way, 7, request)),
        }
    })
    .unwrap();
    for first in 0..20 {
        for range in 0..3 {
            courier.submit(orders(range, 1 + 2 * first, 2)).unwrap();
        }
    }
    until(|| courier.waiting() == Ok(0));
    courier.flush().unwrap();
    until(|| router.0.lock().unwrap().flushes > 0);
    let taken = router.0.lock().unwrap();
    for range in (0..3).map(RangeId) {
        let of_range: Vec<u64> =
            taken.order.iter().filter(|(of, _)| *of == range).map(|(_, index)| *index).collect();
        assert_eq!(of_range, (1..=40).collect::<Vec<_>>());
        assert!(!courier.has_lost(range));
    }
    drop(taken);
    courier.stop();
    assert_eq!(courier.submit(orders(0, 41, 1)).unwrap_err().error, IndexError::Stopping);
    assert_eq!(courier.flush(), Err(IndexError::Stopping));
    assert_eq!(Arc::strong_count(&router), 1, "the thread has ended");
}

#[test]
fn a_router_takes_what_is_for_its_session_and_nothing_out_of_order() {
    let router = Router::default();
    // The fifth from here on is refused.
    router.0.lock().unwrap().calls = 8;
    let request = |session| {
        let orders =
            [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (3, 2)].map(|(range, first)| orders(range, first, 1));
        OrdersRequest { session, orders: orders.to_vec(), flush: true }
    };
    for session in [None, Some(6)] {
        let answer = take(&router, 7, request(session));
        assert_eq!((answer.session, answer.taken.len()), (7, 0));
        assert_eq!(router.0.lock().unwrap().flushes, 0);
    }
    let answer = take(&router, 7, request(Some(7)));
    // The next one of its range is refused with it: the router is not asked.
    assert_eq!(
        answer.taken.iter().map(Result::is_ok).collect::<Vec<_>>(),
        [true, true, true, true, false, false]
    );
    assert_eq!(answer.taken[4], answer.taken[5]);
    let taken = router.0.lock().unwrap();
    assert_eq!((taken.calls, taken.flushes, taken.next.get(&RangeId(3))), (13, 1, None));
}
