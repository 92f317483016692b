//! A question that may take long, asked on a thread of its own: whoever asks waits no longer than he wants to.
//!
//! Invariant: the question is under way once at most, however often it is asked.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// A question.
pub(super) struct Question<T> {
    ask: Arc<dyn Fn() -> T + Send + Sync>,
    under_way: Mutex<Option<Receiver<T>>>,
}

impl<T: Send + 'static> Question<T> {
    pub(super) fn new(ask: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self { ask: Arc::new(ask), under_way: Mutex::default() }
    }

    /// Begins to ask, unless the question is under way. An answer that nobody has waited for is too old.
    pub(super) fn begin(&self) {
        let mut under_way = self.under_way();
        let is_under_way = |receiver: &Receiver<T>| matches!(receiver.try_recv(), Err(TryRecvError::Empty));
        if !under_way.as_ref().is_some_and(is_under_way) {
            *under_way = Some(self.start());
        }
    }

    /// The answer to what was begun; none where it does not come in time.
    pub(super) fn wait(&self, until: Instant) -> Option<T> {
        let mut under_way = self.under_way();
        // Another one who waited may have taken it.
        let receiver = under_way.take().unwrap_or_else(|| self.start());
        let answer = receiver.recv_timeout(until.saturating_duration_since(Instant::now()));
        if matches!(answer, Err(RecvTimeoutError::Timeout)) {
            *under_way = Some(receiver);
        }
        answer.ok()
    }

    fn start(&self) -> Receiver<T> {
        let (sender, receiver) = mpsc::channel();
        let ask = Arc::clone(&self.ask);
        // Without a thread there is no answer.
        let _ = thread::Builder::new().name("metrics".to_owned()).spawn(move || drop(sender.send(ask())));
        receiver
    }

    fn under_way(&self) -> MutexGuard<'_, Option<Receiver<T>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_question_that_takes_long_is_under_way_once() {
        let (end, ended) = mpsc::channel::<()>();
        let (asked, ended) = (Arc::new(AtomicUsize::new(0)), Mutex::new(ended));
        let count = Arc::clone(&asked);
        let question = Question::new(move || {
            let number = count.fetch_add(1, Ordering::SeqCst);
            let _ = ended.lock().unwrap().recv();
            number
        });
        for _ in 0..3 {
            question.begin();
            assert_eq!(question.wait(Instant::now() + Duration::from_millis(20)), None);
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        drop(end);
        question.begin();
        let answer = question.wait(Instant::now() + Duration::from_secs(20));
        assert_eq!(answer.map(|number| number + 1), Some(asked.load(Ordering::SeqCst)));
    }
}
