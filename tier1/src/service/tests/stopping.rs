//! The end of the threads.

use doppel_model::ClientId;
use std::thread;

use crossbeam::channel::{Receiver, Sender, unbounded};

use super::*;
use crate::service::room::Arriving;
use crate::store::{Intercept, Intercepted, StoreError, Write};

/// Says when a commit begins, and asks whether it is to be made.
struct Gate {
    begun: Sender<()>,
    is_made: Receiver<bool>,
}

impl Intercept for Gate {
    fn commit(&self, rows: &Memory, writes: Vec<Write>) -> Result<(), StoreError> {
        self.begun.send(()).unwrap();
        if self.is_made.recv().unwrap() { rows.commit(writes) } else { Err(StoreError::DiskFull) }
    }
}

#[test]
fn a_stop_ends_though_the_last_commit_fails() {
    let ((begun, begins), (make, is_made)) = (unbounded(), unbounded());
    let store = Arc::new(Intercepted::new(Gate { begun, is_made }));
    let (tier1, _) = start_with(&store, &config(Retention::DEFAULT, 1), usize::MAX);
    let submit = |page| {
        let body = Body::Redirect(url(9));
        let at = Timestamp::from_millis(1);
        let (popularity, language, canonical) = (None, None, None);
        let submission = Submission { url: url(page), fetched_at: at, popularity, language, canonical, body };
        let arriving = Arriving::count(&Arc::default(), ClientId::NONE, 0).0;
        tier1.own(RangeId(0)).unwrap().submit(vec![(submission, None)], arriving).unwrap()
    };
    let first = submit(1);
    begins.recv_timeout(PATIENCE).unwrap();
    // These wait while the first commit is made, so the writer meets them together.
    let second = submit(2);
    let (stopped, ends) = unbounded();
    let stopping = Arc::clone(&tier1);
    let thread = thread::spawn(move || {
        stopping.stop();
        stopped.send(()).unwrap();
    });
    thread::sleep(Duration::from_millis(200));
    make.send(true).unwrap();
    begins.recv_timeout(PATIENCE).unwrap();
    make.send(false).unwrap();
    assert!(first.wait().flatten().is_ok());
    assert!(matches!(second.wait().flatten().unwrap_err(), Tier1Error::DiskFull(_)));
    ends.recv_timeout(PATIENCE).expect("the writer waits for another stop");
    thread.join().unwrap();
}
