//! Tests of the queue with a clock that the test sets, and of its thread with a router in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use doppel_contract::LoadReport;
use doppel_model::signature::{Builder, Signature};
use doppel_model::{ContentHash, Epoch, PageId, RangeId};
use doppel_protocol::{
    IndexCommand, IndexError, IndexOrders, Orders, PartitionLookup, RefusedOrders, Tier2Api, VerifiedPartner,
};

use super::order_sender::OrderSender;
use super::queue::{BYTES_MAX, CALL_COMMANDS, COMMANDS_MAX, InFlightCall, Queue};
use super::{OrdersAnswer, OrdersRequest, accept};
use crate::transport::call_sizes::SIGNATURES_BYTES;
use crate::transport::wire_error::WireError;

const SECOND: Duration = Duration::from_secs(1);

fn orders(range: u16, first: u64, count: usize) -> Orders {
    let remove = IndexCommand::Remove { page: PageId::from_bytes([1; 16]), content: content() };
    Orders { range: RangeId(range), epoch: Epoch(1), first, commands: vec![remove; count] }
}

fn content() -> ContentHash {
    Builder::new().build(&[1]).content()
}

/// Returns orders with a signature each.
fn orders_with_signatures(range: u16, first: u64, signature: &Arc<Signature>, count: usize) -> Orders {
    let put = IndexCommand::Put {
        page: PageId::from_bytes([1; 16]),
        signature: Arc::clone(signature),
        search: None,
    };
    Orders { commands: vec![put; count], ..orders(range, first, 0) }
}

/// Returns the range, first index and number of each of the orders in a call.
fn orders_of_call(request: &OrdersRequest) -> Vec<(u16, u64, usize)> {
    request.orders.iter().map(|orders| (orders.range.0, orders.first, orders.commands.len())).collect()
}

/// Creates the answer of a router.
fn answer_of(session: u64, outcomes: Vec<Result<(), IndexError>>, waiting: u64) -> OrdersAnswer {
    OrdersAnswer { session, outcomes, waiting: Ok(waiting) }
}

fn lost_call() -> WireError {
    let (node, address) = ("router".parse().unwrap(), "127.0.0.1:1".into());
    WireError::Unreachable { node, address, reason: "simulated failure".to_owned(), unsent: false }
}

/// Returns a queue that knows the session 7.
fn queue(now: Instant) -> Queue {
    let mut queue = Queue::default();
    let (request, call) = queue.next_call(now);
    assert!(request.session.is_none() && request.orders.is_empty());
    queue.record_answer(&call, answer_of(7, Vec::new(), 0), now);
    queue
}

/// Makes the next call, which must be due.
fn next(queue: &mut Queue, now: Instant) -> (Vec<(u16, u64, usize)>, InFlightCall) {
    assert!(queue.due(now) <= now, "a call is due");
    let (request, call) = queue.next_call(now);
    (orders_of_call(&request), call)
}

#[test]
fn orders_are_sent_in_sequence_until_the_router_accepts_them() {
    let mut now = Instant::now();
    let mut queue = Queue::default();
    queue.push(orders(1, 5, 2)).unwrap();
    queue.push(orders(2, 1, 1)).unwrap();
    // The orders wait until the session is known. The first known session loses no orders.
    let (request, call) = queue.next_call(now);
    assert!(request.session.is_none() && request.orders.is_empty());
    queue.record_answer(&call, answer_of(7, Vec::new(), 0), now);
    assert!(!queue.has_lost(RangeId(1)));
    let expected = [(1, 5, 2), (2, 1, 1)];
    for pause in [50, 100, 200, 400, 800, 1_000, 1_000] {
        let (shown, call) = next(&mut queue, now);
        assert_eq!(shown, expected);
        queue.record_failure(&call, &lost_call(), now);
        assert_eq!(queue.due(now), now + Duration::from_millis(pause));
        now = queue.due(now);
    }
    let (shown, call) = next(&mut queue, now);
    assert_eq!(shown, expected);
    // These orders arrive during the call.
    queue.push(orders(1, 7, 0)).unwrap();
    queue.push(orders(1, 7, 1)).unwrap();
    queue.record_answer(&call, answer_of(7, vec![Ok(()), Ok(())], 3), now);
    let (shown, call) = next(&mut queue, now);
    assert_eq!(shown, [(1, 7, 0), (1, 7, 1)]);
    // An answer with a wrong number of outcomes changes nothing.
    queue.record_answer(&call, answer_of(7, vec![Ok(())], 3), now);
    assert_eq!(queue.due(now), now + Duration::from_millis(50));
    now = queue.due(now);
    let (shown, call) = next(&mut queue, now);
    assert_eq!(shown, [(1, 7, 0), (1, 7, 1)]);
    queue.record_answer(&call, answer_of(7, vec![Ok(()), Ok(())], 4), now);
    // The queue is empty: the next call only asks for the state of the router.
    assert_eq!(queue.due(now), now + Duration::from_millis(250));
    assert!(next(&mut queue, now + Duration::from_millis(250)).0.is_empty());
}

