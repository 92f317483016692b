//! The thread that sends the queue of orders.

use std::fmt::Display;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use doppel_model::RangeId;
use doppel_protocol::{IndexError, Orders, RefusedOrders};

use super::queue::Queue;
use super::{OrdersAnswer, OrdersRequest};

/// The queue of orders, and the thread that sends it.
pub(super) struct OrderSender {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Signals that there may be something to send, or that the thread must stop.
    wake: Condvar,
}

#[derive(Default)]
struct State {
    queue: Queue,
    is_stopping: bool,
}

impl OrderSender {
    /// Starts the thread. `send` transmits a request to the router.
    pub(super) fn start<E: Display>(
        send: impl Fn(OrdersRequest) -> Result<OrdersAnswer, E> + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let run = {
            let shared = Arc::clone(&shared);
            move || shared.run(send)
        };
        // Without this thread, tier 2 receives no orders, and a panic may leave the queue half changed.
        let thread = doppel_threads::spawn_vital("tier2-orders".to_owned(), run)?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    pub(super) fn submit(&self, orders: Orders) -> Result<(), RefusedOrders> {
        let mut state = self.shared.lock();
        if state.is_stopping {
            return Err(RefusedOrders { orders, error: IndexError::Stopping });
        }
        state.queue.push(orders)?;
        self.shared.wake.notify_one();
        Ok(())
    }

    pub(super) fn flush(&self) -> Result<(), IndexError> {
        let mut state = self.shared.lock();
        if state.is_stopping {
            return Err(IndexError::Stopping);
        }
        state.queue.flush();
        self.shared.wake.notify_one();
        Ok(())
    }

    pub(super) fn waiting(&self) -> Result<usize, IndexError> {
        self.shared.lock().queue.waiting(Instant::now())
    }

    pub(super) fn has_lost(&self, range: RangeId) -> bool {
        self.shared.lock().queue.has_lost(range)
    }

    /// Stops the thread and waits for its end.
    pub(super) fn stop(&self) {
        self.shared.lock().is_stopping = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The thread does not panic.
            drop(thread.join());
        }
    }
}

impl Drop for OrderSender {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run<E: Display>(&self, send: impl Fn(OrdersRequest) -> Result<OrdersAnswer, E>) {
        let mut state = self.lock();
        while !state.is_stopping {
            let now = Instant::now();
            let wait = state.queue.due(now).saturating_duration_since(now);
            if !wait.is_zero() {
                state = self.wake.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let (request, call) = state.queue.next_call(now);
            drop(state);
            let answer = send(request);
            state = self.lock();
            let now = Instant::now();
            match answer {
                Ok(answer) => state.queue.record_answer(&call, answer, now),
                Err(error) => state.queue.record_failure(&call, &error, now),
            }
        }
    }
}
