//! Runs blocking calls of the tiers on threads that may block, with bounds on the number of calls and on the
//! waiting time of callers (guarantee G6).
//!
//! Invariants:
//!
//! - A call holds its permit until it ends, whether or not its caller still waits.
//! - A caller waits no longer than its time limit. A late call is not cancelled: it continues without its
//!   caller, and keeps the permits of its request ([`with_permits`]). A client that disconnects repeatedly
//!   therefore never has more calls running than its share of requests.
//! - Low-priority work runs on at most the configured number of threads at once.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use doppel_threads::{LoweredPriority, lower_priority};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::{block_in_place, spawn_blocking};
use tokio::task_local;
use tokio::time::timeout;
use tracing::Span;

use crate::limits::HEALTH_CALLS;
use crate::problem::Problem;

/// The permits that a request holds while it is in progress.
pub(crate) type RequestPermits = Arc<dyn Any + Send + Sync>;

/// A call that puts its answer aside. Threads, permits and time limits are compiled once for all such calls,
/// and not once for each call.
type Work = Box<dyn FnOnce() + Send>;

/// Waits for the end of a [`Work`].
type WorkEnd<'c> = Pin<Box<dyn Future<Output = Result<(), Problem>> + Send + 'c>>;

task_local! {
    /// Permits of the current request.
    static PERMITS: RequestPermits;
}

/// Runs `answer` for a request that holds `request_permits`. Calls that the request starts on other threads
/// keep `request_permits` until they end.
pub(crate) async fn with_permits<T>(request_permits: RequestPermits, answer: impl Future<Output = T>) -> T {
    PERMITS.scope(request_permits, answer).await
}

fn current_permits() -> Option<RequestPermits> {
    PERMITS.try_with(Arc::clone).ok()
}

/// Permits for blocking calls.
#[derive(Debug)]
pub(crate) struct BlockingCalls {
    requests: Arc<Semaphore>,
    health: Arc<Semaphore>,
    low_priority: Arc<Semaphore>,
}

impl BlockingCalls {
    /// Allows `requests` calls of requests at once, of which `low_priority` may do low-priority work. Health
    /// checks and metrics have [`HEALTH_CALLS`] permits of their own.
    pub(crate) fn new(requests: usize, low_priority: usize) -> Self {
        let permits = |count| Arc::new(Semaphore::new(count));
        Self {
            requests: permits(requests),
            health: permits(HEALTH_CALLS),
            low_priority: permits(low_priority),
        }
    }

    /// Runs a call of a request on a thread that may block.
    ///
    /// # Errors
    /// 503 if too many calls are running or this call does not end within `time`; otherwise the error of the
    /// call.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        time: Duration,
        call: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let (work, answer) = work_of(call);
        self.run_work(time, work).await?;
        take_answer(answer)
    }

    fn run_work(&self, time: Duration, work: Work) -> WorkEnd<'_> {
        Box::pin(async move {
            let permit = self.permit()?;
            timeout(time, on_thread(permit, work)).await.unwrap_or_else(|_| Err(Problem::timed_out(time)))
        })
    }

    /// Like [`run`](Self::run), but for health checks and metrics. They wait for a permit from a small
    /// reserve that no other call uses.
    ///
    /// # Errors
    /// 503 if the call does not end within `time`; otherwise the error of the call.
    pub(crate) async fn run_for_health<T: Send + 'static>(
        &self,
        time: Duration,
        call: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let (work, answer) = work_of(call);
        self.run_work_for_health(time, work).await?;
        take_answer(answer)
    }

    fn run_work_for_health(&self, time: Duration, work: Work) -> WorkEnd<'_> {
        Box::pin(async move {
            let ended = async {
                let permit = self.health.clone().acquire_owned().await.map_err(|_| Problem::internal())?;
                on_thread(permit, work).await
            };
            timeout(time, ended).await.unwrap_or_else(|_| Err(Problem::timed_out(time)))
        })
    }

    /// Runs a short call on the current thread, and moves the other tasks of this thread to another thread.
    ///
    /// A question about one page takes less time than a switch to another thread. In a single-threaded
    /// runtime, this function behaves like [`BlockingCalls::run`] with the time limit `time`.
    ///
    /// # Errors
    /// 503 if too many calls are running; otherwise the error of the call.
    pub(crate) async fn run_in_place<T: Send + 'static>(
        &self,
        time: Duration,
        call: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
            return self.run(time, call).await;
        }
        let _permit = self.permit()?;
        block_in_place(call)
    }

    /// Runs long work for a request on a low-priority thread of its own.
    ///
    /// The work first waits for a permit among the `turns` of its client, then for one among all clients. A
    /// client with much work therefore delays only itself.
    ///
    /// # Errors
    /// Like [`BlockingCalls::run`]. The time limit includes the wait for permits.
    pub(crate) async fn run_low_priority<T: Send + 'static>(
        &self,
        time: Duration,
        turns: Option<Arc<Semaphore>>,
        call: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let (work, answer) = work_of(call);
        self.run_low_priority_work(time, turns, work).await?;
        take_answer(answer)
    }

    fn run_low_priority_work(
        &self,
        time: Duration,
        turns: Option<Arc<Semaphore>>,
        work: Work,
    ) -> WorkEnd<'_> {
        Box::pin(async move {
            let permit = self.permit()?;
            let ended = async {
                let own = match turns {
                    Some(turns) => turns.acquire_owned().await.ok(),
                    None => None,
                };
                let turn = self.low_priority.clone().acquire_owned().await.ok();
                let (end, ended) = oneshot::channel();
                let span = Span::current();
                let request_permits = current_permits();
                let work = move || {
                    let permits = (permit, own, turn, request_permits);
                    let _span = span.entered();
                    lower_priority(LoweredPriority::BelowAll);
                    work();
                    // The permits are returned before the end is reported, because the caller may ask for a
                    // permit at once.
                    drop(permits);
                    // Sending fails if the caller no longer waits.
                    let _ = end.send(());
                };
                let begun = thread::Builder::new().name("giving-way".to_owned()).spawn(work);
                begun.map_err(|error| {
                    tracing::warn!(%error, "cannot start a thread for a request; the request gets 503");
                    Problem::busy("the service cannot start another thread; try again later")
                })?;
                // If the work panics, it reports no end. The panic handler of the thread reports the panic.
                ended.await.map_err(|_| Problem::internal())
            };
            timeout(time, ended).await.unwrap_or_else(|_| Err(Problem::timed_out(time)))
        })
    }

    fn permit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        permit(&self.requests, "too many calls are in progress; try again later")
    }
}