#[test]
fn orders_that_are_too_many_or_too_long_for_a_call_are_split() {
    let now = Instant::now();
    let mut queue = queue(now);
    queue.push(orders(1, 1, CALL_COMMANDS + 10)).unwrap();
    queue.push(orders(2, 1, 3)).unwrap();
    let (shown, call) = next(&mut queue, now);
    assert_eq!(shown, [(1, 1, CALL_COMMANDS)]);
    queue.record_answer(&call, answer_of(7, vec![Ok(())], 0), now);
    let (shown, call) = next(&mut queue, now);
    assert_eq!(shown, [(1, CALL_COMMANDS as u64 + 1, 10), (2, 1, 3)]);
    queue.record_answer(&call, answer_of(7, vec![Ok(()), Ok(())], 0), now);

    let signature = Arc::new(Builder::new().build(&(0..700_000).collect::<Vec<_>>()));
    let fit = SIGNATURES_BYTES / signature.as_bytes().len() + 1;
    queue.push(orders_with_signatures(1, 1, &signature, fit + 1)).unwrap();
    queue.push(orders(1, fit as u64 + 2, 1)).unwrap();
    let (shown, call) = next(&mut queue, now);
    assert_eq!(shown, [(1, 1, fit)]);
    queue.record_answer(&call, answer_of(7, vec![Ok(())], 0), now);
    assert_eq!(next(&mut queue, now).0, [(1, fit as u64 + 1, 1), (1, fit as u64 + 2, 1)]);
}

#[test]
fn a_full_queue_refuses_orders() {
    let mut queue = Queue::default();
    queue.push(orders(1, 1, COMMANDS_MAX - 1)).unwrap();
    queue.push(orders(2, 1, 1)).unwrap();
    let refused = queue.push(orders(3, 9, 1)).unwrap_err();
    assert!(matches!(refused.error, IndexError::Unavailable(_)), "{refused}");
    assert_eq!(
        (refused.orders.range, refused.orders.first, refused.orders.commands.len()),
        (RangeId(3), 9, 1)
    );
    // Oversized orders fit into an empty queue.
    let mut queue = Queue::default();
    queue.push(orders(1, 1, 2 * COMMANDS_MAX)).unwrap();
    queue.push(orders(1, 1, 1)).unwrap_err();

    let signature = Arc::new(Builder::new().build(&(0..700_000).collect::<Vec<_>>()));
    let fit = BYTES_MAX / signature.as_bytes().len();
    let mut queue = Queue::default();
    queue.push(orders_with_signatures(1, 1, &signature, fit)).unwrap();
    queue.push(orders_with_signatures(1, 1, &signature, 1)).unwrap_err();
    queue.push(orders(1, fit as u64 + 1, 1)).unwrap();
    // Announcements without commands are bounded, too.
    let mut queue = Queue::default();
    let pushed = (0..2 * COMMANDS_MAX).take_while(|_| queue.push(orders(1, 1, 0)).is_ok());
    assert_eq!(pushed.count(), COMMANDS_MAX);
}

#[test]
fn a_new_session_means_lost_orders_for_every_range_that_sent_some() {
    let now = Instant::now();
    let mut queue = queue(now);
    for range in [1, 2] {
        queue.push(orders(range, 1, 2)).unwrap();
    }
    let (_, call) = next(&mut queue, now);
    queue.record_answer(&call, answer_of(7, vec![Ok(()), Ok(())], 4), now);
    queue.push(orders(1, 3, 1)).unwrap();
    let (shown, call) = next(&mut queue, now);
    assert_eq!(shown, [(1, 3, 1)]);
    queue.push(orders(1, 4, 1)).unwrap();
    queue.record_answer(&call, answer_of(8, Vec::new(), 5), now);
    assert_eq!(queue.waiting(now), Ok(5), "the queue is empty");
    // A range that joins later has lost nothing.
    queue.push(orders(3, 1, 1)).unwrap();
    for (range, expected) in [(1, true), (2, true), (3, false), (1, false), (2, false)] {
        assert_eq!(queue.has_lost(RangeId(range)), expected, "{range}");
    }
    let (request, call) = queue.next_call(now);
    assert_eq!((request.session, orders_of_call(&request)), (Some(8), vec![(3, 1, 1)]));
    queue.record_answer(&call, answer_of(9, Vec::new(), 0), now);
    assert!((1..=3).all(|range| queue.has_lost(RangeId(range))), "every range has lost orders again");
}

