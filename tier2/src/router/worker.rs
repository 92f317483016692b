//! The worker thread of the router. It collects orders until enough have come or the first has waited long
//! enough, and makes passes. Between passes it makes steps of plan changes.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use doppel_protocol::{IndexCommand, Orders};

use super::scheduler::StepOutcome;
use super::{Pass, Router, RouterError};
use crate::config::Config;

/// A message to the worker thread of the router.
pub(crate) enum RouterMessage {
    Orders(Orders),
    /// Start a pass without waiting for more orders.
    Flush,
    /// A plan change may have become due.
    Wake,
    /// A range has announced where its orders begin, so nodes may lack earlier orders.
    Announcement,
    Stop,
}

/// First pause before a failed step is repeated. Each further pause is twice as long.
const RETRY_PAUSE: Duration = Duration::from_millis(10);
/// Longest pause before a failed step is repeated.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Interval at which an idle router checks whether nodes were started anew.
const NODE_CHECK: Duration = Duration::from_secs(1);

impl Router {
    /// Whether the router has nothing to do until it receives a message.
    #[cfg(test)]
    pub(crate) fn is_resting(&self) -> bool {
        self.resting.load(Ordering::Relaxed) && self.waiting() == 0
    }

    /// Number of orders that were accepted and not yet carried out.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Repeats a step of a pass until it succeeds. Returns `false` if the router is stopping.
    fn retry(&self, mut step: impl FnMut() -> Result<(), RouterError>) -> bool {
        let (mut pause, mut times) = (RETRY_PAUSE, 0_u32);
        loop {
            match step() {
                Ok(()) => return true,
                Err(RouterError::Stopping) => return false,
                Err(error) => {
                    if self.is_stopping() {
                        return false;
                    }
                    times += 1;
                    // Logged with growing intervals. A node that stays away would fill the log.
                    if times.is_power_of_two() {
                        tracing::warn!(%error, times, "a step of a pass failed; trying again");
                    }
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(RETRY_PAUSE_MAX);
                    if self.has_lost_nodes() {
                        self.run_step();
                    }
                }
            }
        }
    }
}

/// Orders that wait for a pass.
#[derive(Default)]
struct OrderBuffer {
    /// Each run has orders of one range and epoch, without gaps. The runs of a range are in order.
    runs: Vec<Orders>,
    count: usize,
}

impl OrderBuffer {
    fn push(&mut self, orders: Orders) {
        self.count += orders.commands.len();
        // Even a short pass costs calls to every node. Orders of the same range are therefore combined, even
        // if orders of other ranges came in between.
        let of_range = self.runs.iter_mut().rev().find(|run| run.range == orders.range);
        match of_range {
            Some(last)
                if last.epoch == orders.epoch && last.first + last.commands.len() as u64 == orders.first =>
            {
                last.commands.extend(orders.commands);
            }
            Some(_) | None => self.runs.push(orders),
        }
    }

    /// Removes the first orders: at most `limit`, all of one range.
    fn take(&mut self, limit: usize) -> Option<Orders> {
        let first = self.runs.first_mut()?;
        let rest: Vec<IndexCommand> = first.commands.split_off(limit.min(first.commands.len()));
        let next = Orders { first: first.first + first.commands.len() as u64, commands: rest, ..*first };
        let taken =
            if next.commands.is_empty() { self.runs.remove(0) } else { std::mem::replace(first, next) };
        self.count -= taken.commands.len();
        Some(taken)
    }
}

/// The work of the thread, until it is stopped.
pub(crate) fn run_worker(router: &Router, received: &Receiver<RouterMessage>) {
    let (mut buffer, mut pass) = (OrderBuffer::default(), Pass::default());
    // First, the nodes are told what to host. If that fails, it is repeated between passes.
    router.run_step();
    router.maintain(0);
    loop {
        let goes_on = if pass.has_searches() {
            take_received(router, received, &mut buffer)
        } else {
            collect(router, received, &mut buffer)
        };
        if !goes_on {
            return;
        }
        let mut stored = 0;
        while let Some(orders) = buffer.take(router.config.batch_max) {
            stored += orders.commands.len();
            pass.take(router, orders);
            if !router.retry(|| pass.store(router)) {
                return;
            }
        }
        if !router.retry(|| pass.search(router).and_then(|()| router.deliver_repeats())) {
            return;
        }
        router.maintain(stored);
        router.save_if_due();
    }
}

