//! A slow question that is asked on a thread of its own, so that a caller can limit how long it waits.
//!
//! Invariant: at most one thread is asking at any time, however many callers ask. All callers that ask
//! meanwhile share its answer.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// A question that may take long.
pub(super) struct Question<T> {
    ask: Arc<dyn Fn() -> T + Send + Sync>,
    last: Mutex<Option<Asked<T>>>,
}

/// Handle to a question that is being asked or was answered.
pub(super) struct Asked<T>(Arc<(Mutex<Answer<T>>, Condvar)>);

enum Answer<T> {
    UnderWay,
    Here(T),
    /// The thread could not start, or it panicked.
    Never,
}

impl<T: Clone + Send + 'static> Question<T> {
    pub(super) fn new(ask: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self { ask: Arc::new(ask), last: Mutex::default() }
    }

    /// Starts to ask, unless the question is already being asked. An earlier answer is not reused, because it
    /// would be too old.
    pub(super) fn begin(&self) -> Asked<T> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(asked) if asked.is_under_way() => asked.same(),
            _ => last.insert(self.start()).same(),
        }
    }

    fn start(&self) -> Asked<T> {
        let asked = Asked(Arc::new((Mutex::new(Answer::UnderWay), Condvar::new())));
        // If the thread panics or never starts, dropping `Asking` records `Never`.
        let (asking, ask) = (Asking(asked.same()), Arc::clone(&self.ask));
        let _ = thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            let answer = ask();
            asking.0.say(Answer::Here(answer));
        });
        asked
    }
}

impl<T> Asked<T> {
    fn same(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    fn answer(&self) -> MutexGuard<'_, Answer<T>> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_under_way(&self) -> bool {
        matches!(*self.answer(), Answer::UnderWay)
    }

    fn say(&self, said: Answer<T>) {
        let mut answer = self.answer();
        if matches!(*answer, Answer::UnderWay) {
            *answer = said;
        }
        drop(answer);
        self.0.1.notify_all();
    }
}

impl<T: Clone> Asked<T> {
    /// Waits for the answer. Returns `None` if it does not arrive by `until`. Several callers can wait at
    /// once.
    pub(super) fn wait(&self, until: Instant) -> Option<T> {
        let time = until.saturating_duration_since(Instant::now());
        let is_under_way = |answer: &mut Answer<T>| matches!(answer, Answer::UnderWay);
        let waited = self.0.1.wait_timeout_while(self.answer(), time, is_under_way);
        let (answer, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Answer::Here(answer) = &*answer { Some(answer.clone()) } else { None }
    }
}

/// Guard of the asking thread. Dropping it without an answer records [`Answer::Never`].
struct Asking<T>(Asked<T>);

impl<T> Drop for Asking<T> {
    fn drop(&mut self) {
        self.0.say(Answer::Never);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{self, Sender};
    use std::time::Duration;

    use super::*;

    /// Creates a question that is answered with its number when the sender sends, and a counter of how often
    /// it was asked.
    fn long() -> (Question<usize>, Sender<()>, Arc<AtomicUsize>) {
        let (end, ended) = mpsc::channel::<()>();
        let (asked, ended) = (Arc::new(AtomicUsize::new(0)), Mutex::new(ended));
        let count = Arc::clone(&asked);
        let question = Question::new(move || {
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
    fn a_question_that_takes_long_is_under_way_once() {
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
    fn all_who_ask_meanwhile_get_the_answer_and_none_waits_for_another() {
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
    fn a_question_that_panics_has_no_answer() {
        let question: Question<()> = Question::new(|| panic!("as it is to"));
        assert_eq!(question.begin().wait(soon()), None);
    }
}