#[test]
fn a_refused_range_waits_while_other_ranges_go_on() {
    let mut now = Instant::now();
    let mut queue = queue(now);
    for (range, first) in [(1, 1), (2, 1), (1, 2)] {
        queue.push(orders(range, first, 1)).unwrap();
    }
    let why = || Err(IndexError::Unavailable("simulated failure".to_owned()));
    let (shown, call) = next(&mut queue, now);
    assert_eq!(shown, [(1, 1, 1), (2, 1, 1), (1, 2, 1)]);
    queue.record_answer(&call, answer_of(7, vec![why(), Ok(()), why()], 0), now);
    queue.push(orders(2, 2, 1)).unwrap();
    queue.push(orders(1, 3, 1)).unwrap();
    let (shown, call) = next(&mut queue, now);
    assert_eq!(shown, [(2, 2, 1)]);
    queue.record_answer(&call, answer_of(7, vec![Ok(())], 0), now);
    // The pause is the first one, although two of the range's orders were refused.
    assert_eq!(queue.due(now), now + Duration::from_millis(50));
    now += SECOND;
    let (shown, call) = next(&mut queue, now);
    assert_eq!(shown, [(1, 1, 1), (1, 2, 1), (1, 3, 1)]);
    queue.record_answer(
        &call,
        answer_of(7, vec![Ok(()), Err(IndexError::Stopping), Err(IndexError::Stopping)], 0),
        now,
    );
    assert!(queue.due(now) > now);
    now += SECOND;
    let (shown, call) = next(&mut queue, now);
    assert_eq!(shown, [(1, 2, 1), (1, 3, 1)]);
    // Stale orders are dropped alone, but a gap drops all orders of its range.
    let stale = || Err(IndexError::StaleEpoch { present: Epoch(2) });
    queue.record_answer(&call, answer_of(7, vec![stale(), Ok(())], 0), now);
    assert_eq!(queue.waiting(now), Ok(0));
    assert!(!queue.has_lost(RangeId(1)));
    for (range, first) in [(1, 9), (2, 3), (1, 10)] {
        queue.push(orders(range, first, 1)).unwrap();
    }
    let (_, call) = next(&mut queue, now);
    queue.push(orders(1, 11, 1)).unwrap();
    let gap = || Err(IndexError::Gap { expected: 4 });
    queue.record_answer(&call, answer_of(7, vec![gap(), why(), gap()], 0), now);
    assert_eq!(queue.waiting(now), Ok(1));
    assert!(queue.has_lost(RangeId(1)) && !queue.has_lost(RangeId(1)) && !queue.has_lost(RangeId(2)));
}

#[test]
fn the_number_of_waiting_orders_is_known_while_the_router_answers() {
    let mut now = Instant::now();
    let mut queue = Queue::default();
    queue.waiting(now).unwrap_err();
    let (_, call) = queue.next_call(now);
    queue.record_answer(&call, answer_of(7, Vec::new(), 40), now);
    queue.push(orders(1, 1, 2)).unwrap();
    assert_eq!(queue.waiting(now), Ok(42));
    now += 5 * SECOND;
    assert_eq!(queue.waiting(now), Ok(42));
    now += SECOND;
    assert!(matches!(queue.waiting(now), Err(IndexError::Unavailable(_))));
    let (_, call) = next(&mut queue, now);
    queue.record_answer(
        &call,
        OrdersAnswer { waiting: Err(IndexError::Stopping), ..answer_of(7, vec![Ok(())], 0) },
        now,
    );
    assert_eq!(queue.waiting(now), Err(IndexError::Stopping));
}

#[test]
fn a_flush_is_requested_until_all_queued_orders_have_been_sent() {
    let mut now = Instant::now();
    let mut queue = Queue::default();
    queue.flush();
    let (request, call) = queue.next_call(now);
    assert!(!request.flush);
    queue.record_answer(&call, answer_of(7, Vec::new(), 0), now);
    queue.push(orders(1, 1, CALL_COMMANDS + 1)).unwrap();
    let flushes = |queue: &mut Queue, now| {
        let (request, call) = queue.next_call(now);
        (request.flush, call)
    };
    let (flush, call) = flushes(&mut queue, now);
    assert!(flush);
    queue.record_answer(&call, answer_of(7, vec![Ok(())], 0), now);
    let (flush, call) = flushes(&mut queue, now);
    assert!(flush);
    queue.record_failure(&call, &lost_call(), now);
    now += SECOND;
    let (flush, call) = flushes(&mut queue, now);
    assert!(flush);
    queue.record_answer(&call, answer_of(7, vec![Ok(())], 0), now);
    assert!(!flushes(&mut queue, now).0 && queue.due(now) > now);
}