/// Acquires a permit without waiting.
///
/// # Errors
/// 503 with `detail` if no permit is free.
pub(crate) fn permit(permits: &Arc<Semaphore>, detail: &str) -> Result<OwnedSemaphorePermit, Problem> {
    permits.clone().try_acquire_owned().map_err(|_| Problem::busy(detail))
}

/// Runs work on a blocking thread.
///
/// The thread keeps the permit of the call and the permits of the request, because it may outlive its caller.
/// It logs under the caller's span.
async fn on_thread(permit: OwnedSemaphorePermit, work: Work) -> Result<(), Problem> {
    let (span, request_permits) = (Span::current(), current_permits());
    let on_thread = move || {
        let _held = (permit, request_permits);
        let _span = span.entered();
        work();
    };
    spawn_blocking(on_thread).await.map_err(|error| {
        tracing::error!(%error, "a call panicked or was cancelled; the request gets 500");
        Problem::internal()
    })
}

/// Creates the work of a call, and the receiver of its answer.
fn work_of<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> (Work, oneshot::Receiver<Result<T, Problem>>) {
    let (answer, answered) = oneshot::channel();
    let work = move || {
        // Sending fails if the caller no longer waits.
        let _ = answer.send(call());
    };
    (Box::new(work), answered)
}

/// Takes the answer of work that has ended.
fn take_answer<T>(mut answered: oneshot::Receiver<Result<T, Problem>>) -> Result<T, Problem> {
    answered.try_recv().unwrap_or_else(|_| Err(Problem::internal()))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use axum::http::StatusCode;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(20);

    /// Creates a call that lasts until the sender is dropped.
    fn held() -> (Sender<()>, impl FnOnce() -> Result<(), Problem> + Send + 'static) {
        let (sender, receiver) = channel::<()>();
        (sender, move || {
            let _ = receiver.recv();
            Ok(())
        })
    }

    #[tokio::test]
    async fn a_late_call_keeps_its_permit_until_it_ends() {
        let calls = BlockingCalls::new(1, 1);
        let (end, call) = held();
        let late = calls.run(SHORT, call).await.unwrap_err();
        assert_eq!((late.status(), late), (StatusCode::SERVICE_UNAVAILABLE, Problem::timed_out(SHORT)));
        let busy = calls.run_in_place(LONG, || Ok(())).await.unwrap_err();
        assert!(busy.detail().contains("too many calls"), "{busy:?}");
        drop(end);
        let ended = async {
            while calls.run(LONG, || Ok(())).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        timeout(LONG, ended).await.unwrap();
    }

    #[tokio::test]
    async fn a_client_with_much_work_does_not_delay_other_clients() {
        let calls = BlockingCalls::new(9, 2);
        let turns = || Some(Arc::new(Semaphore::new(1)));
        let (one, other) = (turns(), turns());
        let (end, call) = held();
        // The call continues without its caller, and keeps its permit.
        assert_eq!(calls.run_low_priority(SHORT, one.clone(), call).await, Err(Problem::timed_out(SHORT)));
        let waits = calls.run_low_priority(SHORT, one.clone(), || Ok(1)).await;
        assert_eq!(waits, Err(Problem::timed_out(SHORT)));
        assert_eq!(calls.run_low_priority(LONG, other.clone(), || Ok(2)).await, Ok(2));
        assert_eq!(calls.run_low_priority(LONG, None, || Ok(3)).await, Ok(3));
        let panics =
            calls.run_low_priority(LONG, other.clone(), || -> Result<(), Problem> { panic!("planned") });
        assert_eq!(panics.await, Err(Problem::internal()));
        assert_eq!(calls.run_low_priority(LONG, other, || Ok(4)).await, Ok(4));
        drop(end);
        assert_eq!(calls.run_low_priority(LONG, one, || Ok(5)).await, Ok(5));
    }

    #[tokio::test]
    async fn health_waits_for_a_permit_within_its_time() {
        let calls = BlockingCalls::new(0, 0);
        let (ends, held): (Vec<_>, Vec<_>) = (0..HEALTH_CALLS).map(|_| held()).unzip();
        for call in held {
            assert_eq!(calls.run_for_health(SHORT, call).await, Err(Problem::timed_out(SHORT)));
        }
        let called = || -> Result<(), Problem> { panic!("the call ran without a permit") };
        assert_eq!(calls.run_for_health(SHORT, called).await, Err(Problem::timed_out(SHORT)));
        drop(ends);
        assert_eq!(calls.run_for_health(LONG, || Ok(7)).await, Ok(7));
    }
}
