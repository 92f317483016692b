//! The router's thread: it collects orders by count or age, and makes passes. Between them it changes the mapping, one
//! step after the other.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use doppel_protocol::{IndexCommand, Orders};

use super::scheduler::Step;
use super::{Pass, Router, RouterError};
use crate::config::Config;

/// What waits for the thread.
pub(crate) enum Message {
    Orders(Orders),
    /// Do not wait for more orders.
    Flush,
    /// There is something to do between passes.
    Wake,
    /// Nodes may lack orders that will not come any more.
    Announced,
    Stop,
}

/// How long a failed call waits before it is made again, at first and at most.
const RETRY: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_secs(1);

/// How often nodes are asked whether they are what they were, when there is nothing else to do.
const HEARTBEAT: Duration = Duration::from_secs(1);

impl Router {
    /// Whether there is nothing to do until somebody asks.
    #[cfg(test)]
    pub(crate) fn is_resting(&self) -> bool {
        self.resting.load(Ordering::Relaxed) && self.waiting() == 0
    }

    /// Orders accepted and not yet carried out.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Does a step of a pass, however often it has to be tried. False when it is time to stop.
    fn insist(&self, mut step: impl FnMut() -> Result<(), RouterError>) -> bool {
        let (mut pause, mut times) = (RETRY, 0_u32);
        loop {
            match step() {
                Ok(()) => return true,
                Err(RouterError::Stopping) => return false,
                Err(error) => {
                    if self.is_stopping() {
                        return false;
                    }
                    times += 1;
                    // A node that stays away would fill the log.
                    if times.is_power_of_two() {
                        tracing::warn!(%error, times, "a pass waits");
                    }
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(RETRY_MAX);
                    if self.has_lost() {
                        self.work();
                    }
                }
            }
        }
    }
}

/// Orders that wait for a pass, in order.
#[derive(Default)]
struct Waiting {
    /// Of one range and epoch each, without a gap; those of a range in order.
    runs: Vec<Orders>,
    count: usize,
}

impl Waiting {
    fn push(&mut self, orders: Orders) {
        self.count += orders.commands.len();
        // A pass costs calls of every node, however short it is, so what ranges give in turn is put together.
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

    /// The first orders, of one range, at most `limit`.
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

/// The thread's work, until it is stopped.
pub(crate) fn work(router: &Router, received: &Receiver<Message>) {
    let (mut waiting, mut pass) = (Waiting::default(), Pass::default());
    // Nodes are told first what they have. If that fails, it is tried again whenever there is time.
    router.work();
    router.maintain(0);
    loop {
        let goes_on = if pass.has_searches() {
            take_received(router, received, &mut waiting)
        } else {
            collect(router, received, &mut waiting)
        };
        if !goes_on {
            return;
        }
        let mut stored = 0;
        while let Some(orders) = waiting.take(router.config.batch_max) {
            stored += orders.commands.len();
            pass.take(router, orders);
            if !router.insist(|| pass.store(router)) {
                return;
            }
        }
        if !router.insist(|| pass.search(router).and_then(|()| router.take_repeats())) {
            return;
        }
        router.maintain(stored);
        router.tend_snapshots();
    }
}

/// Takes what has come, while searches wait; false when it is time to stop.
fn take_received(router: &Router, received: &Receiver<Message>, waiting: &mut Waiting) -> bool {
    loop {
        match received.try_recv() {
            Ok(Message::Orders(orders)) => waiting.push(orders),
            Ok(Message::Wake | Message::Flush) => {}
            Ok(Message::Announced) => router.check_nodes(),
            Err(TryRecvError::Empty) => return true,
            Ok(Message::Stop) | Err(TryRecvError::Disconnected) => return false,
        }
    }
}

/// Waits until a pass is due; false when it is time to stop.
fn collect(router: &Router, received: &Receiver<Message>, waiting: &mut Waiting) -> bool {
    let Config { batch_max, batch_age, .. } = router.config;
    let mut deadline: Option<Instant> = None;
    while waiting.count < batch_max {
        let message = match deadline {
            Some(deadline) if deadline <= Instant::now() => Err(RecvTimeoutError::Timeout),
            _ => match received.try_recv() {
                Ok(message) => Ok(message),
                Err(TryRecvError::Disconnected) => Err(RecvTimeoutError::Disconnected),
                // Nobody waits for this.
                Err(TryRecvError::Empty) => match (router.work(), deadline) {
                    (Step::Made, _) => {
                        std::thread::yield_now();
                        continue;
                    }
                    (step, None) => {
                        router.resting.store(step == Step::Idle, Ordering::Relaxed);
                        let message = received.recv_timeout(HEARTBEAT);
                        router.resting.store(false, Ordering::Relaxed);
                        if matches!(message, Err(RecvTimeoutError::Timeout)) {
                            router.check_nodes();
                            router.take_owed_repeats();
                            router.tend_snapshots();
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
            Ok(Message::Orders(orders)) => {
                waiting.push(orders);
                deadline = deadline.or_else(|| Instant::now().checked_add(batch_age));
            }
            Ok(Message::Wake) => {}
            Ok(Message::Announced) => router.check_nodes(),
            Ok(Message::Flush) if waiting.count == 0 => (),
            Ok(Message::Flush) | Err(RecvTimeoutError::Timeout) => return true,
            Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
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
    fn what_ranges_give_in_turn_is_put_together_and_stays_in_its_order() {
        let mut waiting = Waiting::default();
        for given in [
            orders(0, 1, 1, 2),
            orders(1, 1, 5, 1),
            orders(0, 1, 3, 1),
            orders(1, 2, 1, 1),
            orders(1, 2, 2, 2),
        ] {
            waiting.push(given);
        }
        assert_eq!(waiting.count, 7);
        let taken: Vec<_> = std::iter::from_fn(|| waiting.take(2))
            .map(|orders| (orders.range.0, orders.epoch.0, orders.first, orders.commands.len()))
            .collect();
        assert_eq!(taken, [(0, 1, 1, 2), (0, 1, 3, 1), (1, 1, 5, 1), (1, 2, 1, 2), (1, 2, 3, 1)]);
        assert_eq!(waiting.count, 0);
    }
}