/// Takes the messages that have come, without waiting. Returns `false` if the router is stopping.
fn take_received(router: &Router, received: &Receiver<RouterMessage>, buffer: &mut OrderBuffer) -> bool {
    loop {
        match received.try_recv() {
            Ok(RouterMessage::Orders(orders)) => buffer.push(orders),
            Ok(RouterMessage::Wake | RouterMessage::Flush) => {}
            Ok(RouterMessage::Announcement) => router.check_nodes(),
            Err(TryRecvError::Empty) => return true,
            Ok(RouterMessage::Stop) | Err(TryRecvError::Disconnected) => return false,
        }
    }
}

/// Waits until a pass is due. Returns `false` if the router is stopping.
fn collect(router: &Router, received: &Receiver<RouterMessage>, buffer: &mut OrderBuffer) -> bool {
    let Config { batch_max, batch_age, .. } = router.config;
    let mut deadline: Option<Instant> = None;
    while buffer.count < batch_max {
        let message = match deadline {
            Some(deadline) if deadline <= Instant::now() => Err(RecvTimeoutError::Timeout),
            _ => match received.try_recv() {
                Ok(message) => Ok(message),
                Err(TryRecvError::Disconnected) => Err(RecvTimeoutError::Disconnected),
                // No message waits, so there is time for a step.
                Err(TryRecvError::Empty) => match (router.run_step(), deadline) {
                    (StepOutcome::Advanced, _) => {
                        std::thread::yield_now();
                        continue;
                    }
                    (step, None) => {
                        router.resting.store(step == StepOutcome::Idle, Ordering::Relaxed);
                        let message = received.recv_timeout(NODE_CHECK);
                        router.resting.store(false, Ordering::Relaxed);
                        if matches!(message, Err(RecvTimeoutError::Timeout)) {
                            router.check_nodes();
                            router.deliver_owed_repeats();
                            router.save_if_due();
                            continue;
                        }
                        message
                    }
                    (_, Some(deadline)) => {
                        received.recv_timeout(deadline.saturating_duration_since(Instant::now()))
                    }
                },
            },
        };
        match message {
            Ok(RouterMessage::Orders(orders)) => {
                buffer.push(orders);
                deadline = deadline.or_else(|| Instant::now().checked_add(batch_age));
            }
            Ok(RouterMessage::Wake) => {}
            Ok(RouterMessage::Announcement) => router.check_nodes(),
            Ok(RouterMessage::Flush) if buffer.count == 0 => (),
            Ok(RouterMessage::Flush) | Err(RecvTimeoutError::Timeout) => return true,
            Ok(RouterMessage::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use doppel_model::{ContentHash, Epoch, PageId, RangeId};

    use super::*;

    fn orders(range: u16, epoch: u64, first: u64, count: u8) -> Orders {
        let remove =
            |n| IndexCommand::Remove { page: PageId::from_bytes([n; 16]), content: ContentHash([n; 16]) };
        Orders {
            range: RangeId(range),
            epoch: Epoch(epoch),
            first,
            commands: (0..count).map(remove).collect(),
        }
    }

    #[test]
    fn interleaved_orders_of_ranges_are_combined_and_stay_in_order() {
        let mut buffer = OrderBuffer::default();
        for given in [
            orders(0, 1, 1, 2),
            orders(1, 1, 5, 1),
            orders(0, 1, 3, 1),
            orders(1, 2, 1, 1),
            orders(1, 2, 2, 2),
        ] {
            buffer.push(given);
        }
        assert_eq!(buffer.count, 7);
        let taken: Vec<_> = std::iter::from_fn(|| buffer.take(2))
            .map(|orders| (orders.range.0, orders.epoch.0, orders.first, orders.commands.len()))
            .collect();
        assert_eq!(taken, [(0, 1, 1, 2), (0, 1, 3, 1), (1, 1, 5, 1), (1, 2, 1, 2), (1, 2, 3, 1)]);
        assert_eq!(buffer.count, 0);
    }
}
