//! Runs a slow query on a thread of its own, so that a caller can limit how long it waits for the answer.
//!
//! Invariant: at most one thread runs the query at any time, however many callers start it. Callers that
//! start the query while it runs share its answer.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// A query that may take long.
pub(super) struct BackgroundQuery<T> {
    ask: Arc<dyn Fn() -> T + Send + Sync>,
    last: Mutex<Option<QueryHandle<T>>>,
}

/// Handle to a query that is running or has ended.
pub(super) struct QueryHandle<T>(Arc<(Mutex<QueryState<T>>, Condvar)>);

enum QueryState<T> {
    Running,
    Answered(T),
    /// The thread could not start, or it panicked.
    Failed,
}

impl<T: Clone + Send + 'static> BackgroundQuery<T> {
    pub(super) fn new(ask: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self { ask: Arc::new(ask), last: Mutex::default() }
    }

    /// Starts the query, unless the query is already running. An earlier answer is not reused, because it
    /// would be too old.
    pub(super) fn begin(&self) -> QueryHandle<T> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(handle) if handle.is_running() => handle.share(),
            _ => last.insert(self.start()).share(),
        }
    }

    fn start(&self) -> QueryHandle<T> {
        let handle = QueryHandle(Arc::new((Mutex::new(QueryState::Running), Condvar::new())));
        // If the thread panics or never starts, dropping `RunningGuard` records `Failed`.
        let (guard, ask) = (RunningGuard(handle.share()), Arc::clone(&self.ask));
        let _ = thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            let answer = ask();
            guard.0.finish_with(QueryState::Answered(answer));
        });
        handle
    }
}

impl<T> QueryHandle<T> {
    fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    fn answer(&self) -> MutexGuard<'_, QueryState<T>> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_running(&self) -> bool {
        matches!(*self.answer(), QueryState::Running)
    }

    fn finish_with(&self, state: QueryState<T>) {
        let mut answer = self.answer();
        if matches!(*answer, QueryState::Running) {
            *answer = state;
        }
        drop(answer);
        self.0.1.notify_all();
    }
}

impl<T: Clone> QueryHandle<T> {
    /// Waits for the answer. Returns `None` if it does not arrive by `until`. Several callers can wait at
    /// once.
    pub(super) fn wait(&self, until: Instant) -> Option<T> {
        let time = until.saturating_duration_since(Instant::now());
        let is_running = |answer: &mut QueryState<T>| matches!(answer, QueryState::Running);
        let waited = self.0.1.wait_timeout_while(self.answer(), time, is_running);
        let (answer, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let QueryState::Answered(answer) = &*answer { Some(answer.clone()) } else { None }
    }
}

/// Guard of the thread that runs the query. Dropping the guard without an answer records
/// [`QueryState::Failed`].
struct RunningGuard<T>(QueryHandle<T>);

impl<T> Drop for RunningGuard<T> {
    fn drop(&mut self) {
        self.0.finish_with(QueryState::Failed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{self, Sender};
    use std::time::Duration;

    use super::*;

    /// Creates a query that answers with the number of its run when the sender sends, and a counter of its
    /// runs.
    fn long() -> (BackgroundQuery<usize>, Sender<()>, Arc<AtomicUsize>) {
        let (end, ended) = mpsc::channel::<()>();
        let (asked, ended) = (Arc::new(AtomicUsize::new(0)), Mutex::new(ended));
        let count = Arc::clone(&asked);
        let question = BackgroundQuery::new(move || {
            let number = count.fetch_add(1, Ordering::SeqCst);
            let _ = ended.lock().unwrap().recv();
            number
        });
        (question, end, asked)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn a_slow_query_runs_once_at_a_time() {
        let (question, end, asked) = long();
        let mut last = question.begin();
        for _ in 0..3 {
            assert_eq!(last.wait(Instant::now() + Duration::from_millis(20)), None);
            last = question.begin();
        }
        end.send(()).unwrap();
        assert_eq!((last.wait(soon()), asked.load(Ordering::SeqCst)), (Some(0), 1));
        // The next call asks again.
        let next = question.begin();
        end.send(()).unwrap();
        assert_eq!(next.wait(soon()), Some(1));
    }

    #[test]
    fn concurrent_callers_share_the_answer_and_do_not_wait_for_each_other() {
        let (question, end, asked) = long();
        let (first, second) = (question.begin(), question.begin());
        thread::scope(|scope| {
            let patient = scope.spawn(|| first.wait(soon()));
            // The second caller has no time left. It returns at once, although the first caller still waits.
            assert_eq!(second.wait(Instant::now()), None);
            end.send(()).unwrap();
            assert_eq!(patient.join().unwrap(), Some(0));
        });
        assert_eq!((second.wait(soon()), asked.load(Ordering::SeqCst)), (Some(0), 1));
    }

    #[test]
    fn a_query_that_panics_has_no_answer() {
        let question: BackgroundQuery<()> = BackgroundQuery::new(|| panic!("planned panic"));
        assert_eq!(question.begin().wait(soon()), None);
    }
}