/// A router that records the orders that it accepts, and refuses a range now and then.
#[derive(Default)]
struct RouterApi(Mutex<AcceptedOrders>);

#[derive(Default)]
struct AcceptedOrders {
    next: BTreeMap<RangeId, u64>,
    order: Vec<(RangeId, u64)>,
    calls: usize,
    flushes: usize,
}

impl IndexOrders for RouterApi {
    fn submit(&self, orders: Orders) -> Result<(), RefusedOrders> {
        let mut accepted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        accepted.calls += 1;
        if accepted.calls.is_multiple_of(13) {
            return Err(RefusedOrders {
                orders,
                error: IndexError::Unavailable("simulated failure".to_owned()),
            });
        }
        let next = accepted.next.get(&orders.range).copied().unwrap_or(1);
        if orders.first > next {
            return Err(RefusedOrders { orders, error: IndexError::Gap { expected: next } });
        }
        let end = orders.first + orders.commands.len() as u64;
        accepted.order.extend((next..end).map(|index| (orders.range, index)));
        accepted.next.insert(orders.range, next.max(end));
        Ok(())
    }
}

impl Tier2Api for RouterApi {
    fn probe(&self, _: &Signature) -> Result<Vec<VerifiedPartner>, IndexError> {
        unreachable!("the test does not make this call")
    }

    fn locate(&self, _: &Signature) -> Result<PartitionLookup, IndexError> {
        unreachable!("the test does not make this call")
    }

    fn load(&self) -> Result<LoadReport, IndexError> {
        unreachable!("the test does not make this call")
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
        assert!(begin.elapsed() < 20 * SECOND, "the condition is not met in time");
        sleep(Duration::from_millis(2));
    }
}

#[test]
fn the_thread_delivers_all_orders_in_sequence_although_calls_are_lost() {
    let router = Arc::new(RouterApi::default());
    let (calls, location) = (Mutex::new(0), Arc::clone(&router));
    let sender = OrderSender::start(move |request| {
        let mut calls = calls.lock().unwrap();
        *calls += 1;
        match *calls % 4 {
            1 => Err(lost_call()),
            // The request arrives, but the answer is lost.
            3 => {
                accept(&*location, 7, request);
                Err(lost_call())
            }
            _ => Ok(accept(&*location, 7, request)),
        }
    })
    .unwrap();
    for first in 0..20 {
        for range in 0..3 {
            sender.submit(orders(range, 1 + 2 * first, 2)).unwrap();
        }
    }
    until(|| sender.waiting() == Ok(0));
    sender.flush().unwrap();
    until(|| router.0.lock().unwrap().flushes > 0);
    let accepted = router.0.lock().unwrap();
    for range in (0..3).map(RangeId) {
        let of_range: Vec<u64> =
            accepted.order.iter().filter(|(of, _)| *of == range).map(|(_, index)| *index).collect();
        assert_eq!(of_range, (1..=40).collect::<Vec<_>>());
        assert!(!sender.has_lost(range));
    }
    drop(accepted);
    sender.stop();
    assert_eq!(sender.submit(orders(0, 41, 1)).unwrap_err().error, IndexError::Stopping);
    assert_eq!(sender.flush(), Err(IndexError::Stopping));
    assert_eq!(Arc::strong_count(&router), 1, "the thread has ended");
}

#[test]
fn a_router_accepts_only_orders_of_its_session_and_in_sequence() {
    let router = RouterApi::default();
    // The fifth call from now on is refused.
    router.0.lock().unwrap().calls = 8;
    let request = |session| {
        let orders =
            [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (3, 2)].map(|(range, first)| orders(range, first, 1));
        OrdersRequest { session, orders: orders.to_vec(), flush: true }
    };
    for session in [None, Some(6)] {
        let answer = accept(&router, 7, request(session));
        assert_eq!((answer.session, answer.outcomes.len()), (7, 0));
        assert_eq!(router.0.lock().unwrap().flushes, 0);
    }
    let answer = accept(&router, 7, request(Some(7)));
    // The next orders of the same range are refused without asking the router.
    assert_eq!(
        answer.outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(),
        [true, true, true, true, false, false]
    );
    assert_eq!(answer.outcomes[4], answer.outcomes[5]);
    let accepted = router.0.lock().unwrap();
    assert_eq!((accepted.calls, accepted.flushes, accepted.next.get(&RangeId(3))), (13, 1, None));
}
